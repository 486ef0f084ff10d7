package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Masks that follow data, such as doc[i] == doc[j] where sequences are packed, leave
// tiles empty as causal masks do; which, only memory knows. A part of a mask that reads
// memory and varies with the query alone, or with the key alone, gets its bounds over
// groups of positions, as reductions of the graph like any other. What holds of a tile
// then follows from the bounds of its groups (attend_mask.go).

const (
	boundGroup  = 64       // positions that share a bound; tiles are multiples or divisors of it
	boundLeast  = 512      // queries, and keys, from which on there are tiles to skip
	boundScores = 16 << 20 // of all heads: about ten microseconds of products, to save some of
)

// bounding makes bounds for the masks of a graph.
type bounding struct {
	g      *ir.Graph
	made   []*ir.Value
	before map[*ir.Value][]*ir.Value // new values, by what reads them first
}

// boundMasks gives the masks of streams values that bound what they read, and returns
// those by the maximum whose body holds the mask. They are read for what they say of
// tiles alone, so no body of the graph loads them.
func boundMasks(g *ir.Graph, streams []*form.Stream) map[*ir.Value][]*bounded {
	out := map[*ir.Value][]*bounded{}
	if g.OneKernel {
		return out
	}
	b := &bounding{g: g, before: map[*ir.Value][]*ir.Value{}}
	sizes := algebra.DefaultSizes(g)
	for _, s := range streams {
		top := s.Weight.Max.From
		p := maskPartsOf(s)
		if len(out[top]) > 0 || !p.worthBounds(sizes) {
			continue
		}
		eachMask(top.Body, func(e *ir.Expr) { p.visit(e) })
		for _, e := range p.found {
			out[top] = append(out[top], b.bound(top, e, p))
		}
	}
	var values []*ir.Value
	for _, v := range g.Values {
		values = append(append(values, b.before[v]...), v)
	}
	g.Values = values
	return out
}

// eachMask calls do for the conditions of a logit whose other branch is -inf.
func eachMask(e *ir.Expr, do func(cond *ir.Expr)) {
	switch {
	case e.Op == ir.OpCast && e.Type.IsFloat() && e.Args[0].Type.IsFloat():
		eachMask(e.Args[0], do)
	case e.Op == ir.OpAdd:
		eachMask(e.Args[0], do)
		eachMask(e.Args[1], do)
	case e.Op == ir.OpSelect && form.IsMinusInfinity(e.Args[2]):
		do(e.Args[0])
		eachMask(e.Args[1], do)
	case e.Op == ir.OpSelect && form.IsMinusInfinity(e.Args[1]):
		do(e.Args[0])
		eachMask(e.Args[2], do)
	}
}

// maskParts finds the parts of a mask that bounds can be had of. Ranges are those of the
// maximum that the mask is in.
type maskParts struct {
	points     []*ir.Range // of all scores
	query, key *ir.Range   // query is nil where the queries are more than one range
	batch      map[*ir.Range]bool
	found      []*ir.Expr
}

// maskPartsOf is the ranges of the scores of a stream, before any part is found.
func maskPartsOf(s *form.Stream) *maskParts {
	top := s.Weight.Max.From
	p := &maskParts{key: top.Reduce.Ranges[0], batch: map[*ir.Range]bool{}}
	p.points = append(algebra.Widened(top.Axes), p.key)
	value := form.AxesIn(s.Out, s.Value)
	var queries []*ir.Range
	for d, a := range s.Weight.Max.Args {
		switch r := top.Axes[d]; {
		case algebra.IsUnit(r):
		case a.Op == ir.OpRange && !value[a.Range]:
			queries = append(queries, r)
		default:
			p.batch[r] = true
		}
	}
	if len(queries) == 1 {
		p.query = queries[0]
	}
	return p
}

// worthBounds reports whether the tiles that bounds may spare take longer than a kernel
// that computes them.
func (p *maskParts) worthBounds(sizes map[string]int64) bool {
	return p.query != nil && algebra.Estimate(p.query.Extent, sizes) >= boundLeast &&
		algebra.Estimate(p.key.Extent, sizes) >= boundLeast && algebra.PointsAt(p.points, sizes) >= boundScores
}

