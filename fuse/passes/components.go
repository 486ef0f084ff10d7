package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// mostComponents is the most terms of a reduction that its readers compute again: each takes a register or more of a thread.
const mostComponents = 16

// mostSplit is the most results of a reduction side by side that become reductions of their own.
const mostSplit = 4

// spreadComponents writes short reductions term by term in the reductions that read them, as the squared distance of two
// points in a sum over all pairs of points. A distance has three terms, from tensors with an element for each point; the
// distances of all pairs would be written to memory, and read by each of their readers. It does so where computing them
// again takes less time than that. Where a reader has a short axis along which the distance is the same, such as the
// coordinates of a force, each of its elements becomes a reduction of its own: one kernel then has all of them, and
// computes the distance once.
func spreadComponents(g *ir.Graph) {
	c := &components{graph: g, sizes: algebra.DefaultSizes(g), readers: readersOf(g), results: resultsOf(g)}
	spread, split := map[*ir.Value]bool{}, map[*ir.Value]map[*ir.Range]bool{}
	for _, v := range g.Values {
		if !c.isShort(v) {
			continue
		}
		if s := c.spreadOf(v); s != nil && s.pays() {
			v.Body, v.Reduce = termByTerm(v, g.Numerics), nil
			for u := range s.between {
				spread[u] = true
			}
			for r, axes := range s.split {
				split[r] = axes
			}
		}
	}
	if len(spread) == 0 {
		return
	}
	inlineWhere(g, func(v *ir.Value) bool { return spread[v] })
	insertBefore(g, func(v *ir.Value) []*ir.Value { return splitApart(g, v, split[v]) })
	inlineWhere(g, func(v *ir.Value) bool { return len(split[v]) > 0 })
	for _, v := range g.Values {
		if v.Body != nil {
			v.Body = sharedNodes(v.Body)
		}
	}
}

// sharedNodes is an expression in which equal nodes are one, so that what was substituted several times counts once.
func sharedNodes(e *ir.Expr) *ir.Expr {
	known := map[uint64][]*ir.Expr{}
	return ir.Rewrite(e, func(e *ir.Expr) *ir.Expr {
		at := known[e.Hash()]
		if i := slices.IndexFunc(at, func(k *ir.Expr) bool { return ir.Equal(k, e) }); i >= 0 {
			return at[i]
		}
		known[e.Hash()] = append(at, e)
		return e
	})
}

// components is what spreadComponents asks about a graph.
type components struct {
	graph   *ir.Graph
	sizes   map[string]int64
	readers map[*ir.Value][]*ir.Value
	results map[*ir.Value]bool
}

// isShort reports whether a value is a reduction of a few terms, a known number of them, of which neighbours do not read the same, that takes
// more memory than what it is computed from. A thread that computed others would read more than it saves, and in strides.
func (c *components) isShort(v *ir.Value) bool {
	if v.Reduce == nil || c.results[v] || !isPlain(v) || form.IsTileProduct(v) {
		return false
	}
	terms := knownPoints(v.Reduce.Ranges)
	if terms < 1 || terms > mostComponents || terms*form.CostOf(v.Body).Nodes > largestNodes {
		return false
	}
	reduced := algebra.RangeSet(v.Reduce.Ranges)
	loads := v.Loads()
	made, seen := 0.0, map[*ir.Value]bool{}
	for _, l := range loads {
		if !seen[l.From] {
			seen[l.From], made = true, made+algebra.BytesAt(l.From, c.sizes)
		}
	}
	return made > 0 && 2*made <= algebra.BytesAt(v, c.sizes) &&
		!slices.ContainsFunc(loads, func(l *ir.Expr) bool { return c.readsWindows(l, reduced) })
}

// readsWindows reports whether a load goes through windows that lie over each other: along some axis it has more places than there are elements.
// Elements that other tensors choose for each term are taken as such: each is an access of its own.
func (c *components) readsWindows(l *ir.Expr, reduced map[*ir.Range]bool) bool {
	for d, at := range l.Args {
		if at.Op == ir.OpRange || !algebra.DependsOnAny(at, reduced) {
			continue
		}
		if ir.Has(at, ir.OpLoad) || algebra.PointsAt(algebra.RangesOf(ir.FreeRanges(at)), c.sizes) > algebra.Estimate(l.From.Axes[d].Extent, c.sizes) {
			return true
		}
	}
	return false
}

