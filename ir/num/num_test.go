package num_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/num"
)

var narrow = []ir.DType{ir.F8E4M3, ir.F8E5M2, ir.F16, ir.BF16}

// values lists the value of every bit pattern of t by code.
func values(t ir.DType) []float64 {
	n := 1 << (8 * t.Size())
	vals := make([]float64, n)
	for i := range vals {
		vals[i] = num.Load(t, []byte{byte(i), byte(i >> 8)})
	}
	return vals
}

func TestEveryPatternRoundTrips(t *testing.T) {
	for _, dt := range narrow {
		for bits, v := range values(dt) {
			if math.IsInf(v, 0) && dt == ir.F8E5M2 {
				continue // saturates: see TestSpecials
			}
			var via64, via32 [2]byte
			num.Store(dt, via64[:], v)
			num.FromFloat32s(via32[:dt.Size()], dt, []float32{float32(v)})
			require.Equal(t, via64, via32, "%v %#x", dt, bits)
			got := int(via64[0]) | int(via64[1])<<8
			if v != v {
				require.True(t, math.IsNaN(num.Load(dt, via64[:])), "%v %#x", dt, bits)
				continue
			}
			require.Equal(t, bits, got, "%v %v", dt, v)
		}
	}
}

func TestNaNPayloadSurvives(t *testing.T) {
	assert.Equal(t, uint16(0xfe01), num.F16Bits(num.F16Value(0xfc01)))
	assert.Equal(t, uint16(0xffc1), num.BF16Bits(num.BF16Value(0xff81)))
	assert.Equal(t, uint8(0x7f), num.F8E4M3Bits(float32(math.NaN())))
	assert.Equal(t, uint8(0x7f), num.F8E5M2Bits(num.F8E5M2Value(0xfd)))
	assert.Equal(t, uint8(0x7f), num.F8E4M3Bits(num.F8E4M3Value(0xff)))
}

// nearest is the definition: the closest finite value, ties to the even code.
// sorted holds the finite values from code 0 up.
func nearest(sorted []float64, v float64) int {
	lo := 0
	for lo+1 < len(sorted) && sorted[lo+1] <= v {
		lo++
	}
	if lo+1 == len(sorted) {
		return lo
	}
	below := new(big.Float).Sub(big.NewFloat(v), big.NewFloat(sorted[lo]))
	above := new(big.Float).Sub(big.NewFloat(sorted[lo+1]), big.NewFloat(v))
	switch below.Cmp(above) {
	case -1:
		return lo
	case 1:
		return lo + 1
	}
	return lo + lo&1
}

// positive lists the finite values of t from 0 up, and what one more step of the
// exponent range would be: rounding up to that is overflow.
func positive(t ir.DType) []float64 {
	var out []float64
	for _, v := range values(t)[:1<<(8*t.Size()-1)] {
		if v != v || math.IsInf(v, 0) {
			break
		}
		out = append(out, v)
	}
	n := len(out)
	return append(out, 2*out[n-1]-out[n-2])
}

func TestRoundingAgainstDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, dt := range narrow {
		vals := positive(dt)
		top := len(vals) - 1
		for range 1500 {
			at := r.IntN(top)
			lo, hi := vals[at], vals[at+1]
			mid := lo + (hi-lo)/2
			for _, v := range []float64{
				mid, math.Nextafter(mid, 0), math.Nextafter(mid, hi), lo + (hi-lo)*r.Float64(),
			} {
				window := vals[at : at+2]
				code := at + nearest(window, v)
				if at&1 == 1 && v == mid {
					code = at + 1 // nearest saw codes from 0: even is relative
				}
				want := vals[min(code, top)]
				if code >= top {
					want = overflow(dt)
				}
				require.Equal(t, want, num.Round(dt, v), "%v %x", dt, v)
				require.Equal(t, -want, num.Round(dt, -v), "%v %x", dt, -v)
				checkFloat32(t, dt, float32(v))
			}
		}
	}
}

func overflow(t ir.DType) float64 {
	if t == ir.F16 || t == ir.BF16 {
		return math.Inf(1)
	}
	return t.Info().Max
}

// checkFloat32 compares the float32 path with the float64 path.
func checkFloat32(t *testing.T, dt ir.DType, v float32) {
	var a, b [2]byte
	num.FromFloat32s(a[:dt.Size()], dt, []float32{v})
	num.Store(dt, b[:], float64(v))
	require.Equal(t, b, a, "%v %x", dt, v)
}

