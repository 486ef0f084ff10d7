package passes

import (
	"math"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// A reshape behind a permutation, as of an image into windows or of heads into features, leaves a product that reads one operand at
// quotients and remainders of its ranges, the digits of their indices; a pad in front leaves a guard. The tensor copy engine takes neither,
// and without it a product takes about twice as long. In a copy rows and terms follow each other again.

// digitsProduct is a product that such copies pay for. A copy reads and writes 4 bytes an element, 0.8 ps on an H200, and each row of the other
// side that meets the element takes 2.5 fs less.
var digitsProduct = largeProduct{rows: 384, depth: 64, work: 1 << 31}

// tileRun is the least neighbours along a row's digit that fill a tile: kernels take the digits of longer ones as ranges of their own.
const tileRun = 64

// mostPadded is how many times the elements of its tensor a copy may have: pads add few, windows that overlap many.
const mostPadded = 2

// copyDigits copies such operands of products of 16 bits and of tf32. It comes behind the passes that turn what is computed in front of a
// product into the order in which the product reads it. The default sizes decide; the graph then records for which sizes it was rewritten.
func copyDigits(g *ir.Graph) {
	if !mayAddKernels(g) {
		return
	}
	sizes := algebra.DefaultSizes(g)
	insertBefore(g, func(v *ir.Value) (made []*ir.Value) {
		sides, ok := engineSides(g, v)
		if !ok || !digitsProduct.holds(v, sides[0], sides[1], sizes) || windowsOverlap(v) {
			return nil
		}
		large := digitsProduct.at(v, sides[0], sides[1])
		var digits []int
		for i, side := range sides {
			load := form.WithoutWidening(side)
			switch {
			case liesInTiles(v, load, form.WithoutWidening(sides[1-i]), sizes, g.Facts()):
			case copyable(v, load, sizes):
				digits = append(digits, i)
			default:
				return nil // a copy of the other side would gain nothing
			}
		}
		for _, i := range digits {
			copied := copyAlongSum(g, v, form.WithoutWidening(sides[i]), sizes)
			sides[i], made = ir.Cast(copied, sides[i].Type).At(sides[i].Span), append(made, copied.From)
		}
		if len(made) == 0 {
			return nil
		}
		v.Body = ir.Apply(ir.OpMul, sides[0], sides[1]).At(v.Body.Span)
		if large != nil {
			g.For = ir.Join(ir.OpOr, g.For, large)
		}
		return made
	})
}

// engineSides is the sides of a product that the tensor copy engine could bring: elements of tensors of 16 bits, or of f32 where these
// are multiplied as tf32.
func engineSides(g *ir.Graph, v *ir.Value) (sides [2]*ir.Expr, ok bool) {
	if v.Reduce == nil || v.Reduce.Op != ir.Sum || v.Reduce.Where != nil || !form.Crosses(v) {
		return sides, false
	}
	a, b := form.SidesOf(v)
	if a == nil || b == nil {
		return sides, false
	}
	tf32 := g.TF32 && a.Op == ir.OpLoad && b.Op == ir.OpLoad && a.Type == ir.F32 && b.Type == ir.F32
	return [2]*ir.Expr{a, b}, tf32 || halfLoad(a) && halfLoad(b)
}

// windowsOverlap reports whether a product is a convolution whose windows overlap: these are laid out in their own way.
func windowsOverlap(v *ir.Value) bool {
	p := windowedProduct(v)
	return p != nil && slices.ContainsFunc(p.input.spans, func(s span) bool {
		return s.tap != nil && !s.tap.Extent.IsConst(float64(s.stride))
	})
}

// liesInTiles reports whether a side of a product has no guard, goes on by one distance along each of its rows and terms, and has the terms
// beside each other in the order in which the other side has them.
func liesInTiles(v *ir.Value, load, other *ir.Expr, sizes map[string]int64, facts ir.Facts) bool {
	if isGuarded(load, facts) || termsInOrder(v, other, facts) && !termsInOrder(v, load, facts) {
		return false
	}
	return affineIn(v, load, other, facts) || runsIn(load, sizes) >= tileRun
}

// isGuarded reports whether a load may be outside of its tensor, not only behind the last of the rows that tiles cut.
func isGuarded(load *ir.Expr, facts ir.Facts) bool {
	if load.Fill == nil {
		return false
	}
	for d, at := range load.Args {
		if len(ir.FreeRanges(at)) <= 1 && !ir.ProveInside(at, load.From.Axes[d].Extent, facts) {
			return true
		}
	}
	return false
}

// runsIn is the least that an index of a load is divided by.
func runsIn(load *ir.Expr, sizes map[string]int64) float64 {
	least := math.Inf(1)
	for _, at := range load.Args {
		ir.Walk(at, func(e *ir.Expr) bool {
			if (e.Op == ir.OpFloorDiv || e.Op == ir.OpMod) && len(ir.FreeRanges(e)) > 0 {
				least = min(least, algebra.Estimate(e.Args[1], sizes))
			}
			return true
		})
	}
	return least
}

// affineIn reports whether a side of a product goes on by one distance along each of its rows and terms. Digits of a batch do not count:
// they are no part of a tile.
func affineIn(v *ir.Value, load, other *ir.Expr, facts ir.Facts) bool {
	facts.Positive = true
	own, _, _ := productAxes(v, form.AxesIn(v, load), form.AxesIn(v, other))
	return !slices.ContainsFunc(slices.Concat(own, v.Reduce.Ranges), func(r *ir.Range) bool { return strideIn(load, r, facts) == nil })
}

// strideIn is how far apart neighbours along a range are in memory; nil where that is no one distance.
func strideIn(load *ir.Expr, r *ir.Range, facts ir.Facts) *ir.Expr {
	stride, ok := ir.Stride(ir.FlatOffset(load.From.Shape(), load.Args), r, facts)
	if !ok {
		return nil
	}
	return stride
}

// termsInOrder reports whether the terms of a sum are one range in memory, in the order of the sum's ranges.
func termsInOrder(v *ir.Value, load *ir.Expr, facts ir.Facts) bool {
	outer := (*ir.Expr)(nil)
	for _, r := range algebra.Widened(v.Reduce.Ranges) {
		inner := strideIn(load, r, facts)
		if inner == nil || outer != nil && !ir.SameIndex(outer, ir.Apply(ir.OpMul, inner, r.Extent), facts) {
			return false
		}
		outer = inner
	}
	return true
}

// copyable reports whether a copy of what a side of a product reads lies as the copy engine wants it, and has not many more elements than
// the tensor does. Rows whose places depend on data are copied where it takes less to pay, by alignOperands.
func copyable(v *ir.Value, load *ir.Expr, sizes map[string]int64) bool {
	access := int64(forecast.CopyAlign / load.Type.Size())
	whole := len(v.Reduce.Ranges) == 1 || wholeAt(algebra.Innermost(v.Reduce.Ranges).Extent, access, sizes, ir.Facts{})
	return whole && (load.Fill == nil || form.IsZero(load.Fill)) && rearranges(v, load, sizes)
}

// rearranges reports whether a side of a product is a tensor in another order, with not many elements more. What only moves elements is a
// copy that an earlier pass made for this product: it lies as that pass wants it.
func rearranges(v *ir.Value, load *ir.Expr, sizes map[string]int64) bool {
	made := load.From
	return (made.IsInput() || made.Reduce != nil || made.Body.Op != ir.OpLoad) && !slices.ContainsFunc(load.Args, ir.OfData) &&
		algebra.Estimate(numbersOf(v, load), sizes) <= mostPadded*algebra.PointsAt(load.From.Axes, sizes)
}

// ReadsDigits reports whether a side of a product reads a tensor in an order that is no view of it for a library: rows or terms do not go
// on by one distance.
func ReadsDigits(v *ir.Value, load, other *ir.Expr, sizes map[string]int64) bool {
	return !affineIn(v, load, other, ir.Facts{}) && rearranges(v, load, sizes)
}
