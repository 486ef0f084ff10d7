package cpu

import "math"

// Elementary functions of float32 tiles. Polynomials are evaluated in float64,
// which costs a scalar unit nothing more and leaves about one rounding of error.

const (
	log2e = 1 / math.Ln2
	ln2hi = 6.93147180369123816490e-01
	ln2lo = 1.90821492927058770002e-10
	// magic added to and taken from a small number rounds it to an integer.
	magic = 3 << 51
)

// exp2Int is 2**n for -1022 <= n <= 1023.
func exp2Int(n float64) float64 { return math.Float64frombits(uint64(int64(n)+1023) << 52) }

// expReduced is e**x for |x| < 700 to about 1e-9.
func expReduced(x float64) float64 {
	n := x*log2e + magic - magic
	r := x - n*ln2hi - n*ln2lo
	p := 1 + r*(1+r*(1./2+r*(1./6+r*(1./24+r*(1./120+r*(1./720+r*(1./5040)))))))
	return p * exp2Int(n)
}

func expF32(dst, a []float32) {
	a = a[:len(dst)]
	for i, v := range a {
		dst[i] = exp1(v)
	}
}

func exp1(v float32) float32 {
	switch {
	case v != v:
		return v
	case v > 89:
		return float32(math.Inf(1))
	case v < -104:
		return 0
	}
	return float32(expReduced(float64(v)))
}

func exp2F32(dst, a []float32) {
	a = a[:len(dst)]
	for i, v := range a {
		switch {
		case v > 128:
			dst[i] = float32(math.Inf(1))
		case v < -150:
			dst[i] = 0
		case v != v:
			dst[i] = v
		default:
			dst[i] = float32(expReduced(float64(v) * math.Ln2))
		}
	}
}

func logF32(dst, a []float32) {
	a = a[:len(dst)]
	for i, v := range a {
		dst[i] = float32(log1(v))
	}
}

func log2F32(dst, a []float32) {
	a = a[:len(dst)]
	for i, v := range a {
		dst[i] = float32(log1(v) * log2e)
	}
}

// log1 is the natural logarithm by atanh: log(m) = 2 atanh((m-1)/(m+1)) for the
// fraction m in [sqrt(1/2), sqrt(2)).
func log1(v float32) float64 {
	if !(v > 0) || v > math.MaxFloat32 {
		return math.Log(float64(v))
	}
	const sqrtHalf = 0x3fe6a09e00000000
	b := math.Float64bits(float64(v)) - sqrtHalf
	e := float64(int64(b) >> 52)
	m := math.Float64frombits(b&(1<<52-1) + sqrtHalf)
	s := (m - 1) / (m + 1)
	z := s * s
	p := s * (2 + z*(2./3+z*(2./5+z*(2./7+z*(2./9+z*(2./11))))))
	return e*math.Ln2 + p
}

// tanhF32 uses the odd series below 0.35, where 1 - 2/(e**2x + 1) would cancel.
func tanhF32(dst, a []float32) {
	a = a[:len(dst)]
	for i, v := range a {
		dst[i] = tanh1(v)
	}
}

func tanh1(v float32) float32 {
	x := math.Abs(float64(v))
	switch {
	case x > 10:
		return float32(math.Copysign(1, float64(v)))
	case x < 0.35:
		x := float64(v)
		z := x * x
		return float32(x * (1 + z*(-1./3+z*(2./15+z*(-17./315+z*(62./2835+z*(-1382./155925+z*(21844./6081075))))))))
	case x != x:
		return v
	}
	return float32(math.Copysign(1-2/(expReduced(2*x)+1), float64(v)))
}

func erfF32(dst, a []float32) {
	a = a[:len(dst)]
	for i, v := range a {
		dst[i] = erf1(v)
	}
}

// erf1 is the Maclaurin series below 1 and the rational approximation of W. J.
// Cody's kind in t = 1/(1 + x/2) (Numerical Recipes' erfc Chebyshev fit, 1.2e-7
// relative in erfc, so less in erf) above.
func erf1(v float32) float32 {
	x := math.Abs(float64(v))
	switch {
	case x < 1:
		z := x * x
		s := 1 + z*(-1./3+z*(1./10+z*(-1./42+z*(1./216+z*(-1./1320+z*(1./9360+z*(-1./75600+z*(1./685440+
			z*(-1./6894720+z*(1./76204800))))))))))
		return float32(2 / math.SqrtPi * float64(v) * s)
	case x > 4:
		return float32(math.Copysign(1, float64(v)))
	case x != x:
		return v
	}
	t := 1 / (1 + 0.5*x)
	q := -1.26551223 + t*(1.00002368+t*(0.37409196+t*(0.09678418+t*(-0.18628806+t*(0.27886807+
		t*(-1.13520398+t*(1.48851587+t*(-0.82215223+t*0.17087277))))))))
	return float32(math.Copysign(1-t*expReduced(q-x*x), float64(v)))
}

func sqrtV[T float](dst, a []T) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = T(math.Sqrt(float64(a[i])))
	}
}

func rsqrtV[T float](dst, a []T) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = T(1 / math.Sqrt(float64(a[i])))
	}
}

func recipV[T float](dst, a []T) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = 1 / a[i]
	}
}

func negV[T element](dst, a []T) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = -a[i]
	}
}

func absV[T float](dst, a []T) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = T(math.Abs(float64(a[i])))
	}
}
