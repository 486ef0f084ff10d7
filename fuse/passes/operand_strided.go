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
		if p := windowedProduct(v); !form.IsTileProduct(v) || p != nil && len(p.taps()) > 0 {
			return nil // windows are laid out in their own way
		}
		a, b := form.SidesOf(v)
		if a == nil || b == nil || !halfLoad(a) || !halfLoad(b) || !stridedProduct.holds(v, a, b, sizes) {
			return nil
		}
		large, body := stridedProduct.at(v, a, b), v.Body
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
		v.Body = ir.Apply(ir.OpMul, sides[0], sides[1]).At(body.Span)
		if large != nil {
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

// isStrided reports whether one side of a product, which is a whole tensor, does not lie as tiles want it:
// neighbours along the innermost rows that it alone has, or along the sum, are neighbours in memory, and its rows are further
// apart the further out their range is.
func isStrided(g *ir.Graph, v *ir.Value, by onlyRead, load, other *ir.Expr) bool {
	own, _, _ := productAxes(v, form.AxesIn(v, load), form.AxesIn(v, other))
	rows, terms := inOrderWritten(v, by, algebra.Widened(own)), algebra.Widened(v.Reduce.Ranges)
	if len(rows) == 0 || len(terms) == 0 || !readsWhole(load) {
		return false
	}
	facts := g.Facts()
	facts.Positive = true
	offset := ir.FlatOffset(load.From.Shape(), load.Args)
	var outer *ir.Expr
	turned := false
	for _, r := range rows {
		stride, ok := ir.Stride(offset, r, facts)
		if !ok {
			return false
		}
		turned = turned || outer != nil && ir.Decide(ir.Apply(ir.OpLt, outer, stride), facts) == ir.True
		outer = stride
	}
	along, ok := ir.Stride(offset, algebra.Innermost(terms), facts)
	return ok && (turned || !outer.IsConst(1) && !along.IsConst(1))
}

// onlyReads are, of each value that is read in one place, by one that is no reduction, and is not written itself, the reader and the load.
func onlyReads(g *ir.Graph) map[*ir.Value]onlyRead {
	out, more := map[*ir.Value]onlyRead{}, map[*ir.Value]bool{}
	for _, o := range g.Outputs {
		more[o.Value] = true
	}
	for _, u := range g.Values {
		for _, l := range u.Loads() {
			if _, twice := out[l.From]; twice || u.Reduce != nil {
				more[l.From] = true
			}
			out[l.From] = onlyRead{u, l}
		}
	}
	maps.DeleteFunc(out, func(v *ir.Value, _ onlyRead) bool { return more[v] })
	return out
}

type onlyRead struct {
	reader *ir.Value
	load   *ir.Expr
}

// inOrderWritten sorts axes of a value as they lie in what is written: where one other value reads it, by the axes of that one.
func inOrderWritten(v *ir.Value, by onlyRead, axes []*ir.Range) []*ir.Range {
	if by.reader == nil {
		return axes
	}
	place := func(a *ir.Range) int {
		at := by.load.Args[slices.Index(v.Axes, a)]
		return slices.IndexFunc(by.reader.Axes, func(r *ir.Range) bool { return ir.DependsOn(at, r) })
	}
	return slices.SortedStableFunc(slices.Values(axes), func(a, b *ir.Range) int { return place(a) - place(b) })
}

// readsWhole reports whether a load has one range, whole, as the index of each axis of a tensor that has several elements, and not
// windows, for example.
func readsWhole(load *ir.Expr) bool {
	seen := map[*ir.Range]bool{}
	if load.Fill != nil {
		return false
	}
	for d, at := range load.Args {
		if algebra.IsUnit(load.From.Axes[d]) {
			continue
		}
		if at.Op != ir.OpRange || seen[at.Range] || !ir.SameSize(at.Range.Extent, load.From.Axes[d].Extent) {
			return false
		}
		seen[at.Range] = true
	}
	return true
}
