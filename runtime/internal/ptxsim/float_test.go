package ptxsim

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"
)

func bitsOf(v float32) uint64 { return uint64(math.Float32bits(v)) }

// randomBits are those of numbers of a format: uniform, near each other, and special.
func randomBits(random *rand.Rand, f *format) uint64 {
	sign := random.Uint64() & f.sign()
	switch random.IntN(8) {
	case 0:
		special := []uint64{0, 1, 1<<f.fraction - 1, 1 << f.fraction, f.top, f.inf, f.nan}
		return special[random.IntN(len(special))] | sign
	case 1, 2, 3:
		one := uint64(-f.least) << f.fraction
		return (one + random.Uint64()>>(64-f.fraction-3)) | sign
	}
	return random.Uint64() & f.mask()
}

func exactly(x float64) *big.Float { return new(big.Float).SetFloat64(x) }

// A scale is all finite values of a format and one beyond, in order: rounding by search.
type scale struct {
	f      *format
	values []float64
}

// newScale computes the values from the meaning of their bits.
func newScale(f *format) *scale {
	s := &scale{f: f}
	for m := uint64(0); m <= f.top+1; m++ {
		exponent, fraction := int(m>>f.fraction), float64(m&(1<<f.fraction-1))
		if exponent > 0 {
			fraction += float64(uint64(1) << f.fraction)
			exponent--
		}
		s.values = append(s.values, math.Ldexp(fraction, exponent+f.least-f.fraction))
	}
	return s
}

// round gives the magnitude's bits for a positive value.
func (s *scale) round(v *big.Float, up, tiesAway, directed bool) uint64 {
	at := sort.Search(len(s.values), func(i int) bool { return exactly(s.values[i]).Cmp(v) >= 0 })
	switch {
	case at == len(s.values):
		at-- // beyond all
		if directed && !up {
			at--
		}
	case exactly(s.values[at]).Cmp(v) == 0:
	case directed:
		if !up {
			at--
		}
	default:
		middle := exactly(s.values[at-1]).SetPrec(100)
		middle.Add(middle, exactly(s.values[at])).Quo(middle, big.NewFloat(2))
		if c := v.Cmp(middle); c < 0 || c == 0 && !tiesAway && at%2 == 1 {
			at--
		}
	}
	if uint64(at) > s.f.top {
		return s.f.inf
	}
	return uint64(at)
}

// bits rounds a value other than zero.
func (s *scale) bits(v *big.Float, mode rounding) uint64 {
	negative := v.Sign() < 0
	up := mode == toMinus && negative || mode == toPlus && !negative
	m := s.round(new(big.Float).Abs(v), up, mode == toAway, mode != toNearest && mode != toAway)
	if negative {
		m |= s.f.sign()
	}
	return m
}

// reference32 rounds to f32 by package big.
func reference32(v *big.Float, mode rounding) uint64 {
	near, _ := v.Float32()
	c := v.Cmp(exactly(float64(near)))
	if math.IsInf(float64(near), 0) {
		c = -v.Sign()
	}
	switch {
	case c < 0 && (mode == toMinus || mode == toZero && near > 0):
		near = math.Nextafter32(near, float32(math.Inf(-1)))
	case c > 0 && (mode == toPlus || mode == toZero && near < 0):
		near = math.Nextafter32(near, float32(math.Inf(1)))
	}
	return bitsOf(near)
}

// reference64 is reference32 of f64.
func reference64(v *big.Float, mode rounding) uint64 {
	near, _ := v.Float64()
	var c int
	if math.IsInf(near, 0) {
		c = -v.Sign()
	} else {
		c = v.Cmp(exactly(near))
	}
	switch {
	case c < 0 && (mode == toMinus || mode == toZero && near > 0):
		near = math.Nextafter(near, math.Inf(-1))
	case c > 0 && (mode == toPlus || mode == toZero && near < 0):
		near = math.Nextafter(near, math.Inf(1))
	}
	return math.Float64bits(near)
}

