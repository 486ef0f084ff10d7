package form

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// ByteTile reports whether wgmma multiplies operands of a type of 8 bits.
func ByteTile(t ir.DType) bool { return t == ir.F8E4M3 || t == ir.F8E5M2 || t == ir.I8 }

// FactorsOf flattens a product.
func FactorsOf(e *ir.Expr) []*ir.Expr { return ir.Operands(ir.OpMul, e) }

// ProductOf multiplies factors, of which there is at least one.
func ProductOf(factors []*ir.Expr) *ir.Expr {
	out := factors[0]
	for _, f := range factors[1:] {
		out = ir.Apply(ir.OpMul, out, f)
	}
	return out
}

// summed is the factors of the terms of a plain sum; none if v is no such sum.
func summed(v *ir.Value) []*ir.Expr {
	if v.Reduce == nil || v.Reduce.Op != ir.Sum || v.Reduce.Where != nil {
		return nil
	}
	return FactorsOf(v.Body)
}

// apart reports whether each of two sets of axes has one that the other lacks.
func apart(a, b map[*ir.Range]bool) bool { return !algebra.Subset(a, b) && !algebra.Subset(b, a) }

// IsTileProduct reports whether a value sums products of two 16-bit tensors each of which lacks rows of
// the other. Integers made of such tensors are multiplied as integers.
func IsTileProduct(v *ir.Value) bool {
	var seen []map[*ir.Range]bool
	for _, f := range summed(v) {
		if !f.Type.IsFloat() || !Halves(f) {
			continue
		}
		axes := AxesIn(v, f)
		if slices.ContainsFunc(seen, func(other map[*ir.Range]bool) bool { return apart(axes, other) }) {
			return true
		}
		seen = append(seen, axes)
	}
	return false
}

// AxesIn is the axes of a value that an expression depends on.
func AxesIn(v *ir.Value, e *ir.Expr) map[*ir.Range]bool {
	free, out := ir.FreeRanges(e), map[*ir.Range]bool{}
	for _, r := range v.Axes {
		if free[r] {
			out[r] = true
		}
	}
	return out
}

// Halves reports whether an expression reads 16-bit floats.
func Halves(e *ir.Expr) bool {
	for _, l := range ir.Loads(e) {
		if l.Type == ir.BF16 || l.Type == ir.F16 {
			return true
		}
	}
	return false
}

// Crosses reports whether a value is a sum of products for which Crossing finds two factors.
func Crosses(v *ir.Value) bool {
	m, _ := Crossing(v)
	return m != nil
}

// Crossing returns the axes of two factors of a sum of products, each of which
// lacks an axis of the other; nil where there are none.
func Crossing(v *ir.Value) (m, n map[*ir.Range]bool) {
	if v.Reduce == nil || !v.Body.Type.IsFloat() {
		return nil, nil
	}
	var seen []map[*ir.Range]bool
	for _, f := range summed(v) {
		axes := AxesIn(v, f)
		if len(axes) == 0 || len(ir.Loads(f)) == 0 {
			continue
		}
		for _, other := range seen {
			if apart(axes, other) {
				return other, axes
			}
		}
		seen = append(seen, axes)
	}
	return nil, nil
}

// IsMatrixProduct reports whether v sums the products of two tensors each of which has
// axes of the result that the other lacks.
func IsMatrixProduct(v *ir.Value) bool {
	if v.Reduce == nil || v.Reduce.Op != ir.Sum {
		return false
	}
	a, b := SidesOf(v)
	return a != nil && b != nil
}

// OnlyForNaN reports whether a condition asks, of something that does not depend on the summed ranges, whether it is NaN. The sum
// then has terms where something went wrong, and there only.
func OnlyForNaN(where *ir.Expr, summed []*ir.Range) bool {
	if where == nil {
		return false
	}
	return slices.ContainsFunc(ir.Conjuncts(where), func(c *ir.Expr) bool {
		return c.Op == ir.OpIsNaN && !algebra.DependsOnAny(c, algebra.RangeSet(summed))
	})
}

// WithoutCasts is an expression without the conversions around it.
func WithoutCasts(e *ir.Expr) *ir.Expr {
	for e.Op == ir.OpCast {
		e = e.Args[0]
	}
	return e
}

