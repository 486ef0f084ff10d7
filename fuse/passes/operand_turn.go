package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// turnOperands copies operands of 16-bit products that sum along short rows of memory which are no whole number of accesses, such
// as planes of 14 x 14 or 7 x 7 pixels: the gradient of a 1x1 convolution's weights sums over the planes of all images. In the
// copies the rows that only one side has are last, so all that is summed is one range, and each access is whole. If the
// length of rows depends on symbols, the default sizes decide; the graph then records for which sizes it was rewritten.
func turnOperands(g *ir.Graph) {
	if !mayAddKernels(g) {
		return
	}
	sizes := algebra.DefaultSizes(g)
	insertBefore(g, func(v *ir.Value) []*ir.Value {
		if !form.IsTileProduct(v) || v.Reduce.Where != nil {
			return nil
		}
		return turnSides(g, v, sizes)
	})
}

// turnSides replaces both sides of a product by such copies, where both need them, and returns these.
func turnSides(g *ir.Graph, v *ir.Value, sizes map[string]int64) []*ir.Value {
	a, b := form.SidesOf(v)
	if a == nil || b == nil || !halfLoad(a) || !halfLoad(b) || !alignedProduct.holds(v, a, b, sizes) {
		return nil
	}
	from := [2]*ir.Expr{form.WithoutWidening(a), form.WithoutWidening(b)}
	var when *ir.Expr
	for i, load := range from {
		needed, ok := brokenRows(v, load, from[1-i], sizes, g.Facts())
		if !ok {
			return nil
		}
		when = algebra.And(when, needed)
	}
	body, made := v.Body, []*ir.Value(nil)
	sides := [2]*ir.Expr{a, b}
	for i, load := range from {
		value, turned := turnedOperand(g, v, load, from[1-i])
		sides[i], made = ir.Cast(turned, sides[i].Type).At(sides[i].Span), append(made, value)
	}
	v.Body = ir.Apply(ir.OpMul, sides[0], sides[1]).At(body.Span)
	if when != nil {
		g.For = ir.Join(ir.OpOr, g.For, algebra.And(when, alignedProduct.at(v, a, b)))
	}
	return made
}

// brokenRows reports whether the sum of a product goes along rows of a tensor that are no whole number of accesses, and on behind
// other elements. when is the condition on sizes for that; nil where it always holds.
func brokenRows(v *ir.Value, load, other *ir.Expr, sizes map[string]int64, facts ir.Facts) (when *ir.Expr, ok bool) {
	if load.Fill != nil {
		return nil, false
	}
	reduced := algebra.RangeSet(v.Reduce.Ranges)
	row := algebra.Product(summedAxes(load, other, reduced))
	access := int64(forecast.CopyAlign / load.Type.Size())
	n, known := ir.EvalSize(row, sizes)
	if !known || n < 2 || n%access == 0 || ir.Multiple(row, access, facts) || n >= int64(algebra.PointsAt(v.Reduce.Ranges, sizes)) {
		return nil, false
	}
	if row.Op != ir.OpConst {
		when = ir.Apply(ir.OpNe, behindAccesses(row, load.Type), ir.IntConst(0))
	}
	return when, true
}

// turnedOperand makes a value of what one side of a product reads, with the ranges of the sum before those that only this side
// has, and zeros up to a whole access behind these, and returns it with the load that replaces the side.
func turnedOperand(g *ir.Graph, v *ir.Value, load, other *ir.Expr) (*ir.Value, *ir.Expr) {
	own, _, batch := productAxes(v, form.AxesIn(v, load), form.AxesIn(v, other))
	ranges := slices.Concat(batch, v.Reduce.Ranges, own)
	whole := roundedUp(ranges[len(ranges)-1].Extent, int64(forecast.CopyAlign/load.Type.Size()), g.Facts())
	value := layOver(g, v, "operand", load, ranges, whole)
	return value, ir.Load(value, ir.Indices(ranges), nil).At(load.Span)
}