// references round exact results by the format's name.
func references() map[string]func(v *big.Float, mode rounding) uint64 {
	return map[string]func(v *big.Float, mode rounding) uint64{
		"f16": newScale(f16).bits, "bf16": newScale(bf16).bits, "f32": reference32, "f64": reference64,
	}
}

// TestRounding compares with results of package big, rounded once.
func TestRounding(t *testing.T) {
	rounds := references()
	random := rand.New(rand.NewPCG(3, 4))
	type exactResult func(x, y, z *big.Float) *big.Float
	wide := func() *big.Float { return new(big.Float).SetPrec(8192) }
	ops := []struct {
		name    string
		sources int
		exact   exactResult
	}{
		{"add", 2, func(x, y, _ *big.Float) *big.Float { return wide().Add(x, y) }},
		{"sub", 2, func(x, y, _ *big.Float) *big.Float { return wide().Sub(x, y) }},
		{"mul", 2, func(x, y, _ *big.Float) *big.Float { return wide().Mul(x, y) }},
		{"fma", 3, func(x, y, z *big.Float) *big.Float { return wide().Add(wide().Mul(x, y), z) }},
		{"div", 2, func(x, y, _ *big.Float) *big.Float { return new(big.Float).SetPrec(400).Quo(x, y) }},
		{"rcp", 1, func(x, _, _ *big.Float) *big.Float { return new(big.Float).SetPrec(400).Quo(exactly(1), x) }},
		{"sqrt", 1, func(x, _, _ *big.Float) *big.Float { return new(big.Float).SetPrec(400).Sqrt(x) }},
	}
	for typ, round := range rounds {
		f := formats[typ]
		for _, op := range ops {
			for _, mod := range []string{"rn", "rz", "rm", "rp"} {
				if f.bits == 16 && (mod != "rn" || op.name == "div" || op.sources == 1) {
					continue
				}
				text := fmt.Sprintf("%s.%s.%s %%d, %%x0, %%x1, %%x2;", op.name, mod, typ)
				text = text[:len(text)-1-5*(3-op.sources)] + ";"
				b := newBench(t, map[int]string{16: "b16", 32: "b32", 64: "b64"}[f.bits], text)
				for range 200 {
					sources := make([]uint64, op.sources)
					values := make([]*big.Float, 3)
					usable := true
					for i := range sources {
						sources[i] = randomBits(random, f)
						if op.name == "sqrt" {
							sources[i] &^= f.sign()
						}
						x := f.decode(sources[i])
						usable = usable && finite(x) && (x != 0 || op.name != "div" && op.name != "rcp")
						if finite(x) {
							values[i] = exactly(x)
						}
					}
					if !usable {
						continue
					}
					v := op.exact(values[0], values[1], values[2])
					if v.Sign() == 0 {
						continue
					}
					want := round(v, roundings[mod])
					require.Equal(t, want, b.call(t, sources...), "%s %x, exactly %v", text, sources, v.Text('g', 30))
				}
			}
		}
	}
}

// TestFMATies: sums that lie just beside the middle of two numbers, where rounding twice
// goes wrong.
func TestFMATies(t *testing.T) {
	b := newBench(t, "f32", "fma.rn.f32 %d, %x0, %x1, %x2;")
	random := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		x := math.Float32frombits(0x3f800000 | random.Uint32()>>9)
		scale := float32(math.Ldexp(1, -random.IntN(40)-20))
		y := math.Float32frombits(math.Float32bits(scale) | random.Uint32()&1)
		z := math.Float32frombits(0x3f800000 | random.Uint32()>>9)
		v := exactly(float64(x)).SetPrec(300)
		v.Mul(v, exactly(float64(y))).Add(v, exactly(float64(z)))
		require.Equal(t, reference32(v, toNearest), b.call(t, bitsOf(x), bitsOf(y), bitsOf(z)))
	}
	// 1 + 2^-24 + 2^-60: above the middle of 1 and the next
	require.Equal(t, uint64(0x3f800001), b.call(t, 0x3f800000+1, bitsOf(1.0/(1<<24)), bitsOf(1)))
}

