package passes

import (
	"cmp"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// separateOperands makes values of the operands of products that would be computed in place. Tensor cores
// then read them from memory, which is many times faster than computing them again for every tile. An
// operand that depends on a reduction stays in place: it may be part of a stream with that reduction.
func separateOperands(g *ir.Graph) {
	if !mayAddKernels(g) {
		return
	}
	sizes := algebra.DefaultSizes(g)
	insertBefore(g, func(v *ir.Value) []*ir.Value {
		if !form.IsTileProduct(v) {
			return nil
		}
		return separate(g, v, sizes)
	})
}

// separate moves the computed sides of a product to new values, and returns these.
func separate(g *ir.Graph, v *ir.Value, sizes map[string]int64) (made []*ir.Value) {
	a, b := form.SidesOf(v)
	if a == nil || b == nil {
		return nil
	}
	body := v.Body
	for _, side := range []**ir.Expr{&a, &b} {
		if computedOperand(v, *side) && !unpackedForFew(v, *side, sizes) {
			value, load := operandValue(g, v, form.WithoutWidening(*side))
			*side, made = ir.Cast(load, (*side).Type).At((*side).Span), append(made, value)
		}
	}
	if len(made) > 0 {
		v.Body = ir.Apply(ir.OpMul, a, b).At(body.Span)
	}
	return made
}

// operandValue makes a value of one side of a product, over the ranges that the side depends on, those of
// the sum last, and returns it with the load that replaces the side.
func operandValue(g *ir.Graph, v *ir.Value, inner *ir.Expr) (value *ir.Value, load *ir.Expr) {
	return operandOver(g, v, inner, rangesIn(v, inner))
}

// operandInOrder does the same with the ranges in the order of memory of the largest tensor that the side reads: the value is then
// stored as that tensor is read.
func operandInOrder(g *ir.Graph, v *ir.Value, inner *ir.Expr) (value *ir.Value, load *ir.Expr) {
	ranges, sizes := rangesIn(v, inner), algebra.DefaultSizes(g)
	if loads := ir.Loads(inner); len(loads) > 0 {
		largest := slices.MaxFunc(loads, func(a, b *ir.Expr) int {
			return cmp.Compare(algebra.PointsAt(algebra.RangesOf(ir.FreeRanges(a)), sizes), algebra.PointsAt(algebra.RangesOf(ir.FreeRanges(b)), sizes))
		})
		place := func(r *ir.Range) int {
			return slices.IndexFunc(largest.Args, func(at *ir.Expr) bool { return ir.DependsOn(at, r) })
		}
		slices.SortStableFunc(ranges, func(a, b *ir.Range) int { return cmp.Compare(place(a), place(b)) })
	}
	return operandOver(g, v, inner, ranges)
}

// rangesIn are the axes of a product and the ranges of its sum, in this order, that an expression depends on.
func rangesIn(v *ir.Value, inner *ir.Expr) (ranges []*ir.Range) {
	free := ir.FreeRanges(inner)
	for _, r := range algebra.AllRanges(v) {
		if free[r] {
			ranges = append(ranges, r)
		}
	}
	return ranges
}

func operandOver(g *ir.Graph, v *ir.Value, inner *ir.Expr, ranges []*ir.Range) (value *ir.Value, load *ir.Expr) {
	shape, rename := []*ir.Expr(nil), map[*ir.Range]*ir.Expr{}
	for _, r := range ranges {
		shape = append(shape, r.Extent)
	}
	axes := g.NewAxes(shape)
	for d, r := range ranges {
		rename[r] = axes[d].At()
	}
	value = g.Adopt(&ir.Value{Name: v.Name + "_operand", Type: inner.Type, Axes: axes, Body: ir.Substitute(inner, rename), Origin: v.Origin})
	return value, ir.Load(value, ir.Indices(ranges), nil).At(inner.Span)
}

// computedOperand reports whether a factor of a product is computed from tensors and has a 16-bit value,
// and the other side has enough rows for tiles.
func computedOperand(v *ir.Value, factor *ir.Expr) bool {
	factor = form.WithoutWidening(factor)
	if form.PlainLoad(factor) || !form.IsHalf(factor.Type) || !form.Halves(factor) {
		return false
	}
	for _, l := range ir.Loads(factor) {
		if l.From.Reduce != nil {
			return false
		}
	}
	return repeatsInTiles(v, factor)
}

// repeatsInTiles reports whether a factor of a product depends on rows and on what is summed, and the other side has
// enough rows for tiles: each tile needs the factor again.
func repeatsInTiles(v *ir.Value, factor *ir.Expr) bool {
	free := ir.FreeRanges(factor)
	own, other := false, int64(1)
	for _, r := range v.Axes {
		switch {
		case free[r]:
			own = true
		case r.Extent.Op == ir.OpConst:
			other *= r.Extent.Int
		default:
			other = forecast.ContractLeast
		}
	}
	return own && other >= forecast.ContractLeast && algebra.DependsOnAny(factor, algebra.RangeSet(v.Reduce.Ranges))
}

// unpackedForFew reports whether a factor of a product takes more bytes than what it is computed from, as
// an unpacked weight does, and all rows of the other side fit one tile. Computing the factor in place
// then reads fewer bytes and repeats nothing. But where the sum is known to be no whole number of accesses, each element would be computed
// by itself, which takes longer than memory does.
func unpackedForFew(v *ir.Value, factor *ir.Expr, sizes map[string]int64) bool {
	factor = form.WithoutWidening(factor)
	if columns := algebra.Product(v.Reduce.Ranges); columns.Op == ir.OpConst && columns.Int%int64(forecast.AccessBytes/factor.Type.Size()) != 0 {
		return false
	}
	free := ir.FreeRanges(factor)
	var own, others []*ir.Range
	for _, r := range algebra.AllRanges(v) {
		if free[r] {
			own = append(own, r)
		} else {
			others = append(others, r)
		}
	}
	read := 0.0
	for _, l := range ir.Loads(factor) {
		read += algebra.BytesAt(l.From, sizes)
	}
	return read < algebra.PointsAt(own, sizes)*float64(factor.Type.Size()) && algebra.PointsAt(others, sizes) <= tilePoints
}
