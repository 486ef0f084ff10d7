package passes

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// dropIdleAxes takes axes on which a value does not depend from it: it is computed once, not for each point of such an axis. Gradients
// have them where what comes back is the same for all rows of a product, as from a mean over these. A value that is a result keeps its
// shape, and so does one that is read outside of it: the index says where that is.
func dropIdleAxes(g *ir.Graph) { dropIdle(g, func(*ir.Value) bool { return true }) }

// dropIdleOfOperands does so for values computed element by element that products of 16-bit tensors read: they are written, and of one that is
// broadcast, as the keys of all heads are, that would be once for each.
func dropIdleOfOperands(g *ir.Graph) {
	read := map[*ir.Value]bool{}
	for _, v := range g.Values {
		if form.IsTileProduct(v) {
			for _, l := range v.Loads() {
				read[l.From] = l.From.Reduce == nil
			}
		}
	}
	dropIdle(g, func(v *ir.Value) bool { return read[v] })
}

// dropIdle does so for the values for which a function says so.
func dropIdle(g *ir.Graph, of func(*ir.Value) bool) {
	shaped := map[*ir.Value]bool{}
	for _, o := range g.Outputs {
		shaped[o.Value] = true
	}
	for _, v := range g.Values {
		for _, l := range v.Loads() {
			shaped[l.From] = shaped[l.From] || l.Fill != nil
		}
	}
	kept := map[*ir.Value][]int{} // the places of the axes that a value keeps
	for _, v := range g.Values {
		v.MapExprs(func(e *ir.Expr) *ir.Expr { return withoutIdle(e, kept) })
		if v.IsInput() || shaped[v] || !of(v) {
			continue
		}
		used := usedRanges(v)
		var places []int
		for d, r := range v.Axes {
			if used[r] || algebra.IsUnit(r) {
				places = append(places, d)
			}
		}
		if len(places) < len(v.Axes) {
			kept[v] = places
			v.Axes = picked(v.Axes, places)
		}
	}
}

// usedRanges is the ranges on which any part of a value's definition depends.
func usedRanges(v *ir.Value) map[*ir.Range]bool {
	used := map[*ir.Range]bool{}
	v.MapExprs(func(e *ir.Expr) *ir.Expr {
		for r := range ir.FreeRanges(e) {
			used[r] = true
		}
		return e
	})
	return used
}

// withoutIdle is an expression whose loads have the indices of the axes that values keep.
func withoutIdle(e *ir.Expr, kept map[*ir.Value][]int) *ir.Expr {
	if len(kept) == 0 {
		return e
	}
	return ir.Rewrite(e, func(e *ir.Expr) *ir.Expr {
		if e.Op != ir.OpLoad || kept[e.From] == nil && len(e.Args) == len(e.From.Axes) {
			return e
		}
		return ir.Load(e.From, picked(e.Args, kept[e.From]), nil).At(e.Span)
	})
}

// picked is the elements of a list at some places.
func picked[T any](list []T, places []int) (out []T) {
	for _, d := range places {
		out = append(out, list[d])
	}
	return out
}
