package packed

import (
	"math/bits"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/num"
)

// bitField is a number that is held in some bits of an element of an integer tensor.
type bitField struct {
	first, width int
	signed       bool // two's complement
}

// bitFieldOf writes an integer expression as a bit field of the element from. It follows conversions,
// shifts, masks, and divisions and remainders by powers of two.
func bitFieldOf(e *ir.Expr, from *ir.Local) (f bitField, ok bool) {
	if !e.Type.IsInt() {
		return f, false
	}
	if e.Op == ir.OpLocal {
		return bitField{width: e.Type.Size() * 8, signed: e.Type.Info().Signed}, e.Local == from
	}
	if len(e.Args) == 0 {
		return f, false
	}
	if e.Op == ir.OpShr && e.Args[0].Op == ir.OpShl {
		return shiftedBack(e, from)
	}
	x, by := e.Args[0], e.Args[len(e.Args)-1]
	if _, ok := wholeConst(x); ok && e.Op.Info().Commutative {
		x, by = by, x
	}
	if f, ok = bitFieldOf(x, from); !ok {
		return f, false
	}
	if e.Op == ir.OpCast {
		return f.as(e.Type)
	}
	c, ok := wholeConst(by)
	if !ok {
		return f, false
	}
	switch e.Op {
	case ir.OpShr:
		return f.upper(c)
	case ir.OpBitAnd:
		return f.lower(c + 1)
	case ir.OpFloorDiv:
		if n, ok := exponentOf(c); ok {
			return f.upper(n)
		}
	case ir.OpMod:
		return f.lower(c)
	}
	return f, false
}

// exponentOf returns n where c is 2^n.
func exponentOf(c int64) (n int64, ok bool) {
	return int64(bits.TrailingZeros64(uint64(c))), c > 0 && c&(c-1) == 0
}

// as is the field converted to the integer type t.
func (f bitField) as(t ir.DType) (bitField, bool) {
	size := t.Size() * 8
	switch {
	case size < f.width: // the conversion cuts high bits off
		return bitField{first: f.first, width: size, signed: t.Info().Signed}, true
	case f.signed && !t.Info().Signed:
		return f, false // the sign would extend into bits that are no part of the field
	case size == f.width:
		f.signed = t.Info().Signed
	}
	return f, true
}

// upper is the field without its n lowest bits: the field shifted right.
func (f bitField) upper(n int64) (bitField, bool) {
	return bitField{first: f.first + int(n), width: f.width - int(n), signed: f.signed}, n >= 0 && n < int64(f.width)
}

// lower is the remainder of the field by n, a power of two.
func (f bitField) lower(n int64) (bitField, bool) {
	switch width, ok := exponentOf(n); {
	case !ok || width == 0:
		return f, false
	case int(width) > f.width:
		return f, !f.signed // the sign of a signed field would be copied into the bits above
	default:
		return bitField{first: f.first, width: int(width)}, true
	}
}

// shiftedBack is (x << a) >> b, which keeps the bits of x from b-a on. Programs extend the sign of a field
// in this way.
func shiftedBack(e *ir.Expr, from *ir.Local) (f bitField, ok bool) {
	up, down := e.Args[0], e.Args[1]
	f, ok = bitFieldOf(up.Args[0], from)
	a, okA := wholeConst(up.Args[1])
	b, okB := wholeConst(down)
	size := int64(e.Type.Size() * 8)
	first, end := b-a, size-a // the bits of x that are kept
	if !ok || !okA || !okB || first < 0 || b >= size || end > int64(f.width) {
		return f, false
	}
	return bitField{first: f.first + int(first), width: int(end - first), signed: e.Type.Info().Signed}, true
}

// wholeConst is the value of a constant of an integer type.
func wholeConst(e *ir.Expr) (int64, bool) {
	if e.Op == ir.OpCast && e.Type.IsInt() {
		return wholeConst(e.Args[0])
	}
	return e.Int, e.Op == ir.OpConst && (e.Type.IsInt() || e.Type == ir.Index)
}

// evaluation computes expressions for one value of a field of the element from.
type evaluation struct {
	from *ir.Local
	raw  int64 // the bits of the field
}

// number is a value of an expression: i for an integer or a bool, f for a float.
type number struct {
	i int64
	f float64
}

