package tensor_test

import (
	"math"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/tensor"
)

// must returns x, as the constructors give it with good arguments.
func must(x *tensor.Tensor, err error) *tensor.Tensor {
	if err != nil {
		panic(err)
	}
	return x
}

func checkSlice[T tensor.Element](t *testing.T, want ir.DType, data []T) {
	t.Helper()
	x, err := tensor.FromSlice(data, 1, len(data))
	require.NoError(t, err)
	assert.Equal(t, want, x.DType)
	assert.Equal(t, []int{1, len(data)}, x.Shape)
	back, ok := tensor.View[T](x)
	require.True(t, ok)
	assert.Equal(t, data, back)
	back[0], back[1] = data[1], data[0]
	assert.Equal(t, back[0], data[0], "memory is shared")
	assert.Equal(t, x.Floats()[0], x.At(0, 0))
}

func TestFromSliceOfEveryType(t *testing.T) {
	checkSlice(t, ir.F32, []float32{1.5, -2})
	checkSlice(t, ir.F64, []float64{1.5, -2})
	checkSlice(t, ir.I64, []int64{1 << 60, -2})
	checkSlice(t, ir.I32, []int32{1 << 30, -2})
	checkSlice(t, ir.I16, []int16{1 << 14, -2})
	checkSlice(t, ir.I8, []int8{100, -2})
	checkSlice(t, ir.U8, []uint8{200, 2})
	checkSlice(t, ir.BF16, []tensor.BF16{tensor.ToBF16(1.5), tensor.ToBF16(-2)})
	checkSlice(t, ir.F16, []tensor.F16{tensor.ToF16(1.5), tensor.ToF16(-2)})
	checkSlice(t, ir.F8E4M3, []tensor.F8E4M3{tensor.ToF8E4M3(1.5), tensor.ToF8E4M3(-2)})
	checkSlice(t, ir.F8E5M2, []tensor.F8E5M2{tensor.ToF8E5M2(1.5), tensor.ToF8E5M2(-2)})
	assert.Equal(t, []float32{1.5, 1.5, 1.5, 1.5}, []float32{tensor.ToBF16(1.5).Float32(), tensor.ToF16(1.5).Float32(),
		tensor.ToF8E4M3(1.5).Float32(), tensor.ToF8E5M2(1.5).Float32()})
	checkSlice(t, ir.U32, []uint32{1 << 31, 2})
	checkSlice(t, ir.Bool, []bool{true, false})
}

func TestFromFloatsAndBits(t *testing.T) {
	for _, dt := range ir.DTypes() {
		x := must(tensor.FromFloats(dt, []float32{0, 1, 1, 0}, 2, 2))
		assert.Equal(t, []float64{0, 1, 1, 0}, x.Floats(), "%v", dt)
		assert.Equal(t, []float32{0, 1, 1, 0}, x.Float32s(), "%v", dt)
		assert.Equal(t, []int64{0, 1, 1, 0}, x.Ints(), "%v", dt)
	}
	x := must(tensor.FromBits(ir.BF16, []uint16{0x3f80, 0xc000}))
	assert.Equal(t, []float32{1, -2}, x.Float32s())
	y := must(tensor.FromBits(ir.F8E5M2, []uint8{0x3c}, 1, 1))
	assert.Equal(t, 1.0, y.At(0, 0))
	_, err := tensor.FromBits(ir.F32, []uint16{1})
	assert.EqualError(t, err, "bits of 2 bytes an element cannot be f32, which has 4")
}

func TestViewNeedsTypeAndAlignment(t *testing.T) {
	x := must(tensor.FromSlice([]float32{1, 2, 3}))
	_, ok := tensor.View[int32](x)
	assert.False(t, ok, "another type")
	odd := must(tensor.FromBytes(ir.F32, must(tensor.New(ir.F32, 3)).Data[1:9], 2))
	_, ok = tensor.View[float32](odd)
	assert.False(t, ok, "not aligned")
	assert.Equal(t, []float32{0, 0}, odd.Float32s(), "converted instead")
}

func TestShapeErrors(t *testing.T) {
	huge := math.MaxInt / 2
	for _, c := range []struct {
		shape []int
		want  string
	}{
		{[]int{2, -1}, "dimensions are at least 0, found -1 in shape [2 -1]"},
		{[]int{huge, 3}, "larger than the address space"},
		{[]int{0, huge, huge}, "larger than the address space"},
		{make([]int, 65), "a tensor has at most 64 dimensions, found 65"},
	} {
		_, err := tensor.New(ir.F32, c.shape...)
		assert.ErrorContains(t, err, c.want)
	}
	_, err := tensor.New(ir.Invalid, 1)
	assert.ErrorContains(t, err, "element type invalid cannot be stored")
	_, err = tensor.New(ir.Index, 1)
	assert.Error(t, err)
	_, err = tensor.New(ir.DType(200), 1)
	assert.Error(t, err)
	_, err = tensor.FromSlice([]float32{1, 2, 3}, 2, 2)
	assert.EqualError(t, err, "tensor f32[2, 2] needs 4 elements (16 bytes), found 12 bytes")
	_, err = tensor.FromFloats(ir.BF16, []float32{1, 2, 3}, 2)
	assert.EqualError(t, err, "tensor bf16[2] needs 2 elements, found 3")
}

func TestEmptyAndScalar(t *testing.T) {
	e := must(tensor.New(ir.BF16, 0, 3))
	assert.Zero(t, e.Len())
	assert.Empty(t, e.Float32s())
	s := must(tensor.Scalar(ir.F16, 2.5))
	assert.Equal(t, 1, s.Len())
	assert.Equal(t, 2.5, s.At())
	assert.Equal(t, "f16[]", s.String())
}

