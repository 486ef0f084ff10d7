package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// reshapeForWindows computes values in the shape in which windows read them. What a norm over groups of channels gives, for example,
// has an axis for the groups and one for all places of a channel, and a convolution reads it through a reshape: where nothing
// else reads it, it is computed as the reshape gives it, because no window moves over joined or divided axes.
func reshapeForWindows(g *ir.Graph) {
	readers, moved := countReaders(g), map[*ir.Value]bool{} // moved are the values over which windows move
	for _, v := range g.Values {
		for _, l := range loadsMultiplied(v) {
			moved[l.From] = moved[l.From] || movesOver(v, l)
		}
	}
	for _, v := range g.Values {
		if !moved[v] || v.IsInput() || v.Reduce != nil || v.Body.Op != ir.OpLoad || v.Body.Fill != nil {
			continue
		}
		if from := v.Body.From; !from.IsInput() && from.Reduce == nil && from.Type == v.Type && readers[from] == 1 {
			v.Body = ir.Simplify(form.BodyAt(v.Body), g.Facts())
		}
	}
	DropDead(g)
}

// movesOver reports whether a place that a sum reads depends both on a place of its result and on what it sums over.
func movesOver(v *ir.Value, l *ir.Expr) bool {
	axes, taps := algebra.RangeSet(v.Axes), algebra.RangeSet(v.Reduce.Ranges)
	return slices.ContainsFunc(l.Args, func(at *ir.Expr) bool { return algebra.DependsOnAny(at, axes) && algebra.DependsOnAny(at, taps) })
}