// SidesOf divides the factors of a product into two sides by the axes they depend on; nil where there are
// not two such sides.
func SidesOf(v *ir.Value) (a, b *ir.Expr) {
	p, ok := Split(FactorsOf(v.Body), func(f *ir.Expr) map[*ir.Range]bool { return AxesIn(v, f) })
	if !ok {
		return nil, nil
	}
	return ProductOf(p.A), ProductOf(p.B)
}

// Sides are the factors of a product in two parts, with the ranges that each part depends on.
type Sides struct {
	A, B             []*ir.Expr
	RangesA, RangesB map[*ir.Range]bool
}

// Split divides factors into two sides by the ranges that they depend on. The first factor starts one
// side, the first that depends on more ranges starts the other, and each further factor belongs to a side
// that has all of its ranges. ok is false where a factor fits neither side, or where there is one side
// only.
func Split(factors []*ir.Expr, ranges func(*ir.Expr) map[*ir.Range]bool) (p Sides, ok bool) {
	for _, f := range factors {
		switch own := ranges(f); {
		case p.RangesA == nil:
			p.A, p.RangesA = []*ir.Expr{f}, own
		case algebra.Subset(own, p.RangesA):
			p.A = append(p.A, f)
		case p.RangesB == nil:
			p.B, p.RangesB = []*ir.Expr{f}, own
		case algebra.Subset(own, p.RangesB):
			p.B = append(p.B, f)
		default:
			return p, false // the factor depends on ranges of both sides
		}
	}
	return p, len(p.B) > 0
}

// WithoutWidening is a side without the casts that widen its 16-bit value.
func WithoutWidening(e *ir.Expr) *ir.Expr {
	for e.Op == ir.OpCast && !IsHalf(e.Type) {
		e = e.Args[0]
	}
	return e
}

// IsZero reports whether an expression is the constant zero.
func IsZero(e *ir.Expr) bool { return e.Op == ir.OpConst && e.Val == 0 && e.Int == 0 }

// IsHalf reports whether a type is a 16-bit float.
func IsHalf(t ir.DType) bool { return t == ir.BF16 || t == ir.F16 }

// PlainLoad reports whether an expression is an element of a tensor, converted or not.
func PlainLoad(e *ir.Expr) bool {
	for e.Op == ir.OpCast {
		e = e.Args[0]
	}
	return e.Op == ir.OpLoad
}

// isProduct reports whether v sums products of tensors of 16-bit floats, or of f32. In f32, each of the two
// sides has to lack rows of the other: most programs sum squares of f32, and these are no scores.
func isProduct(v *ir.Value) bool {
	if v.Again || summed(v) == nil || len(FactorsOf(Uncast(v.Body))) < 2 {
		return false
	}
	t := TensorType(v.Body)
	return IsHalf(t) || t == ir.F32 && Crosses(v)
}

// TensorType is the type of all floats that e loads, a 16-bit one or f32; Invalid where they differ or are of
// another type.
func TensorType(e *ir.Expr) ir.DType {
	t := ir.Invalid
	for _, l := range ir.Loads(e) {
		if !l.Type.IsFloat() {
			continue
		}
		if !IsHalf(l.Type) && l.Type != ir.F32 || t != ir.Invalid && t != l.Type {
			return ir.Invalid
		}
		t = l.Type
	}
	return t
}

// Uncast drops conversions between floats. Under fast, kernels do not round there.
func Uncast(e *ir.Expr) *ir.Expr {
	return ir.Rewrite(e, func(e *ir.Expr) *ir.Expr {
		if e.Op == ir.OpMul {
			return ir.Apply(ir.OpMul, widened32(e.Args[0]), widened32(e.Args[1])).At(e.Span)
		}
		return e
	})
}

// widened32 is e in f32, without conversions that only narrowed it before.
func widened32(e *ir.Expr) *ir.Expr {
	if !e.Type.IsFloat() {
		return e
	}
	return ir.Cast(Stripped(e), ir.F32)
}

// Stripped is e without the float conversions around it.
func Stripped(e *ir.Expr) *ir.Expr {
	for e.Op == ir.OpCast && e.Type.IsFloat() && e.Args[0].Type.IsFloat() {
		e = e.Args[0]
	}
	return e
}
