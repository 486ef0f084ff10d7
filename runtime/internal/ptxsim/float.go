package ptxsim

import (
	"math"
	"strings"
)

// A floatForm is what the modifiers of a floating-point instruction say.
type floatForm struct {
	format       *format
	packed       bool // two in a register: f16x2, bf16x2, f32x2
	mode         rounding
	ftz          bool // subnormal sources and results are zeros of their sign
	sat          bool // the result is brought to [0, 1], NaN to 0
	relu         bool // the result is brought to [0, inf]
	nan, xorsign bool // of min and max
	approx, full bool
}

// floatFormOf is the form of an instruction; nil where it is not one on floats.
func floatFormOf(s *statement) *floatForm {
	typ, packed := strings.CutSuffix(s.last(), "x2")
	q := &floatForm{format: formats[typ], packed: packed}
	switch q.format {
	case f16, bf16, f32, f64:
	default:
		return nil
	}
	flags := map[string]*bool{"ftz": &q.ftz, "sat": &q.sat, "relu": &q.relu, "NaN": &q.nan,
		"xorsign": &q.xorsign, "abs": &q.xorsign, "approx": &q.approx, "full": &q.full}
	for _, m := range s.Mods[:len(s.Mods)-1] {
		mode, rounds := roundings[m]
		switch flag := flags[m]; {
		case flag != nil:
			*flag = true
		case rounds && len(m) == 2:
			q.mode = mode
		default:
			return nil
		}
	}
	return q
}

// in is the value of a source.
func (q *floatForm) in(b uint64) float64 {
	x := q.format.decode(b)
	if q.ftz && math.Abs(x) < power(q.format.least) {
		return math.Copysign(0, x)
	}
	return x
}

// out is the bits of a result that is exact or, for formats but f64, rounded to odd.
func (q *floatForm) out(x float64) uint64 {
	switch {
	case q.sat && !(x > 0), q.relu && x <= 0:
		x = 0
	case q.sat && x > 1:
		x = 1
	}
	if q.format == f64 {
		return math.Float64bits(x)
	}
	code := q.format.encode(x, q.mode)
	if q.ftz && code&(q.format.sign()-1) < 1<<q.format.fraction {
		code &= q.format.sign()
	}
	return code
}

// plain reports that an f32 instruction does what Go's operators do.
func (q *floatForm) plain() bool {
	return q.format == f32 && !q.packed && q.mode == toNearest && !q.ftz && !q.sat && !q.relu
}

// operation is what an opcode of arithmetic computes; nil for others.
func (q *floatForm) operation(op string) operation {
	var f operation
	switch {
	case op == "min" || op == "max":
		f = q.extreme(op == "max")
	case op == "abs" || op == "neg":
		return q.signed(op == "neg")
	case q.approx || approximate[op]:
		f = q.approximation(op)
	case q.format == f64:
		return q.double(op)
	case q.plain() && plainFloat(op) != nil:
		return plainFloat(op)
	default:
		f = q.rounding(op)
	}
	if f != nil && q.packed {
		return inHalves(f, q.format.bits)
	}
	return f
}

// rounding is the operations that are rounded once from the exact result.
func (q *floatForm) rounding(op string) operation {
	switch op {
	case "add":
		return single2(func(a, b uint64) uint64 { return q.out(q.sum(q.in(a), q.in(b))) })
	case "sub":
		return single2(func(a, b uint64) uint64 { return q.out(q.sum(q.in(a), -q.in(b))) })
	case "mul": // exact in f64
		return single2(func(a, b uint64) uint64 { return q.out(q.in(a) * q.in(b)) })
	case "fma", "mad":
		return single3(func(a, b, c uint64) uint64 { return q.out(q.sum(q.in(a)*q.in(b), q.in(c))) })
	case "div": // div.full is less exact on a GPU
		return single2(func(a, b uint64) uint64 { return q.out(oddQuotient(q.in(a), q.in(b))) })
	case "rcp":
		return single1(func(a uint64) uint64 { return q.out(oddQuotient(1, q.in(a))) })
	case "sqrt":
		return single1(func(a uint64) uint64 { return q.out(oddRoot(q.in(a))) })
	}
	return nil
}

