package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// How a product that reads its input as planes gets it so, and its weights by lines.

// layPlanes makes a product that reads its input as planes read copies where that is not so: of the input with the axes along
// which windows move last, in the order of the result's, and the channels before these; and of weights whose taps do not follow
// each other for each channel, unless threads hold them all. It returns the copies.
func (p *windowed) layPlanes(g *ir.Graph, sizes map[string]int64) (made []*ir.Value) {
	if x := p.planes(g); x != nil {
		made = append(made, x.From)
		p.v.Body = replaceLoad(p.v.Body, p.input.load, x)
	}
	if !p.rowByRow(sizes) && p.weightsAreTurned(g, sizes) {
		order := slices.Concat(p.both, p.own, []*ir.Range{p.input.channels()}, p.taps())
		w := p.lay(g, "weight", p.weight, order, order[len(order)-1])
		made = append(made, w.From)
		p.v.Body = replaceLoad(p.v.Body, p.weight, w)
	}
	return made
}

// replaceLoad is an expression with another load in the place of one.
func replaceLoad(in, load, by *ir.Expr) *ir.Expr {
	return ir.Rewrite(in, func(e *ir.Expr) *ir.Expr {
		if e.Op == ir.OpLoad && ir.Equal(e, load) {
			return by
		}
		return e
	})
}

// planes is a load of a new value that holds the input as planes; nil where the input is so already.
func (p *windowed) planes(g *ir.Graph) *ir.Expr {
	w := p.input
	place := func(d int) int { // of the result's axis that a dim of the input goes with
		return slices.IndexFunc(p.v.Axes, func(a *ir.Range) bool { return !algebra.IsUnit(a) && ir.DependsOn(w.load.Args[d], a) })
	}
	var order []int // of the input's dims but that of channels
	for d := range w.load.Args {
		if d != w.channel {
			order = append(order, d)
		}
	}
	hasSpan := func(d int) bool { return slices.ContainsFunc(w.spans, func(s span) bool { return s.dim == d }) }
	first := slices.IndexFunc(order, hasSpan)
	if first < 0 { // windows are points
		return nil
	}
	inOrder := slices.IsSortedFunc(order[first:], func(a, b int) int { return place(a) - place(b) })
	if inOrder && w.channel < order[first] {
		return nil
	}
	slices.SortStableFunc(order, func(a, b int) int { return place(a) - place(b) })
	order = slices.Insert(order, slices.IndexFunc(order, hasSpan), w.channel)
	var shape, at []*ir.Expr
	for _, d := range order {
		shape, at = append(shape, w.load.From.Axes[d].Extent), append(at, w.load.Args[d])
	}
	axes, from := g.NewAxes(shape), make([]*ir.Expr, len(order))
	for k, d := range order {
		from[d] = axes[k].At()
	}
	return ir.Load(p.adopt(g, "planes", axes, ir.Load(w.load.From, from, nil)), at, w.load.Fill).At(w.load.Span)
}

// weightsAreTurned reports whether neighbouring taps of weights are further from each other than neighbouring channels, or, of few
// results, which threads fold line by line, channels further than these.
func (p *windowed) weightsAreTurned(g *ir.Graph, sizes map[string]int64) bool {
	if p.weight.Fill != nil {
		return false
	}
	order := append([]*ir.Range{p.input.channels()}, p.taps()...)
	if len(p.both) == 0 && algebra.PointsAt(p.own, sizes) < windowRows {
		order = slices.Concat(p.own, order)
	}
	turned, _ := stridesAlong(p.weight, algebra.Widened(order), g.Facts())
	return turned
}

// stridesAlong reports whether neighbours along one of the ranges of a load are further apart in memory than those along the range
// before it, in either direction, and how far apart those along the last one are: nil where a stride is not known.
func stridesAlong(load *ir.Expr, ranges []*ir.Range, facts ir.Facts) (turned bool, innermost *ir.Expr) {
	facts.Positive = true
	offset := ir.FlatOffset(load.From.Shape(), load.Args)
	for _, r := range ranges {
		stride, ok := ir.Stride(offset, r, facts)
		if !ok {
			return turned, nil
		}
		if ir.Decide(ir.Apply(ir.OpLt, stride, ir.IntConst(0)), facts) == ir.True {
			stride = ir.Simplify(ir.Apply(ir.OpNeg, stride), facts)
		}
		turned = turned || innermost != nil && ir.Decide(ir.Apply(ir.OpLt, innermost, stride), facts) == ir.True
		innermost = stride
	}
	return turned, innermost
}