// knownPoints is the points of ranges of which each has a constant extent of at most mostComponents; 0 for others.
func knownPoints(ranges []*ir.Range) int {
	n := 1
	for _, r := range ranges {
		if r.Extent.Op != ir.OpConst || r.Extent.Int > mostComponents {
			return 0
		}
		n *= int(r.Extent.Int)
	}
	return n
}

// termByTerm is the body of a value that is a reduction of a known number of terms, without the reduction. In strict
// graphs it begins with the reduction of nothing, as the reduction does.
func termByTerm(v *ir.Value, numerics ir.Numerics) *ir.Expr {
	op := v.Reduce.Op
	combine, t := op.Info().Combine, op.Accumulator(v.Body.Type)
	var out *ir.Expr
	if numerics == ir.Strict {
		out = op.Identity(v.Body.Type)
	}
	eachPoint(v.Reduce.Ranges, map[*ir.Range]*ir.Expr{}, func(at map[*ir.Range]*ir.Expr) {
		term := ir.Cast(ir.Substitute(v.Body, at), t)
		if out != nil {
			term = ir.Apply(combine, out, term).At(v.Body.Span)
		}
		out = term
	})
	return ir.Cast(out, v.Type)
}

// eachPoint calls f with each point of ranges of known extents, the last range innermost.
func eachPoint(ranges []*ir.Range, at map[*ir.Range]*ir.Expr, f func(map[*ir.Range]*ir.Expr)) {
	if len(ranges) == 0 {
		f(at)
		return
	}
	for i := range ranges[0].Extent.Int {
		at[ranges[0]] = ir.IntConst(i)
		eachPoint(ranges[1:], at, f)
	}
}

// splitApart makes v pick, along some of its axes, from reductions of their own, which it returns.
func splitApart(g *ir.Graph, v *ir.Value, along map[*ir.Range]bool) (parts []*ir.Value) {
	if len(along) == 0 || v.Reduce == nil { // it may be spread itself
		return nil
	}
	var kept, apart []*ir.Range
	for _, r := range v.Axes {
		if along[r] {
			apart = append(apart, r)
		} else {
			kept = append(kept, r)
		}
	}
	var body *ir.Expr
	eachPoint(apart, map[*ir.Range]*ir.Expr{}, func(at map[*ir.Range]*ir.Expr) {
		part := partAt(g, v, kept, at)
		load := ir.Load(part, ir.Indices(kept), nil).At(v.Origin.Span)
		if parts = append(parts, part); body == nil {
			body = load
			return
		}
		var here *ir.Expr
		for _, r := range apart {
			here = algebra.And(here, ir.Apply(ir.OpEq, r.At(), at[r]))
		}
		body = ir.Where(here, load, body)
	})
	v.Body, v.Reduce = body, nil
	return parts
}

// partAt is the reduction v at a point of some of its axes, over the axes that are kept.
func partAt(g *ir.Graph, v *ir.Value, kept []*ir.Range, at map[*ir.Range]*ir.Expr) *ir.Value {
	to, reduce := map[*ir.Range]*ir.Expr{}, *v.Reduce
	for r, e := range at {
		to[r] = e
	}
	axes := make([]*ir.Range, len(kept))
	for d, r := range kept {
		axes[d] = g.NewRange(r.Name, r.Extent)
		to[r] = axes[d].At()
	}
	reduce.Ranges = slices.Clone(reduce.Ranges)
	for d, r := range reduce.Ranges {
		reduce.Ranges[d] = g.NewRange(r.Name, r.Extent)
		to[r] = reduce.Ranges[d].At()
	}
	if reduce.Where != nil {
		reduce.Where = ir.Substitute(reduce.Where, to)
	}
	return g.Adopt(&ir.Value{Name: v.Name + "_part", Type: v.Type, Axes: axes, Body: ir.Substitute(v.Body, to), Reduce: &reduce, Origin: v.Origin})
}
