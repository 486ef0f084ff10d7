package ir

import "math/bits"

// Int128 is an integer of 128 bits, whose sums, differences and products wrap: what indices made of data are computed in where a part
// of them may not fit 64 bits. As they wrap, any order of the operations gives the same number.
type Int128 struct {
	High int64
	Low  uint64
}

// ToInt128 is an integer of 64 bits.
func ToInt128(x int64) Int128 { return Int128{x >> 63, uint64(x)} }

// Plus is a + b.
func (a Int128) Plus(b Int128) Int128 {
	low, carry := bits.Add64(a.Low, b.Low, 0)
	return Int128{a.High + b.High + int64(carry), low}
}

// Minus is a - b.
func (a Int128) Minus(b Int128) Int128 {
	low, borrow := bits.Sub64(a.Low, b.Low, 0)
	return Int128{a.High - b.High - int64(borrow), low}
}

// Times is a * b.
func (a Int128) Times(b Int128) Int128 {
	high, low := bits.Mul64(a.Low, b.Low)
	return Int128{int64(high) + a.High*int64(b.Low) + int64(a.Low)*b.High, low}
}

// Over is a / b, rounded down; 0 where b is.
func (a Int128) Over(b Int128) Int128 {
	quotient, rest := dividedUnsigned(a.magnitude(), b.magnitude())
	if a.High^b.High >= 0 {
		return quotient
	}
	if rest != (Int128{}) {
		quotient = quotient.Plus(Int128{0, 1})
	}
	return Int128{}.Minus(quotient)
}

// Modulo is a - b * (a / b); 0 where b is.
func (a Int128) Modulo(b Int128) Int128 {
	if b == (Int128{}) {
		return b
	}
	return a.Minus(b.Times(a.Over(b)))
}

// Less reports whether a < b.
func (a Int128) Less(b Int128) bool { return a.High < b.High || a.High == b.High && a.Low < b.Low }

// Clamped is the number of 64 bits that is nearest.
func (a Int128) Clamped() int64 {
	if a.High == int64(a.Low)>>63 {
		return int64(a.Low)
	}
	return end(a.High < 0)
}

// magnitude is a without its sign, as a number without a sign.
func (a Int128) magnitude() Int128 {
	if a.High < 0 {
		return Int128{}.Minus(a)
	}
	return a
}

// dividedUnsigned divides numbers without a sign, a bit at a time; the quotient by 0 is 0.
func dividedUnsigned(a, b Int128) (quotient, rest Int128) {
	if b == (Int128{}) {
		return b, b
	}
	for range 128 {
		carry := rest.High < 0
		rest = rest.Plus(rest)
		if a.High < 0 {
			rest.Low |= 1
		}
		a, quotient = a.Plus(a), quotient.Plus(quotient)
		if carry || !rest.below(b) {
			rest = rest.Minus(b)
			quotient.Low |= 1
		}
	}
	return quotient, rest
}

// below is Less of numbers without a sign.
func (a Int128) below(b Int128) bool {
	return uint64(a.High) < uint64(b.High) || a.High == b.High && a.Low < b.Low
}

// Apply128 is the function of an operation on indices in 128 bits, where a comparison gives 0 or 1; an operation of one argument
// ignores the second.
func Apply128(op Op) func(a, b Int128) Int128 {
	truth := func(holds func(a, b Int128) bool) func(a, b Int128) Int128 {
		return func(a, b Int128) Int128 { return ToInt128(truthInt(holds(a, b))) }
	}
	switch op {
	case OpAdd:
		return Int128.Plus
	case OpSub:
		return Int128.Minus
	case OpMul:
		return Int128.Times
	case OpNeg:
		return func(a, _ Int128) Int128 { return Int128{}.Minus(a) }
	case OpFloorDiv:
		return Int128.Over
	case OpMod:
		return Int128.Modulo
	case OpMin:
		return func(a, b Int128) Int128 {
			if b.Less(a) {
				return b
			}
			return a
		}
	case OpMax:
		return func(a, b Int128) Int128 {
			if a.Less(b) {
				return b
			}
			return a
		}
	case OpLt:
		return truth(Int128.Less)
	case OpGt:
		return truth(func(a, b Int128) bool { return b.Less(a) })
	case OpLe:
		return truth(func(a, b Int128) bool { return !b.Less(a) })
	case OpGe:
		return truth(func(a, b Int128) bool { return !a.Less(b) })
	case OpEq:
		return truth(func(a, b Int128) bool { return a == b })
	case OpNe:
		return truth(func(a, b Int128) bool { return a != b })
	}
	return nil
}

// Needs128 reports whether an operation on indices made of data takes parts that may not fit 64 bits. It is computed as an Int128, of
// such parts, and clamped at the end. A comparison with what is not near the ends of 64 bits gives the same with clamped parts. leaf
// returns the bits of the expressions that it knows, as for IndexBits.
func Needs128(e *Expr, leaf func(*Expr) (bits int, known bool)) bool {
	if e.Op == OpSelect || len(e.Args) == 0 || e.Args[0].Type != Index || Apply128(e.Op) == nil {
		return false
	}
	for i, a := range e.Args {
		if MayOverflow(a, leaf) {
			return !isComparison(e.Op) || IndexBits(e.Args[1-i], leaf) > 62
		}
	}
	return false
}

// MayOverflow reports whether an index is the result of operations on data that may not fit 64 bits.
func MayOverflow(e *Expr, leaf func(*Expr) (bits int, known bool)) bool {
	if !OfData(e) {
		return false
	}
	args := e.Args
	switch e.Op {
	case OpAdd, OpSub, OpMul, OpNeg:
		return IndexBits(e, leaf) >= 64
	case OpSelect:
		args = args[1:]
	case OpFloorDiv, OpMod, OpMin, OpMax:
	default:
		return false
	}
	for _, a := range args {
		if MayOverflow(a, leaf) {
			return true
		}
	}
	return false
}