func TestIndexing(t *testing.T) {
	x := must(tensor.FromSlice([]int64{1<<53 + 1, 1, 2, 3, 4, 5}, 2, 3))
	assert.Equal(t, int64(1<<53+1), x.IntAt(0, 0))
	assert.Equal(t, 5.0, x.At(1, 2))
	for at := range x.Len() {
		assert.Equal(t, at, x.Offset(x.Index(at)...))
	}
	assert.Panics(t, func() { x.At(0, 3) })
	assert.Panics(t, func() { x.At(1) })
}

func TestConvertAndClone(t *testing.T) {
	x := must(tensor.FromSlice([]float32{1.4, -300, float32(math.NaN())}))
	y := must(x.Convert(ir.I8))
	assert.Equal(t, []int64{1, -128, 0}, y.Ints())
	c := x.Clone()
	c.Data[0]++
	assert.NotEqual(t, c.Data[0], x.Data[0])
}

func TestRandomIsDeterministicAndSpread(t *testing.T) {
	for _, dt := range ir.DTypes() {
		x := must(tensor.Random(dt, 7, 50, 60))
		assert.True(t, tensor.Equal(x, must(tensor.Random(dt, 7, 50, 60))), "%v", dt)
		assert.False(t, tensor.Equal(x, must(tensor.Random(dt, 8, 50, 60))), "%v", dt)
		lo, hi, sum := math.Inf(1), math.Inf(-1), 0.0
		for _, v := range x.Floats() {
			lo, hi, sum = min(lo, v), max(hi, v), sum+v
		}
		want := [2]float64{-8, 7}
		switch {
		case dt.IsFloat():
			assert.InDelta(t, 0, sum/3000, 0.1)
			assert.True(t, lo < -2.5 && hi > 2.5, "%v: %v to %v", dt, lo, hi)
			continue
		case dt == ir.Bool:
			want = [2]float64{0, 1}
		case !dt.Info().Signed:
			want = [2]float64{0, 15}
		}
		assert.Equal(t, want, [2]float64{lo, hi}, "%v", dt)
	}
	assert.Equal(t, []int64{3, 3}, must(tensor.RandomInts(ir.I32, 1, 3, 4, 2)).Ints())
}

func TestCompare(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	want := must(tensor.FromSlice([]float64{1, 2, nan, inf, 0, -4}, 2, 3))
	got := must(tensor.FromSlice([]float64{1, 2.5, nan, inf, 0.25, -4}, 2, 3))
	d, err := tensor.Compare(got, want, tensor.Tolerance{Abs: 0.3})
	require.NoError(t, err)
	assert.Equal(t, tensor.Diff{
		Mismatches: 1, MaxAbs: 0.5, MaxRel: 0.25, First: []int{0, 1}, Got: 2.5, Want: 2,
	}, d)
	assert.Equal(t, "1 elements differ, first at [0 1]: got 2.5, want 2 "+
		"(max abs error 0.5, max rel error 0.25)", d.String())
	d, _ = tensor.Compare(got, want, tensor.Tolerance{Abs: 0.25, Rel: 0.125})
	assert.True(t, d.OK(), "%v", d)

	for _, c := range []struct {
		got, want float64
		ok        bool
	}{
		{nan, nan, true}, {nan, 1, false}, {1, nan, false}, {inf, inf, true}, {inf, -inf, false},
		{1, inf, false}, {inf, 1, false}, {0, math.Copysign(0, -1), true},
	} {
		g, w := must(tensor.Scalar(ir.F64, c.got)), must(tensor.Scalar(ir.F64, c.want))
		d, err := tensor.Compare(g, w, tensor.Tolerance{Abs: 100, Rel: 100})
		require.NoError(t, err)
		assert.Equal(t, c.ok, d.OK(), "%v", c)
		assert.Equal(t, c.ok, tensor.Equal(g, w), "%v", c)
	}
}

func TestCompareIntegersExactly(t *testing.T) {
	a := must(tensor.FromSlice([]int64{math.MaxInt64, 1<<60 + 1}))
	b := must(tensor.FromSlice([]int64{math.MinInt64, 1 << 60}))
	d, err := tensor.Compare(a, b, tensor.Tolerance{})
	require.NoError(t, err)
	assert.Equal(t, 2, d.Mismatches)
	assert.Equal(t, 0x1p64, d.MaxAbs)
	assert.False(t, tensor.Equal(a, b))
	_, err = tensor.Compare(a, must(tensor.New(ir.I64, 3)), tensor.Tolerance{})
	assert.EqualError(t, err, "shapes differ: got i64[2], want i64[3]")
	f := must(tensor.FromSlice([]float32{0, 1}))
	half := must(tensor.FromFloats(ir.BF16, []float32{0, 1}))
	d, err = tensor.Compare(half, f, tensor.Tolerance{})
	require.NoError(t, err)
	assert.True(t, d.OK())
	assert.False(t, tensor.Equal(half, f), "types differ")
}

// Stripes are made side by side: the numbers must not depend on how many at a time.
func TestRandomIsTheSameOnAnyNumberOfCores(t *testing.T) {
	const length = 200_001 // several stripes, and a part of one
	wide := must(tensor.Random(ir.BF16, 3, length))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	assert.True(t, tensor.Equal(wide, must(tensor.Random(ir.BF16, 3, length))))
	const stripe = 64 * 1024
	same := 0
	for i := range 100 {
		if wide.At(i) == wide.At(stripe+i) {
			same++
		}
	}
	assert.Less(t, same, 10, "each stripe has numbers of its own")
}
