package passes

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// Places of extremes. An argmax is cut into the extreme of each chunk and its place there, which share a kernel. The first
// chunk that has the extreme of all then says where the place is. A chunk in which a predicate leaves no point would have
// the lowest number there is, as one whose numbers are all that low, so reductions with a predicate stay whole.

// placed reports whether a reduction finds a place, and can be cut into chunks.
func placed(v *ir.Value) bool {
	return v.Reduce != nil && v.Reduce.Op.IsArg() && v.Reduce.Rank == nil && v.Reduce.Where == nil
}

// splitPlace makes v, the place of an extreme, an element of the places in each chunk, and returns the values that it
// then reads.
func splitPlace(g *ir.Graph, v *ir.Value, cut chunks) []*ir.Value {
	c := newChunking(g, v, cut)
	where := c.partial(g, v, v.Name+"_part", v.Body)
	c.reduce.Op = v.Reduce.Op.Extreme()
	best := c.partial(g, v, v.Name+"_best", v.Body)

	over, axes := g.NewRange(c.part.Name, c.part.Extent), g.NewAxes(v.Shape())
	first := g.Adopt(&ir.Value{Name: v.Name + "_chunk", Type: ir.I64, Axes: axes, Origin: v.Origin,
		Body:   ir.Load(best, append([]*ir.Expr{over.At()}, algebra.UnitIndices(axes)...), nil),
		Reduce: &ir.Reduction{Op: v.Reduce.Op, Ranges: []*ir.Range{over}}})
	chunk := ir.Load(first, algebra.UnitIndices(v.Axes), nil)
	// A reduction over nothing has no chunk, and its place is 0.
	in := ir.Load(where, append([]*ir.Expr{ir.Cast(chunk, ir.Index)}, algebra.UnitIndices(v.Axes)...), ir.IntNum(ir.I64, 0))
	ahead := ir.Apply(ir.OpMul, chunk, ir.Cast(ir.Apply(ir.OpMul, c.size, c.inner), ir.I64))
	v.Body, v.Reduce = ir.Cast(ir.Apply(ir.OpAdd, ahead, in), v.Type), nil
	return []*ir.Value{where, best, first}
}