func TestFloats(t *testing.T) {
	check(t, `
add.f32 f32 7f800000 ff800000 = 7fffffff
add.f32 f32 3f800000 7fc12345 = 7fffffff
add.f32 f32 80000000 80000000 = 80000000
add.rm.f32 f32 3f800000 bf800000 = 80000000
add.rn.f32 f32 3f800000 bf800000 = 0
add.rm.f64 f64 3ff0000000000000 bff0000000000000 = 8000000000000000
mul.rm.f64 f64 8000000000000000 3ff0000000000000 = 8000000000000000
mul.rp.f64 f64 8000000000000000 3ff0000000000000 = 8000000000000000
add.ftz.f32 f32 400000 400000 = 0
add.f32 f32 400000 400000 = 800000
add.ftz.f32 f32 80400000 80000000 = 80000000
mul.ftz.f32 f32 00800000 3f000000 = 0
mul.f32 f32 00800000 3f000000 = 400000
add.sat.f32 f32 3f800000 3f800000 = 3f800000
add.sat.f32 f32 bf800000 0 = 0
add.sat.f32 f32 7fffffff 0 = 0
fma.rn.sat.f32 f32 3f800000 3f000000 0 = 3f000000
mad.rn.f32 f32 40000000 40400000 3f800000 = 40e00000
fma.rn.f16 b16 3c00 4000 3c00 = 4200
fma.rn.relu.f16 b16 bc00 4000 0 = 0
fma.rn.relu.f16 b16 7e00 4000 0 = 7fff
fma.rn.bf16 b16 3f80 4000 3f80 = 4040
fma.rn.f16x2 b32 3c00c000 40004000 3c003c00 = 4200c200
fma.rn.bf16x2 b32 3f80c000 40004000 3f803f80 = 4040c040
add.f16 b16 0001 0001 = 2
add.ftz.f16 b16 0001 0001 = 0
add.sat.f16 b16 4000 0 = 3c00
add.f16x2 b32 3c003c00 3c00bc00 = 40000000
sub.bf16x2 b32 3f803f80 3f800000 = 3f80
mul.f16 b16 7bff 4000 = 7c00
add.rn.f32x2 b64 3f80000040000000 3f8000003f800000 = 4000000040400000
div.rn.f32 f32 3f800000 0 = 7f800000
div.full.f32 f32 3f800000 40000000 = 3f000000
div.full.ftz.f32 f32 7e800000 7e800000 = 3f800000
div.approx.f32 f32 7e800000 7f000000 = 0
div.approx.f32 f32 ff800000 7f000000 = 7fffffff
div.approx.f32 f32 40800000 40000000 = 40000000
rcp.approx.ftz.f32 f32 1 = 7f800000
rcp.approx.ftz.f32 f32 80000000 = ff800000
rcp.approx.f32 f32 ff800000 = 80000000
rcp.approx.ftz.f64 f64 400fffffffffffff = 3fd0000000000000
rsqrt.approx.f32 f32 80000000 = ff800000
rsqrt.approx.f32 f32 40800000 = 3f000000
rsqrt.approx.f32 f32 7f800000 = 0
rsqrt.approx.f32 f32 bf800000 = 7fffffff
rsqrt.approx.f64 f64 4010000000000000 = 3fe0000000000000
rsqrt.approx.f64 f64 4022000000000000 = 3fd5555555555555
rsqrt.approx.ftz.f64 f64 4000000000000001 = 3fe6a09e00000000
rcp.approx.ftz.f64 f64 8000000000000001 = fff0000000000000
sqrt.approx.f32 f32 80000000 = 80000000
sqrt.rn.f32 f32 40800000 = 40000000
sqrt.rn.f32 f32 bf800000 = 7fffffff
ex2.approx.ftz.f32 f32 40400000 = 41000000
ex2.approx.ftz.f32 f32 ff800000 = 0
ex2.approx.ftz.f32 f32 7f800000 = 7f800000
ex2.approx.ftz.f32 f32 c2fe0000 = 0
ex2.approx.f32 f32 c2fe0000 = 400000
ex2.approx.f16x2 b32 40003c00 = 44004000
ex2.approx.ftz.bf16 b16 4000 = 4080
lg2.approx.f32 f32 41000000 = 40400000
lg2.approx.f32 f32 80000000 = ff800000
lg2.approx.ftz.f32 f32 1 = ff800000
lg2.approx.f32 f32 bf800000 = 7fffffff
sin.approx.f32 f32 80000000 = 80000000
sin.approx.f32 f32 7f800000 = 7fffffff
cos.approx.ftz.f32 f32 0 = 3f800000
tanh.approx.f32 f32 7f800000 = 3f800000
tanh.approx.bf16x2 b32 0000ff80 = bf80
neg.f32 f32 0 = 80000000
abs.f32 f32 bf800000 = 3f800000
abs.ftz.f32 f32 80000001 = 0
neg.ftz.f32 f32 1 = 80000000
neg.f16x2 b32 3c00bc00 = bc003c00
abs.bf16 b16 bf80 = 3f80
neg.f64 f64 3ff0000000000000 = bff0000000000000
copysign.f32 f32 80000000 3f800000 = bf800000
copysign.f64 f64 0 bff0000000000000 = 3ff0000000000000
`)
}