// only returns the field through which an expression reads the element, where there is exactly one.
func (x *evaluation) only(e *ir.Expr) (f bitField, ok bool) {
	ok = true
	found := false
	ir.Walk(e, func(e *ir.Expr) bool {
		one, is := bitFieldOf(e, x.from)
		switch {
		case is:
			ok = ok && (!found || one == f)
			f, found = one, true
			return false
		case e.Op == ir.OpLocal && e.Local == x.from:
			ok = false
		}
		return ok
	})
	return f, ok && found
}

// value computes an expression as a kernel does, which holds floats in f32.
func (x *evaluation) value(e *ir.Expr) (number, bool) {
	if f, ok := bitFieldOf(e, x.from); ok {
		v := x.raw
		if f.signed && v >= 1<<(f.width-1) {
			v -= 1 << f.width
		}
		return number{i: v}, true
	}
	if e.Op == ir.OpConst {
		return number{i: e.Int, f: e.Val}, true
	}
	var args [3]number
	for i, a := range e.Args {
		v, ok := x.value(a)
		if !ok || i == len(args) {
			return number{}, false
		}
		args[i] = v
	}
	row := e.Op.Info()
	float := len(e.Args) > 0 && e.Args[len(e.Args)-1].Type.IsFloat()
	switch {
	case len(e.Args) == 0:
		return number{}, false
	case e.Op == ir.OpCast:
		return converted(args[0], e.Args[0].Type, e.Type), true
	case e.Op == ir.OpSelect:
		return args[2-args[0].i], true
	case float && row.Float != nil:
		f := row.Float(args[0].f, args[1].f, args[2].f)
		if !e.Type.IsFloat() {
			return number{i: int64(f)}, true
		}
		return number{f: num.Round(ir.F32, f)}, true
	case !float && row.Int != nil:
		return number{i: num.RoundInt(e.Type, row.Int(args[0].i, args[1].i, args[2].i))}, true
	}
	return number{}, false
}

func converted(v number, from, to ir.DType) number {
	switch {
	case from.IsFloat() && to.IsFloat():
		return v
	case to.IsFloat():
		return number{f: float64(v.i)}
	case from.IsFloat():
		return number{i: num.FloatToInt(to, v.f)}
	}
	return number{i: num.RoundInt(to, v.i)}
}

// wholeRange is a range of whole numbers, both ends included.
type wholeRange struct{ lo, hi int64 }

// mostWhole is the largest magnitude that wholeRangeOf accepts: f32 holds it, and so do integers from i16
// on.
const mostWhole = 1 << 10

// wholeRangeOf bounds an expression whose values are whole numbers. ok is false where they may not be
// whole, or may be large.
func wholeRangeOf(e *ir.Expr) (in wholeRange, ok bool) {
	info := e.Type.Info()
	if e.Op == ir.OpLocal || e.Op == ir.OpRead {
		in.hi = int64(info.Max)
		if info.Signed {
			in.lo = -in.hi - 1
		}
		return in, e.Type.IsInt() && info.Size == 1
	}
	if in, ok = resultRange(e); !ok {
		return in, false
	}
	// An integer type may wrap.
	fits := float64(in.hi) <= info.Max && (in.lo >= 0 || info.Signed && float64(in.lo) >= -info.Max)
	return in, fits && in.lo >= -mostWhole && in.hi <= mostWhole
}

// resultRange bounds the result of an operation before its conversion to the operation's type.
func resultRange(e *ir.Expr) (in wholeRange, ok bool) {
	switch e.Op {
	case ir.OpConst:
		if !e.Type.IsFloat() {
			return wholeRange{e.Int, e.Int}, true
		}
		n := int64(e.Val)
		return wholeRange{n, n}, float64(n) == e.Val
	case ir.OpBitAnd, ir.OpMod:
		c, isConst := wholeConst(e.Args[1])
		if e.Op == ir.OpBitAnd {
			return wholeRange{0, c}, isConst && c > 0
		}
		return wholeRange{0, c - 1}, isConst && c > 0
	case ir.OpCast, ir.OpNeg, ir.OpAdd, ir.OpSub:
	default:
		return in, false
	}
	args := make([]wholeRange, 2)
	for i, a := range e.Args {
		if args[i], ok = wholeRangeOf(a); !ok {
			return in, false
		}
	}
	a, b := args[0], args[1]
	switch e.Op {
	case ir.OpNeg:
		return wholeRange{-a.hi, -a.lo}, true
	case ir.OpSub:
		return wholeRange{a.lo - b.hi, a.hi - b.lo}, true
	}
	return wholeRange{a.lo + b.lo, a.hi + b.hi}, true // b is 0 for a conversion
}
