package form

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// ByteTile reports whether wgmma multiplies operands of a type of 8 bits.
func ByteTile(t ir.DType) bool { return t == ir.F8E4M3 || t == ir.F8E5M2 || t == ir.I8 }

// FactorsOf flattens a product.
func FactorsOf(e *ir.Expr) []*ir.Expr {
	if e.Op != ir.OpMul {
		return []*ir.Expr{e}
	}
	return append(FactorsOf(e.Args[0]), FactorsOf(e.Args[1])...)
}

// ProductOf multiplies factors, of which there is at least one.
func ProductOf(factors []*ir.Expr) *ir.Expr {
	out := factors[0]
	for _, f := range factors[1:] {
		out = ir.Apply(ir.OpMul, out, f)
	}
	return out
}

// IsTileProduct reports whether a value sums products of two 16-bit tensors, neither of
// which has all the rows of the other.
func IsTileProduct(v *ir.Value) bool {
	if v.Reduce == nil || v.Reduce.Op != ir.Sum || v.Reduce.Where != nil {
		return false
	}
	factors := FactorsOf(v.Body)
	for _, x := range factors {
		for _, y := range factors {
			if Halves(x) && Halves(y) && !algebra.Subset(AxesIn(v, x), AxesIn(v, y)) && !algebra.Subset(AxesIn(v, y), AxesIn(v, x)) {
				return true
			}
		}
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

// Crosses reports whether a value is a sum of products as crossing describes them.
func Crosses(v *ir.Value) bool {
	m, _ := Crossing(v)
	return m != nil
}

// Crossing returns the axes of two factors of a sum of products, each of which
// lacks an axis of the other; nil where there are none.
func Crossing(v *ir.Value) (m, n map[*ir.Range]bool) {
	if v.Reduce == nil || v.Reduce.Op != ir.Sum || v.Reduce.Where != nil || !v.Body.Type.IsFloat() || v.Body.Op != ir.OpMul {
		return nil, nil
	}
	var seen []map[*ir.Range]bool
	for _, f := range FactorsOf(v.Body) {
		axes := AxesIn(v, f)
		if len(axes) == 0 || len(ir.Loads(f)) == 0 {
			continue
		}
		for _, other := range seen {
			if !algebra.Subset(axes, other) && !algebra.Subset(other, axes) {
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

// WithoutCasts is an expression without the conversions around it.
func WithoutCasts(e *ir.Expr) *ir.Expr {
	for e.Op == ir.OpCast {
		e = e.Args[0]
	}
	return e
}

// SidesOf divides the factors of a product in two by the axes they depend on; nil
// where there are not two such sides.
func SidesOf(v *ir.Value) (a, b *ir.Expr) {
	var sides [2][]*ir.Expr
	var axes [2]map[*ir.Range]bool
	for _, f := range FactorsOf(v.Body) {
		own := AxesIn(v, f)
		switch {
		case axes[0] == nil || algebra.Subset(own, axes[0]):
			sides[0] = append(sides[0], f)
			if axes[0] == nil {
				axes[0] = own
			}
		case axes[1] == nil || algebra.Subset(own, axes[1]):
			sides[1] = append(sides[1], f)
			if axes[1] == nil {
				axes[1] = own
			}
		default:
			return nil, nil
		}
	}
	if len(sides[1]) == 0 {
		return nil, nil
	}
	return ProductOf(sides[0]), ProductOf(sides[1])
}

// WithoutWidening is a side without the casts that widen its 16-bit value.
func WithoutWidening(e *ir.Expr) *ir.Expr {
	for e.Op == ir.OpCast && !IsHalf(e.Type) {
		e = e.Args[0]
	}
	return e
}

// IsHalf reports whether a type is a 16-bit float.
func IsHalf(t ir.DType) bool { return t == ir.BF16 || t == ir.F16 }

// PlainLoad reports whether an expression is an element of a tensor, perhaps in
// another type.
func PlainLoad(e *ir.Expr) bool {
	for e.Op == ir.OpCast {
		e = e.Args[0]
	}
	return e.Op == ir.OpLoad
}
