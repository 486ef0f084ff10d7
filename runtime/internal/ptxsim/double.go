package ptxsim

import (
	"math"
	"math/big"
)

// double is the arithmetic of f64. To nearest it is Go's; other modes start from there.
func (q *floatForm) double(op string) operation {
	if q.mode == toNearest {
		return nearestDouble(op)
	}
	at := math.Float64frombits
	switch op {
	case "add":
		return single2(func(a, b uint64) uint64 { return q.fused(at(a), 1, at(b)) })
	case "sub":
		return single2(func(a, b uint64) uint64 { return q.fused(at(a), 1, -at(b)) })
	case "mul": // a zero of the product's sign leaves it as it is
		return single2(func(a, b uint64) uint64 {
			x, y := at(a), at(b)
			return q.fused(x, y, math.Copysign(0, x*y))
		})
	case "fma", "mad":
		return single3(func(a, b, c uint64) uint64 { return q.fused(at(a), at(b), at(c)) })
	case "div":
		return single2(func(a, b uint64) uint64 { return q.quotient(at(a), at(b)) })
	case "rcp":
		return single1(func(a uint64) uint64 { return q.quotient(1, at(a)) })
	case "sqrt":
		return single1(func(a uint64) uint64 { return q.root(at(a)) })
	}
	return nil
}

// nearestDouble is the arithmetic rounded to nearest.
func nearestDouble(op string) operation {
	at, bits := math.Float64frombits, math.Float64bits
	switch op {
	case "add":
		return whole2(func(d, a, b *lanes) {
			for i := range d {
				d[i] = math.Float64bits(math.Float64frombits(a[i]) + math.Float64frombits(b[i]))
			}
		})
	case "sub":
		return whole2(func(d, a, b *lanes) {
			for i := range d {
				d[i] = math.Float64bits(math.Float64frombits(a[i]) - math.Float64frombits(b[i]))
			}
		})
	case "mul":
		return whole2(func(d, a, b *lanes) {
			for i := range d {
				d[i] = math.Float64bits(math.Float64frombits(a[i]) * math.Float64frombits(b[i]))
			}
		})
	case "fma", "mad":
		return whole3(func(d, a, b, c *lanes) {
			for i := range d {
				x, y, z := math.Float64frombits(a[i]), math.Float64frombits(b[i]), math.Float64frombits(c[i])
				d[i] = math.Float64bits(math.FMA(x, y, z))
			}
		})
	case "div":
		return single2(func(a, b uint64) uint64 { return bits(at(a) / at(b)) })
	case "rcp":
		return single1(func(a uint64) uint64 { return bits(1 / at(a)) })
	case "sqrt":
		return single1(func(a uint64) uint64 { return bits(math.Sqrt(at(a))) })
	}
	return nil
}

func finite(x float64) bool { return x-x == 0 }

// fused is x*y+z in the form's mode. A sum of zero from terms of different signs is
// negative towards minus infinity (IEEE 754, 6.3).
func (q *floatForm) fused(x, y, z float64) uint64 {
	near := math.FMA(x, y, z)
	if q.mode == toNearest || !finite(x) || !finite(y) || !finite(z) {
		return math.Float64bits(near)
	}
	rest := overflow(near)
	if rest == 0 {
		rest = sumSign(x, y, z, 1, -near, 1)
	}
	if near == 0 && rest == 0 && q.mode == toMinus && math.Signbit(x*y) != math.Signbit(z) {
		near = math.Copysign(0, -1)
	}
	return q.step(near, rest)
}

// quotient is x/y in the form's mode.
func (q *floatForm) quotient(x, y float64) uint64 {
	near := x / y
	if !finite(x) || !finite(y) || y == 0 {
		return math.Float64bits(near)
	}
	rest := overflow(near)
	if rest == 0 {
		rest = sumSign(x, 1, -near, y) * int(math.Copysign(1, y))
	}
	return q.step(near, rest)
}

// root is the square root of x in the form's mode.
func (q *floatForm) root(x float64) uint64 {
	near := math.Sqrt(x)
	if !finite(near) {
		return math.Float64bits(near)
	}
	return q.step(near, sumSign(x, 1, -near, near))
}

// overflow is the sign of the exact result less an infinity that it was rounded to; 0 for
// a finite one.
func overflow(near float64) int {
	if finite(near) {
		return 0
	}
	return -int(math.Copysign(1, near))
}

// sumSign is the sign of a sum of products, computed without rounding: they span some
// 4300 bits.
func sumSign(factors ...float64) int {
	const exact = 8192
	sum := new(big.Float).SetPrec(exact)
	for i := 0; i < len(factors); i += 2 {
		p := new(big.Float).SetPrec(exact).SetFloat64(factors[i])
		sum.Add(sum, p.Mul(p, new(big.Float).SetFloat64(factors[i+1])))
	}
	return sum.Sign()
}

// step goes from the result to nearest to that in the form's mode; rest is the sign of the
// exact one less it.
func (q *floatForm) step(near float64, rest int) uint64 {
	switch {
	case rest < 0 && (q.mode == toMinus || q.mode == toZero && near > 0):
		near = math.Nextafter(near, math.Inf(-1))
	case rest > 0 && (q.mode == toPlus || q.mode == toZero && near < 0):
		near = math.Nextafter(near, math.Inf(1))
	}
	return math.Float64bits(near)
}
