package ptxsim

import "math"

// approximate are the opcodes whose results a GPU only approximates, whatever their
// modifiers say.
var approximate = map[string]bool{
	"ex2": true, "lg2": true, "sin": true, "cos": true, "tanh": true, "rsqrt": true,
}

// approximation is an .approx form: computed in f64, then rounded. Where the ISA gives
// the result of zeros, infinities and subnormals, functions of package math agree with it.
func (q *floatForm) approximation(op string) operation {
	if q.format == f64 {
		return approximateDouble(op, q.ftz)
	}
	if op == "div" {
		return single2(func(a, b uint64) uint64 { return q.out(q.approximateQuotient(q.in(a), q.in(b))) })
	}
	f := map[string]func(float64) float64{
		"ex2": exp2, "lg2": math.Log2, "sin": math.Sin, "cos": math.Cos, "tanh": math.Tanh,
		"rsqrt": reciprocalRoot, "sqrt": math.Sqrt, "rcp": func(x float64) float64 { return 1 / x },
	}[op]
	if f == nil {
		return nil
	}
	return single1(func(a uint64) uint64 { return q.out(f(q.in(a))) })
}

// exp2 is 2^x within 10^-12, far below what an f32 shows: the power of the nearest integer
// times the series of 2^f for f of at most a half.
func exp2(x float64) float64 {
	switch {
	case x > 1000:
		return math.Inf(1)
	case x < -1000:
		return 0
	case x != x:
		return x
	}
	n := math.RoundToEven(x)
	f := (x - n) * math.Ln2
	series := inverseFactorials[len(inverseFactorials)-1]
	for k := len(inverseFactorials) - 2; k >= 0; k-- {
		series = series*f + inverseFactorials[k]
	}
	return series * power(int(n))
}

// inverseFactorials are 1/k!.
var inverseFactorials = [12]float64{1, 1, 1. / 2, 1. / 6, 1. / 24, 1. / 120, 1. / 720, 1. / 5040, 1. / 40320,
	1. / 362880, 1. / 3628800, 1. / 39916800}

// reciprocalRoot keeps the sign of a zero (section 9.7.3.16).
func reciprocalRoot(x float64) float64 { return 1 / math.Sqrt(x) }

// approximateQuotient is div.approx.f32 (section 9.7.3.8): a divisor from 2^126 on has a
// reciprocal of zero.
func (q *floatForm) approximateQuotient(x, y float64) float64 {
	if a := math.Abs(y); a > power(126) && a < power(128) {
		return x * math.Copysign(0, y)
	}
	return x / y
}

// approximateDouble is rsqrt.approx.f64 and, of the upper 32 bits alone, what
// rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 do (sections 9.7.3.14 and 9.7.3.17).
func approximateDouble(op string, ftz bool) operation {
	f := map[string]func(float64) float64{
		"rcp": func(x float64) float64 { return 1 / x }, "rsqrt": reciprocalRoot,
	}[op]
	switch {
	case f == nil || op == "rcp" && !ftz:
		return nil
	case !ftz:
		return single1(func(a uint64) uint64 { return math.Float64bits(f(math.Float64frombits(a))) })
	}
	const upper = uint64(0xffffffff) << 32
	q := &floatForm{format: f64, ftz: true}
	return single1(func(a uint64) uint64 {
		y := math.Float64bits(f(q.in(a & upper)))
		return math.Float64bits(q.in(y)) & upper
	})
}