// sum is x+y rounded to odd. A sum of zero from terms of different signs is positive,
// towards minus infinity negative (IEEE 754, 6.3).
func (q *floatForm) sum(x, y float64) float64 {
	s := oddSum(x, y)
	if s == 0 && q.mode == toMinus && math.Signbit(x) != math.Signbit(y) {
		return math.Copysign(0, -1)
	}
	return s
}

// plainFloat is the f32 operations that kernels are made of, as loops.
func plainFloat(op string) operation {
	switch op {
	case "add":
		return whole2(func(d, a, b *lanes) {
			for i := range d {
				d[i] = bits32(value32(a[i]) + value32(b[i]))
			}
		})
	case "sub":
		return whole2(func(d, a, b *lanes) {
			for i := range d {
				d[i] = bits32(value32(a[i]) - value32(b[i]))
			}
		})
	case "mul":
		return whole2(func(d, a, b *lanes) {
			for i := range d {
				d[i] = bits32(value32(a[i]) * value32(b[i]))
			}
		})
	case "fma", "mad":
		return whole3(func(d, a, b, c *lanes) {
			for i := range d {
				d[i] = bits32(fma32(value32(a[i]), value32(b[i]), value32(c[i])))
			}
		})
	}
	return nil
}

// fma32 is x*y+z rounded once. The product is exact in f64; the sum rounded to f64 and
// then to f32 is wrong only where the first makes a tie, or the result is subnormal: then
// it is rounded to odd.
func fma32(x, y, z float32) float32 {
	p := float64(x) * float64(y)
	s := p + float64(z)
	b := math.Float64bits(s)
	if b&(1<<29-1) == 1<<28 || b>>52&0x7ff < 1023-126 {
		s = oddSum(p, float64(z))
	}
	return float32(s)
}

// signed is abs and neg: they change the sign bit only, also of NaNs.
func (q *floatForm) signed(negate bool) operation {
	sign, mask := q.format.sign(), q.format.mask()
	if q.packed {
		sign |= sign << q.format.bits
		mask |= mask << q.format.bits
	}
	tiny := func(a uint64) uint64 { return a }
	if q.ftz {
		var f operation = single1(func(a uint64) uint64 { return q.out(q.in(a)) })
		if q.packed {
			f = inHalves(f, q.format.bits)
		}
		tiny = f.(single1)
	}
	switch {
	case q.ftz && negate:
		return single1(func(a uint64) uint64 { return tiny(a) ^ sign })
	case q.ftz:
		return single1(func(a uint64) uint64 { return tiny(a) &^ sign })
	case negate:
		return whole1(func(d, a *lanes) {
			for i := range d {
				d[i] = (a[i] ^ sign) & mask
			}
		})
	}
	return whole1(func(d, a *lanes) {
		for i := range d {
			d[i] = a[i] &^ sign & mask
		}
	})
}

// extreme is min and max (section 9.7.3.11): the number where the other source is a NaN,
// unless .NaN asks for that; -0 is less than +0. With .xorsign.abs it is of magnitudes, and
// gets the product's sign.
func (q *floatForm) extreme(largest bool) operation {
	if q.plain() && !q.xorsign {
		return plainExtreme(largest, q.nan)
	}
	mask, sign := q.format.mask(), q.format.sign()
	return single2(func(a, b uint64) uint64 {
		a, b = a&mask, b&mask
		negative := uint64(0)
		if q.xorsign {
			negative = (a ^ b) & sign
			a, b = a&^sign, b&^sign
		}
		x, y := q.in(a), q.in(b)
		switch {
		case x != x && y != y, q.nan && (x != x || y != y):
			return q.format.nan
		case x != x || y < x && !largest || y > x && largest:
			x = y
		case x == 0 && y == 0 && math.Signbit(y) != largest:
			x = y
		}
		return q.out(x) | negative
	})
}

// plainExtreme is min and max of f32 as a loop. Equal sources differ in their sign at
// most.
func plainExtreme(largest, nan bool) operation {
	return whole2(func(d, a, b *lanes) {
		for i := range d {
			x, y := value32(a[i]), value32(b[i])
			switch {
			case x < y && !largest, x > y && largest:
				d[i] = a[i]
			case x < y, x > y:
				d[i] = b[i]
			case x == y && largest:
				d[i] = a[i] & b[i]
			case x == y:
				d[i] = a[i] | b[i]
			case nan || x != x && y != y:
				d[i] = f32.nan
			case x != x:
				d[i] = b[i]
			default:
				d[i] = a[i]
			}
		}
	})
}
