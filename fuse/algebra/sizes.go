// Package algebra answers questions about sizes, which are expressions over the symbols of a graph: how much
// something amounts to (sizes.go), which conditions imply others (conditions.go), what is a multiple of what, or
// is one where some symbols are (multiples.go, needs.go), where accesses lie in memory (offsets.go), and how far indices
// reach (reach.go). A yes is a proof; a no may be ignorance. A new kind of fact about sizes is a field of
// ir.Facts; what fuse concludes from it, and the condition that a variant makes of it, stands here.
package algebra

import (
	"slices"

	"github.com/fusec/fusec/ir"
)

// TilesOf is how many tiles of a width hold an extent, simplified.
func TilesOf(extent *ir.Expr, tile int) *ir.Expr {
	sum := ir.Apply(ir.OpAdd, extent, ir.IntConst(int64(tile-1)))
	return ir.Simplify(ir.Apply(ir.OpFloorDiv, sum, ir.IntConst(int64(tile))), ir.Facts{})
}

// AtMostSize is the condition that a size is n or less.
func AtMostSize(e *ir.Expr, n int64) *ir.Expr {
	return ir.Simplify(ir.Apply(ir.OpLe, e, ir.IntConst(n)), ir.Facts{})
}

// AtLeastSize is the condition that a size is n or more.
func AtLeastSize(e *ir.Expr, n int64) *ir.Expr {
	return ir.Simplify(ir.Apply(ir.OpLe, ir.IntConst(n), e), ir.Facts{})
}

// assumedSize stands for a symbol without a default when amounts are compared.
const assumedSize = 4096

// DefaultSizes are the default sizes of a graph's symbols, and a guess for symbols without one.
// Amounts are compared at these sizes.
func DefaultSizes(g *ir.Graph) map[string]int64 {
	out := map[string]int64{}
	for _, s := range g.Symbols {
		out[s.Name] = assumedSize
		if s.Default > 0 {
			out[s.Name] = s.Default
		}
	}
	return out
}

// HasUsualSize reports whether the program says what each symbol of a size is by default.
func HasUsualSize(g *ir.Graph, size *ir.Expr) bool {
	return !ir.Contains(size, func(e *ir.Expr) bool {
		return e.Op == ir.OpSym && !slices.ContainsFunc(g.Symbols, func(s ir.Symbol) bool { return s.Name == e.Name && s.Default > 0 })
	})
}

// unknownSize stands for a size that cannot be counted.
const unknownSize = 1e18

// Estimate is a size at the given sizes of symbols, or a very large number where it cannot be counted.
func Estimate(e *ir.Expr, sizes map[string]int64) float64 {
	v, ok := ir.EvalSize(e, sizes)
	if !ok {
		return unknownSize
	}
	return float64(v)
}

// PointsAt is the points of ranges at the given sizes.
func PointsAt(ranges []*ir.Range, sizes map[string]int64) float64 {
	n := 1.0
	for _, r := range ranges {
		n *= Estimate(r.Extent, sizes)
	}
	return min(n, unknownSize)
}

// BytesAt is the bytes of a value at the given sizes.
func BytesAt(v *ir.Value, sizes map[string]int64) float64 {
	return min(PointsAt(v.Axes, sizes)*float64(v.Type.Size()), unknownSize)
}

// Product is the points of a loop over ranges: their extents multiplied.
func Product(ranges []*ir.Range) *ir.Expr {
	out := ir.IntConst(1)
	for _, r := range ranges {
		out = ir.Apply(ir.OpMul, out, r.Extent)
	}
	return ir.Simplify(out, ir.Facts{})
}

// Bytes is the size of a value in memory.
func Bytes(v *ir.Value) *ir.Expr {
	return ir.Simplify(ir.Apply(ir.OpMul, Product(v.Axes), ir.IntConst(int64(v.Type.Size()))), ir.Facts{})
}

// IsUnit reports whether a range has one point whatever the sizes are.
func IsUnit(r *ir.Range) bool { return r.Extent.IsConst(1) }

// Widened returns the ranges that have more than one point.
func Widened(ranges []*ir.Range) []*ir.Range {
	var out []*ir.Range
	for _, r := range ranges {
		if !IsUnit(r) {
			out = append(out, r)
		}
	}
	return out
}

// SomeOf is a number of pieces that hold a size: at least one, and at most one too many.
func SomeOf(size *ir.Expr, piece int) *ir.Expr {
	return ir.Apply(ir.OpAdd, ir.Apply(ir.OpFloorDiv, size, ir.IntConst(int64(piece))), ir.IntConst(1))
}

// CeilDiv is a size divided by a constant, rounded up. It is not simplified.
func CeilDiv(e *ir.Expr, by int64) *ir.Expr {
	return ir.Apply(ir.OpFloorDiv, ir.Apply(ir.OpAdd, e, ir.IntConst(by-1)), ir.IntConst(by))
}