func TestFloat32PathEqualsFloat64Path(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, dt := range narrow {
		for range 100000 {
			checkFloat32(t, dt, math.Float32frombits(r.Uint32()))
		}
	}
}

func TestSpecials(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		t        ir.DType
		in, want float64
	}{
		{ir.F16, 65519.999, 65504}, {ir.F16, 65520, inf}, {ir.F16, inf, inf}, {ir.F16, 0x1p-25, 0},
		{ir.F16, 0x1.000001p-25, 0x1p-24}, {ir.F16, 0x1p-24, 0x1p-24},
		{ir.BF16, math.MaxFloat64, inf}, {ir.BF16, 0x1p-133, 0x1p-133}, {ir.BF16, 0x1p-134, 0},
		{ir.BF16, 1 + 0x1p-8 + 0x1p-40, 1 + 0x1p-7}, // one rounding, not through f32
		{ir.F8E4M3, 449, 448}, {ir.F8E4M3, 1e9, 448}, {ir.F8E4M3, inf, 448}, {ir.F8E4M3, 0x1p-9, 0x1p-9},
		{ir.F8E5M2, 57344, 57344}, {ir.F8E5M2, 1e9, 57344}, {ir.F8E5M2, inf, 57344},
		{ir.F32, 0.1, float64(float32(0.1))}, {ir.F32, 1e300, inf}, {ir.F64, 0.1, 0.1},
		{ir.U8, -1, 0}, {ir.U8, 255.9, 255}, {ir.U8, 1e9, 255}, {ir.I8, -1e9, -128}, {ir.I8, -1.9, -1},
		{ir.I16, inf, 32767}, {ir.I32, -inf, -1 << 31}, {ir.U32, 1e10, 1<<32 - 1}, {ir.I64, 1e30, 1 << 63},
		{ir.Bool, 0.1, 1}, {ir.Bool, 0, 0}, {ir.Bool, math.NaN(), 1},
	} {
		assert.Equal(t, c.want, num.Round(c.t, c.in), "%v %v", c.t, c.in)
	}
	for _, dt := range ir.DTypes() {
		got := num.Round(dt, math.NaN())
		switch {
		case dt.IsFloat():
			assert.True(t, math.IsNaN(got), "%v", dt)
			assert.True(t, math.Signbit(num.Round(dt, math.Copysign(0, -1))), "%v keeps -0", dt)
		case dt.IsInt():
			assert.Zero(t, got, "%v", dt)
		}
	}
	assert.Equal(t, inf, num.Load(ir.F8E5M2, []byte{0x7c}))
}

func TestIntegersWrapAndStayExact(t *testing.T) {
	for _, c := range []struct {
		t        ir.DType
		in, want int64
	}{
		{ir.U8, 256 + 7, 7}, {ir.U8, -1, 255}, {ir.I8, 128, -128}, {ir.I16, 1<<16 + 5, 5},
		{ir.I16, 1 << 15, -1 << 15},
		{ir.I32, 1 << 31, -1 << 31}, {ir.U32, -1, 1<<32 - 1}, {ir.I64, math.MaxInt64 - 1, math.MaxInt64 - 1},
		{ir.Index, -5, -5}, {ir.Bool, -3, 1},
	} {
		var b [8]byte
		num.StoreInt(c.t, b[:], c.in)
		assert.Equal(t, c.want, num.LoadInt(c.t, b[:]), "%v %d", c.t, c.in)
		assert.Equal(t, c.want, num.RoundInt(c.t, c.in), "%v %d", c.t, c.in)
	}
	big := []int64{math.MaxInt64, math.MinInt64, 1<<53 + 1, -1}
	b := make([]byte, 32)
	num.FromInt64s(b, ir.I64, big)
	got := make([]int64, 4)
	num.ToInt64s(got, ir.I64, b)
	assert.Equal(t, big, got)
}

