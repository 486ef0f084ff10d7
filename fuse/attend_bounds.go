package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Some masks depend on data, as doc[i] == doc[j] does where sequences are packed. They leave tiles empty,
// as causal masks do, but which tiles is known only at run time. So a part of a mask that reads memory,
// and varies with the query alone or with the key alone, gets its bounds computed over groups of
// positions, by reductions that are added to the graph. From the bounds of the groups in a tile the kernel
// tells whether the tile is empty or whole (attend_mask.go).

const (
	boundGroup  = 64       // positions that share a bound; tiles are multiples or divisors of it
	boundLeast  = 512      // least queries, and least keys, for which there are tiles to skip
	boundScores = 16 << 20 // least scores of all heads: their products take about ten microseconds, of which skipping tiles saves a part
)

// bounding collects the values that hold the bounds of a graph's masks.
type bounding struct {
	g      *ir.Graph
	made   []*ir.Value
	before map[*ir.Value][]*ir.Value // new values, by the value that they are inserted before
}

// boundMasks adds to the graph the bounds of what the masks of streams read, and returns them by the
// maximum whose body holds the mask. No body of the graph loads them: kernels read them only to tell which
// tiles are empty or whole.
func boundMasks(g *ir.Graph, streams []*form.Stream) map[*ir.Value][]*bounded {
	out := map[*ir.Value][]*bounded{}
	if g.OneKernel {
		return out
	}
	b := &bounding{g: g, before: map[*ir.Value][]*ir.Value{}}
	sizes := algebra.DefaultSizes(g)
	for _, s := range streams {
		if s.Chained {
			continue
		}
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

// maskParts collects the parts of a mask for which bounds can be computed. Ranges are those of the maximum
// whose body holds the mask.
type maskParts struct {
	points     []*ir.Range // of all scores
	query, key *ir.Range   // query is nil where the queries are more than one range
	batch      map[*ir.Range]bool
	found      []*ir.Expr
}

// maskPartsOf returns the ranges of a stream's scores, with no part found yet.
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

// worthBounds reports whether the tiles that may be skipped take longer than the kernel that computes the
// bounds.
func (p *maskParts) worthBounds(sizes map[string]int64) bool {
	return p.query != nil && algebra.Estimate(p.query.Extent, sizes) >= boundLeast &&
		algebra.Estimate(p.key.Extent, sizes) >= boundLeast && algebra.PointsAt(p.points, sizes) >= boundScores
}

// visit adds the parts of e for which bounds are needed, and reports whether those bounds tell anything
// about e.
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

// along returns the range with which e varies in a tile, nil for none. ok is false where e varies with
// several.
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

// extremes adds the reduction of a part, by op, over each group of positions.
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

// boundable reports whether bounds of an integer operation follow from the bounds of its operands.
// Multiplication and division need a constant operand.
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