// visit adds the parts of e that bounds are wanted of, and reports whether those tell
// anything of e.
func (p *maskParts) visit(e *ir.Expr) bool {
	if p.varies(e) {
		if _, ok := p.along(e); ok && (e.Type.IsInt() && e.Type != ir.Index || e.Type == ir.Bool) {
			if !slices.ContainsFunc(p.found, func(x *ir.Expr) bool { return ir.Equal(x, e) }) {
				p.found = append(p.found, e)
			}
			return true
		}
	}
	switch e.Op {
	case ir.OpConst, ir.OpSym, ir.OpRange:
		return true
	case ir.OpLoad:
		return !p.varies(e)
	case ir.OpAnd, ir.OpOr:
		left, right := p.visit(e.Args[0]), p.visit(e.Args[1])
		return left || right
	case ir.OpNot, ir.OpLt, ir.OpLe, ir.OpGt, ir.OpGe, ir.OpEq, ir.OpNe:
	default:
		if !boundable(e) {
			return false
		}
	}
	before := len(p.found)
	for _, a := range e.Args {
		if !p.visit(a) {
			p.found = p.found[:before]
			return false
		}
	}
	return true
}

// varies reports whether e reads memory at places that differ inside a tile.
func (p *maskParts) varies(e *ir.Expr) bool {
	return slices.ContainsFunc(ir.Loads(e), func(l *ir.Expr) bool {
		r, ok := p.along(l)
		return r != nil || !ok
	})
}

// along is the range with which e varies in a tile, nil for none; ok is false where it
// varies with more than one.
func (p *maskParts) along(e *ir.Expr) (r *ir.Range, ok bool) {
	for free := range ir.FreeRanges(e) {
		switch {
		case p.batch[free]:
		case (free == p.query || free == p.key) && r == nil:
			r = free
		default:
			return nil, false
		}
	}
	return r, true
}

// bound makes the values that bound a part of the mask in top.
func (b *bounding) bound(top *ir.Value, e *ir.Expr, p *maskParts) *bounded {
	out := &bounded{expr: e}
	out.along, _ = p.along(e)
	free := ir.FreeRanges(e)
	for _, r := range top.Axes {
		if free[r] && r != out.along {
			out.others = append(out.others, r)
		}
	}
	low, high := ir.Min, ir.Max
	if e.Type == ir.Bool {
		low, high = ir.All, ir.Any
	}
	out.low, out.high = b.extremes(top, out, low), b.extremes(top, out, high)
	return out
}

// extremes is the reduction of a part over each group of positions.
func (b *bounding) extremes(top *ir.Value, p *bounded, op ir.Monoid) *ir.Value {
	groups := ir.Apply(ir.OpFloorDiv, ir.Apply(ir.OpAdd, p.along.Extent, ir.IntConst(boundGroup-1)),
		ir.IntConst(boundGroup))
	var shape []*ir.Expr
	for _, r := range p.others {
		shape = append(shape, r.Extent)
	}
	axes := b.g.NewAxes(append(shape, ir.Simplify(groups, b.g.Facts())))
	point := b.g.NewRange(p.along.Name, ir.IntConst(boundGroup))
	at := map[*ir.Range]*ir.Expr{}
	for d, r := range p.others {
		at[r] = axes[d].At()
	}
	group := axes[len(axes)-1].At()
	at[p.along] = ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, group, ir.IntConst(boundGroup)), point.At())
	reduce := &ir.Reduction{Op: op, Ranges: []*ir.Range{point}, Where: ir.Apply(ir.OpLt, at[p.along], p.along.Extent)}
	v := &ir.Value{Name: ir.Loads(p.expr)[0].From.Name + "_" + op.String(), Type: p.expr.Type, Axes: axes,
		Origin: top.Origin, Body: form.GuardLoads(ir.Substitute(p.expr, at)), Reduce: reduce}
	for _, u := range b.made {
		if form.SameDefinition(u, v) {
			return u
		}
	}
	b.made, b.before[top] = append(b.made, v), append(b.before[top], v)
	return b.g.Adopt(v)
}

// boundable reports whether an operation of integers has bounds that follow from those of
// its operands; constants are those it needs.
func boundable(e *ir.Expr) bool {
	switch e.Op {
	case ir.OpAdd, ir.OpSub, ir.OpNeg, ir.OpMin, ir.OpMax:
		return true
	case ir.OpCast:
		return e.Type.IsInt() && !e.Args[0].Type.IsFloat()
	case ir.OpMul:
		return e.Args[0].Op == ir.OpConst || e.Args[1].Op == ir.OpConst
	case ir.OpFloorDiv:
		return e.Args[1].Op == ir.OpConst && e.Args[1].Int > 0
	}
	return false
}