// Integers reach a narrow float by one rounding even where float64 is too short.
func TestIntToFloatRoundsOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for i := range 20000 {
		v := int64(r.Uint64()) >> r.IntN(63)
		if i%2 == 0 { // on the edge of a tie of bf16 (8 bits) or f32 (24 bits)
			v = int64(1)<<62 + int64(1)<<[]int{54, 38}[i/2%2] + int64(r.IntN(3)-1)
		}
		var b [8]byte
		num.StoreInt(ir.F32, b[:], v)
		require.Equal(t, float64(float32(v)), num.Load(ir.F32, b[:]), "%d", v)
		num.StoreInt(ir.BF16, b[:], v)
		want, _ := new(big.Float).SetPrec(8).SetMode(big.ToNearestEven).SetInt64(v).Float64()
		require.Equal(t, want, num.Load(ir.BF16, b[:]), "%d", v)
	}
}

func TestBulkEqualsScalar(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, from := range ir.DTypes() {
		n := 67
		src := make([]byte, n*from.Size())
		for i := range src {
			src[i] = byte(r.Uint32())
		}
		f32, f64, i64 := make([]float32, n), make([]float64, n), make([]int64, n)
		num.ToFloat32s(f32, from, src)
		num.ToFloat64s(f64, from, src)
		num.ToInt64s(i64, from, src)
		for i := range n {
			e := src[i*from.Size():]
			want := num.Load(from, e)
			assertSame(t, want, f64[i], "%v to f64", from)
			assertSame(t, float64(float32(want)), float64(f32[i]), "%v to f32", from)
			assert.Equal(t, num.LoadInt(from, e), i64[i])
		}
		for _, to := range ir.DTypes() {
			checkConvert(t, to, from, src)
		}
	}
}

func checkConvert(t *testing.T, to, from ir.DType, src []byte) {
	n := len(src) / from.Size()
	f32, f64, i64 := make([]float32, n), make([]float64, n), make([]int64, n)
	num.ToFloat32s(f32, from, src)
	num.ToFloat64s(f64, from, src)
	num.ToInt64s(i64, from, src)
	size := to.Size()
	a, b, c, d := make([]byte, n*size), make([]byte, n*size), make([]byte, n*size), make([]byte, n*size)
	num.FromFloat32s(a, to, f32)
	num.FromFloat64s(b, to, f64)
	num.FromInt64s(c, to, i64)
	num.Convert(d, to, src, from)
	for i := range n {
		at := i * size
		assertSame(t, num.Round(to, float64(f32[i])), num.Load(to, a[at:]), "f32 to %v", to)
		assertSame(t, num.Round(to, f64[i]), num.Load(to, b[at:]), "f64 to %v", to)
		want := num.Load(to, b[at:])
		if !from.IsFloat() {
			want = num.Load(to, c[at:])
		}
		if from == to { // a copy, not a conversion: f8e5m2 infinities stay
			want = num.Load(from, src[i*from.Size():])
		}
		assertSame(t, want, num.Load(to, d[at:]), "%v to %v", from, to)
	}
}

func assertSame(t *testing.T, want, got float64, msg string, args ...any) {
	t.Helper()
	if want != got && !(want != want && got != got) {
		assert.Failf(t, "not the same", msg+": want %v, got %v", append(args, want, got)...)
	}
}

func TestWrongLengthsPanic(t *testing.T) {
	assert.PanicsWithValue(t, "BUG: num: 3 bytes for 2 elements of bf16", func() {
		num.ToFloat32s(make([]float32, 2), ir.BF16, make([]byte, 3))
	})
	assert.Panics(t, func() { num.Load(ir.Invalid, make([]byte, 8)) })
}

func BenchmarkToFloat32s(b *testing.B) {
	for _, dt := range []ir.DType{ir.BF16, ir.F16, ir.F8E4M3, ir.F32, ir.F64, ir.I64} {
		b.Run(dt.String(), func(b *testing.B) {
			src, dst := make([]byte, dt.Size()<<16), make([]float32, 1<<16)
			for i := range 1 << 16 {
				num.Store(dt, src[i*dt.Size():], float64(i%2001)/100-10)
			}
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				num.ToFloat32s(dst, dt, src)
			}
		})
	}
}

func BenchmarkFromFloat32s(b *testing.B) {
	for _, dt := range []ir.DType{ir.BF16, ir.F16, ir.F8E4M3, ir.F32} {
		b.Run(dt.String(), func(b *testing.B) {
			src, dst := make([]float32, 1<<16), make([]byte, dt.Size()<<16)
			for i := range src {
				src[i] = float32(i%2001)/100 - 10
			}
			b.SetBytes(int64(len(dst)))
			for b.Loop() {
				num.FromFloat32s(dst, dt, src)
			}
		})
	}
}
