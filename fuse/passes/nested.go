package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Limits of joining nested reductions.
const (
	nestedAgain   = 3  // most reads of an element where the windows of the outer reduction overlap
	nestedColumns = 64 // most columns of windows, which a thread folds alone
)

// joinNested makes one reduction of two: sum[i] sum[j] f(i, j) is sum[i, j] f(i, j). Means over one axis after another,
// and pooling written axis by axis, are such pairs. The inner sums are then not written, and no second kernel waits for
// them. The order of additions changes, so strict graphs keep both reductions.
func joinNested(g *ir.Graph) {
	readers, sizes := countReaders(g), algebra.DefaultSizes(g)
	joined := false
	for _, v := range g.Values {
		for n := nestedIn(g, v, readers); n != nil && n.pays(v, sizes); n = nestedIn(g, v, readers) {
			n.join(g, v)
			joined = true
		}
	}
	if joined {
		DropDead(g)
	}
}

// nested is a reduction whose terms are results of another one, times constants.
type nested struct {
	inner *ir.Value
	load  *ir.Expr // the load of the inner reduction
	outer []factor

	inside *ir.Expr // the condition that the load is inside; nil if it always is
}

// nestedIn describes v as a reduction of the results of one other reduction that nothing else reads; nil if v
// is not one.
func nestedIn(g *ir.Graph, v *ir.Value, readers map[*ir.Value]int) *nested {
	if !joinable(g, v) || v.Reduce.Where != nil && ir.Has(v.Reduce.Where, ir.OpLoad) {
		return nil
	}
	n, ranges, e := &nested{}, algebra.RangeSet(v.Reduce.Ranges), v.Body
	for {
		if v.Reduce.Op == ir.Sum && e.Type.IsFloat() {
			var outer []factor
			e, outer = splitFactors(e, ranges, func(f factor) bool { return allFinite([]factor{f}) })
			n.outer = append(n.outer, outer...)
		}
		if e == nil || e.Op != ir.OpLoad || e.Type != v.Body.Type || readers[e.From] != 1 || e.From.IsInput() {
			return nil
		}
		if e.From.Reduce != nil {
			break
		}
		e = form.BodyAt(e)
	}
	if e.Fill != nil { // elements outside do not change a reduction if the fill is its identity
		facts := g.Facts()
		facts.Within = algebra.AllRanges(v)
		n.inside = ir.Inside(e.From.Shape(), e.Args, facts)
		if n.inside != nil && !ir.Equal(e.Fill, ir.Cast(v.Reduce.Op.Identity(e.Type), e.Type)) {
			return nil
		}
	}
	n.inner, n.load = e.From, e
	if u := n.inner; !joinable(g, u) || u.Reduce.Op != v.Reduce.Op || u.Body.Type != v.Body.Type || !readsOnce(u) {
		return nil
	}
	return n
}

// joinable reports whether v is a reduction whose terms may be combined in any order, and whose result has the type of
// the terms.
func joinable(g *ir.Graph, v *ir.Value) bool {
	if v.Reduce == nil || v.Reduce.Rank != nil || v.Reduce.Op.IsArg() || v.Type != v.Body.Type || form.ScatterIn(v) != nil {
		return false
	}
	extreme := v.Reduce.Op == ir.Max || v.Reduce.Op == ir.Min
	return extreme || v.Body.Type == v.Reduce.Op.Accumulator(v.Body.Type) && (g.Numerics != ir.Strict || !v.Type.IsFloat())
}

// readsOnce reports whether no two points of a reduction read the same element, as in a mean; products are
// excluded.
func readsOnce(v *ir.Value) bool {
	all := algebra.Widened(algebra.AllRanges(v))
	for _, l := range ir.Loads(v.Body) {
		used := map[*ir.Range]bool{}
		for _, at := range l.Args {
			for r := range ir.FreeRanges(at) {
				used[r] = true
			}
		}
		for _, r := range all {
			if !used[r] {
				return false
			}
		}
	}
	return len(ir.Loads(v.Body)) > 0
}

// pays reports whether joining v with the inner reduction is faster. Two conditions must hold. Elements are not read
// many times more often than by the inner reduction. And there are either few columns, as in small windows, or the
// columns are all of the innermost axis of the inner results, which is contiguous. Larger windows, and those of
// different lengths, are folded faster along one axis after the other, each in vectors.
func (n *nested) pays(v *ir.Value, sizes map[string]int64) bool {
	columns := algebra.PointsAt(v.Reduce.Ranges, sizes)
	if algebra.PointsAt(v.Axes, sizes)*columns > nestedAgain*algebra.PointsAt(n.inner.Axes, sizes) {
		return false
	}
	last := algebra.Widened(n.inner.Axes)
	for d, r := range n.inner.Axes {
		if at := n.load.Args[d]; len(last) > 0 && r == last[len(last)-1] && at.Op == ir.OpRange && slices.Contains(v.Reduce.Ranges, at.Range) {
			return true
		}
	}
	uneven := v.Reduce.Where != nil || n.inner.Reduce.Where != nil || n.inside != nil
	return !uneven && n.axesApart(v) && columns*algebra.PointsAt(n.inner.Reduce.Ranges, sizes) <= nestedColumns
}

// axesApart reports whether the two reductions run along different axes of the tensor that is read. Windows of windows
// along one axis would become ranges of a few elements each.
func (n *nested) axesApart(v *ir.Value) bool {
	outer, inner := algebra.RangeSet(v.Reduce.Ranges), algebra.RangeSet(n.inner.Reduce.Ranges)
	at := map[*ir.Range]*ir.Expr{}
	for d, r := range n.inner.Axes {
		at[r] = n.load.Args[d]
	}
	for _, l := range ir.Loads(ir.Substitute(n.inner.Body, at)) {
		for _, index := range l.Args {
			if algebra.DependsOnAny(index, outer) && algebra.DependsOnAny(index, inner) {
				return false
			}
		}
	}
	return true
}

// join puts the terms of the inner reduction into v.
func (n *nested) join(g *ir.Graph, v *ir.Value) {
	at := map[*ir.Range]*ir.Expr{}
	for d, r := range n.inner.Axes {
		at[r] = n.load.Args[d]
	}
	r := *v.Reduce
	r.Ranges = append([]*ir.Range{}, r.Ranges...)
	for _, c := range n.inner.Reduce.Ranges {
		own := g.NewRange(c.Name, c.Extent)
		at[c] = own.At()
		r.Ranges = append(r.Ranges, own)
	}
	r.Where = algebra.And(r.Where, n.inside)
	if where := n.inner.Reduce.Where; where != nil {
		r.Where = algebra.And(r.Where, ir.Substitute(where, at))
	}
	v.Reduce, v.Body = &r, form.GuardLoads(ir.Substitute(n.inner.Body, at))
	for _, f := range n.outer {
		op := ir.OpMul
		if f.divide {
			op = ir.OpDiv
		}
		v.Body = ir.Apply(op, v.Body, f.e)
	}
}