func TestMinMax(t *testing.T) {
	check(t, `
min.f32 f32 0 80000000 = 80000000
min.f32 f32 80000000 0 = 80000000
max.f32 f32 0 80000000 = 0
max.f32 f32 80000000 0 = 0
max.f32 f32 7fc00001 3f800000 = 3f800000
max.f32 f32 3f800000 7fc00001 = 3f800000
max.f32 f32 7fc00001 ffc00000 = 7fffffff
max.NaN.f32 f32 3f800000 7fc00001 = 7fffffff
min.NaN.f32 f32 7fc00001 3f800000 = 7fffffff
max.f32 f32 3f800000 40000000 = 40000000
min.f32 f32 bf800000 c0000000 = c0000000
max.ftz.f32 f32 1 80000000 = 0
min.ftz.f32 f32 3f800000 1 = 0
min.xorsign.abs.f32 f32 c0400000 3f800000 = bf800000
max.xorsign.abs.f32 f32 c0400000 bf800000 = 40400000
max.NaN.xorsign.abs.f32 f32 c0400000 7fc00000 = 7fffffff
max.f64 f64 8000000000000000 0 = 0
min.f64 f64 7ff8000000000000 3ff0000000000000 = 3ff0000000000000
max.f16 b16 8000 0 = 0
max.NaN.f16x2 b32 3c007e00 40003c00 = 40007fff
min.bf16x2 b32 3f804000 bf807fc0 = bf804000
max.f16 b16 fc00 7e00 = fc00
`)
}

func TestExponential(t *testing.T) {
	for x := -160.0; x < 140; x += 0.0137 {
		require.InEpsilon(t, math.Exp2(x), exp2(x), 1e-12, x)
	}
}

// TestLiterals: decimal ones are f64 and become what the instruction works on.
func TestLiterals(t *testing.T) {
	for text, want := range map[string]uint64{
		"add.f32 %d, %x0, 1.5;":                  0x40200000,
		"add.f32 %d, %x0, -1.5;":                 0xbf000000,
		"add.f32 %d, %x0, 0f3fc00000;":           0x40200000,
		"mov.f32 %d, 0.5;":                       0x3f000000,
		"mov.f64 %d, 0.5;":                       0x3fe0000000000000,
		"add.f64 %d, 0d3ff0000000000000, 0.25;":  0x3ff4000000000000,
		"add.f64 %d, -0d3ff0000000000000, 0.25;": 0xbfe8000000000000,
	} {
		require.Equal(t, want, newBench(t, "b64", text).call(t, 0x3f800000), text)
	}
}
