package cpu

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/fusec/fusec/ir"
)

// ulps is the distance of a from the float64 b in units of the last place of
// the float32 nearest to b.
func ulps(a float32, b float64) float64 {
	near := float32(b)
	switch {
	case math.IsInf(float64(near), 0) || near != near:
		if a == near || a != a && near != near {
			return 0
		}
		return math.Inf(1)
	}
	size := math.Abs(float64(near))
	next := float64(math.Nextafter32(float32(size), math.MaxFloat32))
	spacing := math.Max(next-size, math.SmallestNonzeroFloat32)
	return math.Abs(float64(a)-b) / spacing
}

func TestElementaryFunctions(t *testing.T) {
	cases := []struct {
		name   string
		f      func(dst, a []float32)
		want   func(float64) float64
		lo, hi float64
		limit  float64
	}{
		{"exp", expF32, math.Exp, -110, 95, 1},
		{"fast exp", opsF32.unary[ir.OpExp], math.Exp, -110, 95, 2},
		{"fast tanh", opsF32.unary[ir.OpTanh], math.Tanh, -12, 12, 2},
		{"fast erf", opsF32.unary[ir.OpErf], math.Erf, -6, 6, 2},
		{"fast sin", unaryOp(&opsF32, ir.OpSin), math.Sin, -8000, 8000, 2},
		{"fast sin", unaryOp(&opsF32, ir.OpSin), math.Sin, -3, 3, 2},
		{"fast cos", unaryOp(&opsF32, ir.OpCos), math.Cos, -3, 3, 2},
		{"fast rsqrt", opsF32.unary[ir.OpRsqrt], func(x float64) float64 { return 1 / math.Sqrt(x) }, 0, 9, 2},
		{"fast exp2", opsF32.unary[ir.OpExp2], math.Exp2, -155, 135, 2},
		{"fast log", opsF32.unary[ir.OpLog], math.Log, 0, 100, 2},
		{"fast log", opsF32.unary[ir.OpLog], math.Log, 0.6, 1.5, 2},
		{"fast log", opsF32.unary[ir.OpLog], math.Log, 0, 3e38, 2},
		{"fast log2", opsF32.unary[ir.OpLog2], math.Log2, 0, 2, 2},
		{"fast log2", opsF32.unary[ir.OpLog2], math.Log2, 0, 1e-38, 2},
		{"exp2", exp2F32, math.Exp2, -155, 135, 1},
		{"log", logF32, math.Log, 0, 100, 1},
		{"log2", log2F32, math.Log2, 0, 2, 1},
		{"tanh", tanhF32, math.Tanh, -12, 12, 1},
		{"erf", erfF32, math.Erf, -6, 6, 1.5},
	}
	special := []float32{0, float32(math.Copysign(0, -1)), 1, -1, 1e-30, -1e-30, 1e-42, 3e38,
		float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())}
	for _, c := range cases {
		const n = 40_000
		in := append([]float32(nil), special...)
		for i := range n {
			in = append(in, float32(c.lo+(c.hi-c.lo)*float64(i)/n))
		}
		out := make([]float32, len(in))
		c.f(out[:len(special)], in[:len(special)])
		c.f(out[len(special):], in[len(special):])
		worst, at := 0.0, float32(0)
		for i, v := range in {
			want := c.want(float64(v))
			if d := ulps(out[i], want); !(d <= worst) {
				worst, at = d, v
			}
			if v == 0 && want == 0 {
				assert.Equal(t, math.Signbit(want), math.Signbit(float64(out[i])), "%s: sign at %v", c.name, v)
			}
		}
		assert.LessOrEqual(t, worst, c.limit, "%s: %v ulp at %v", c.name, worst, at)
	}
}

// TestPowers: of each pair of numbers, at any place of a tile, to within an ulp; special ones as math.Pow has them.
func TestPowers(t *testing.T) {
	f := binaryOp(&opsF32, ir.OpPow)
	r := rand.New(rand.NewPCG(5, 6))
	special := []float32{0, float32(math.Copysign(0, -1)), -2.5, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())}
	for round := range 4000 {
		n := 1 + r.IntN(40)
		a, b, out := make([]float32, n), make([]float32, n), make([]float32, n)
		for i := range a {
			a[i] = math.Float32frombits(1 + r.Uint32N(0x7f7fffff)) // any positive number
			b[i] = float32(r.NormFloat64() * math.Exp2(float64(r.IntN(12)-5)))
			if r.IntN(3) > 0 { // so that the result is a number
				a[i] = float32(math.Exp2(r.NormFloat64() * 4))
			}
		}
		if round%10 == 0 {
			a[r.IntN(n)], b[r.IntN(n)] = special[r.IntN(len(special))], special[r.IntN(len(special))]
		}
		f(out, a, b)
		for i := range out {
			want := math.Pow(float64(a[i]), float64(b[i]))
			assert.LessOrEqual(t, ulps(out[i], want), 1.0, "%v ** %v = %v, not %v", a[i], b[i], out[i], want)
		}
	}
}

// TestRoundings: a tile is rounded to what a dtype stores as its elements are one by one.
func TestRoundings(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, to := range []ir.DType{ir.BF16, ir.F16, ir.F8E4M3, ir.F8E5M2} {
		for range 2000 {
			n := 1 + r.IntN(150)
			a, got, want := make([]float32, n), make([]float32, n), make([]float32, n)
			for i := range a {
				a[i] = math.Float32frombits(r.Uint32()) // NaN and infinity among them
				if r.IntN(2) > 0 {
					a[i] = float32(r.NormFloat64())
				}
			}
			roundF32(got, a, to)
			roundTo(want, a, to)
			for i := range a {
				if want[i] == want[i] || got[i] == got[i] {
					assert.Equal(t, math.Float32bits(want[i]), math.Float32bits(got[i]), "%v as %v", a[i], to)
				}
			}
		}
	}
}

func TestSumsOfAnyLength(t *testing.T) {
	for n := range 40 {
		a, b := make([]int64, n), make([]int64, n)
		want, product, top := int64(0), int64(0), int64(-1)
		for i := range a {
			a[i], b[i] = int64(i*i), int64(3-i)
			want, product, top = want+a[i], product+a[i]*b[i], max(top, b[i])
		}
		assert.Equal(t, want, sum(a))
		assert.Equal(t, product, dot(a, b))
		assert.Equal(t, top, largest(b, -1))
	}
}

// TestDotAddsInTheOrderOfSum: to the last bit, where the products are exact.
func TestDotAddsInTheOrderOfSum(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 70 {
		a, b, products := make([]float64, n), make([]float64, n), make([]float64, n)
		for i := range a {
			a[i], b[i] = float64(float32(r.NormFloat64())), float64(float32(r.NormFloat64()))
			products[i] = a[i] * b[i]
		}
		assert.Equal(t, sum(products), dot(a, b), "%d elements", n)
	}
}

func BenchmarkElementary(b *testing.B) {
	const n = 1024
	in, out := make([]float32, n), make([]float32, n)
	for i := range in {
		in[i] = float32(i)/100 - 5
	}
	functions := map[string]func(dst, a []float32){"exp": expF32, "tanh": tanhF32, "erf": erfF32, "log": logF32}
	for name, f := range functions {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				f(out, in)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/elem")
		})
	}
}
