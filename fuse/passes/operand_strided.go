package passes

import (
	"maps"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// stridedProduct is a product worth copies of operands that tiles would gather element by element: each element of such an operand
// is read again for every tile of the other side.
var stridedProduct = largeProduct{rows: 17, depth: 17, work: 1 << 24}

// copyStrided copies operands of 16-bit products that do not lie as tiles want them, such as those whose axis of heads or of batches
// is last, or weights with taps first. In the copies the terms of the sum are last. The default sizes decide; the graph then
// records for which sizes it was rewritten.
func copyStrided(g *ir.Graph) {
	if !mayAddKernels(g) {
		return
	}
	sizes, reads := algebra.DefaultSizes(g), onlyReads(g)
	insertBefore(g, func(v *ir.Value) (made []*ir.Value) {
		if !form.IsTileProduct(v) {
			return nil
		}
		a, b := form.SidesOf(v)
		if a == nil || b == nil || !halfLoad(a) || !halfLoad(b) || !stridedProduct.holds(v, a, b, sizes) {
			return nil
		}
		if p := windowedProduct(v); p != nil && len(p.taps()) > 0 {
			return nil // windows are laid out in their own way
		}
		sides := [2]*ir.Expr{a, b}
		for i, side := range sides {
			load := form.WithoutWidening(side)
			if !isStrided(g, v, reads[v], load, form.WithoutWidening(sides[1-i])) {
				continue
			}
			copied := copyAlongSum(g, v, load, sizes)
			sides[i], made = ir.Cast(copied, side.Type).At(side.Span), append(made, copied.From)
		}
		if len(made) == 0 {
			return nil
		}
		v.Body = ir.Apply(ir.OpMul, sides[0], sides[1]).At(v.Body.Span)
		if large := stridedProduct.at(v, a, b); large != nil {
			g.For = ir.Join(ir.OpOr, g.For, large)
		}
		return made
	})
}

// copyAlongSum is a load of a new value that holds what a side of a product reads, with the terms of the sum last, and zeros behind
// these up to a whole line of memory where they are no whole number of accesses at the default sizes.
func copyAlongSum(g *ir.Graph, v *ir.Value, load *ir.Expr, sizes map[string]int64) *ir.Expr {
	free := ir.FreeRanges(load)
	ranges := slices.DeleteFunc(algebra.AllRanges(v), func(r *ir.Range) bool { return !free[r] })
	size, row := int64(load.Type.Size()), ranges[len(ranges)-1].Extent
	if !wholeAt(row, forecast.CopyAlign/size, sizes, g.Facts()) {
		row = roundedUp(row, forecast.LineBytes/size, g.Facts())
	}
	return ir.Load(layOver(g, v, "operand", load, ranges, row), ir.Indices(ranges), nil).At(load.Span)
}

// readsPart reports whether a load reads a tensor, or a part of it, each element once: at a range of its own along each axis of several
// elements, perhaps from a constant place on.
func readsPart(load *ir.Expr) bool {
	seen := map[*ir.Range]bool{}
	for d, at := range load.Args {
		if algebra.IsUnit(load.From.Axes[d]) {
			continue
		}
		if at.Op == ir.OpAdd && at.Args[1].Op == ir.OpConst {
			at = at.Args[0]
		}
		if at.Op != ir.OpRange || seen[at.Range] {
			return false
		}
		seen[at.Range] = true
	}
	return true
}

// isStrided reports whether one side of a product is a tensor, or a part of it, that does not lie as tiles want it. They want the innermost of the
// rows that it alone has, or of the terms of the sum, to be neighbours in memory, and rows the further apart the further out their
// range is.
func isStrided(g *ir.Graph, v *ir.Value, by onlyRead, load, other *ir.Expr) bool {
	own, _, _ := productAxes(v, form.AxesIn(v, load), form.AxesIn(v, other))
	rows, terms := algebra.Widened(own), algebra.Widened(v.Reduce.Ranges)
	if !readsPart(load) || load.Fill != nil || len(rows) == 0 || len(terms) == 0 {
		return false
	}
	turned, row := stridesAlong(load, by.inOrder(v, rows), g.Facts())
	_, term := stridesAlong(load, terms[len(terms)-1:], g.Facts())
	return row != nil && term != nil && (turned || !row.IsConst(1) && !term.IsConst(1))
}

// onlyRead is where a value is read, by another that is no reduction: in one place, and the value is no result itself.
type onlyRead struct {
	reader *ir.Value
	load   *ir.Expr
}

// onlyReads are those of the values of a graph that are read so.
func onlyReads(g *ir.Graph) map[*ir.Value]onlyRead {
	out, reads := map[*ir.Value]onlyRead{}, map[*ir.Value]int{}
	for _, o := range g.Outputs {
		reads[o.Value]++
	}
	for _, u := range g.Values {
		for _, l := range u.Loads() {
			if reads[l.From]++; u.Reduce == nil {
				out[l.From] = onlyRead{u, l}
			}
		}
	}
	maps.DeleteFunc(out, func(v *ir.Value, _ onlyRead) bool { return reads[v] > 1 })
	return out
}

// inOrder sorts axes of the value that is read as those of its reader lie, which is what is written; it leaves them where there is
// no such reader.
func (r onlyRead) inOrder(v *ir.Value, axes []*ir.Range) []*ir.Range {
	if r.reader == nil {
		return axes
	}
	place := func(a *ir.Range) int {
		at := r.load.Args[slices.Index(v.Axes, a)]
		return slices.IndexFunc(r.reader.Axes, func(b *ir.Range) bool { return ir.DependsOn(at, b) })
	}
	return slices.SortedStableFunc(slices.Values(axes), func(a, b *ir.Range) int { return place(a) - place(b) })
}
