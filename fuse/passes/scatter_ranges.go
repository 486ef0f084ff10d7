package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// freeLeast is the least number of columns with the same key that are reduced ahead of a scatter: what they are reduced to is
// written and read.
const freeLeast = 4

// reduceBeforeScatters reduces over ranges that the key of a scatter does not depend on before what is left goes to its place:
// sum[n, k where key[k] == v] a[n, k] is sum[k where key[k] == v] (sum[n] a[n, k]). The gradient of a table whose rows are added
// to every element of a batch is such a scatter. Blocks of a scatter read keys and fold columns one by one, where a plain
// reduction reads vectors, and all keys but those of one batch are the same again. The order of additions changes, so strict graphs
// keep sums of floats.
func reduceBeforeScatters(g *ir.Graph) {
	if g.OneKernel {
		return
	}
	sizes := algebra.DefaultSizes(g)
	insertBefore(g, func(v *ir.Value) []*ir.Value {
		if f := freeRangesOf(g, v); f != nil && f.pays(v, sizes) {
			return f.reduceFirst(g, v, sizes)
		}
		return nil
	})
}

// freeRanges is a scatter whose key does not depend on some of the reduced ranges.
type freeRanges struct {
	free, keyed   []*ir.Range
	inner, before *ir.Expr // what is reduced first, and the conditions for that
	after         *ir.Expr // the conditions of the scatter itself
}

// freeRangesOf finds the ranges of a scatter that its key does not depend on; nil where it depends on all, or where v is none.
func freeRangesOf(g *ir.Graph, v *ir.Value) *freeRanges {
	s := form.ScatterIn(v)
	if s == nil || !anyOrder(g, v) {
		return nil
	}
	where, term := conditionAndTerm(v)
	f := &freeRanges{inner: term}
	for _, r := range v.Reduce.Ranges {
		if ir.DependsOn(s.Key, r) {
			f.keyed = append(f.keyed, r)
		} else {
			f.free = append(f.free, r)
		}
	}
	if len(f.free) == 0 || ir.DependsOn(term, s.To) || !algebra.DependsOnAny(term, algebra.RangeSet(f.free)) {
		return nil
	}
	for _, c := range form.Conditions(where) {
		if algebra.DependsOnAny(c, algebra.RangeSet(f.free)) {
			f.before = ir.Join(ir.OpAnd, f.before, c)
		} else {
			f.after = ir.Join(ir.OpAnd, f.after, c)
		}
	}
	return f
}

// anyOrder reports whether the terms of a reduction may be combined in any order.
func anyOrder(g *ir.Graph, v *ir.Value) bool {
	extreme := v.Reduce.Op == ir.Max || v.Reduce.Op == ir.Min
	return !v.Reduce.Op.IsArg() && (extreme || g.Numerics != ir.Strict || !v.Body.Type.IsFloat())
}

// pays reports whether a scatter is large, and many columns have the same key.
func (f *freeRanges) pays(v *ir.Value, sizes map[string]int64) bool {
	work := algebra.PointsAt(v.Axes, sizes) * algebra.PointsAt(v.Reduce.Ranges, sizes)
	return work >= forecast.ScatterWork && algebra.PointsAt(f.free, sizes) >= freeLeast
}

// reduceFirst makes v a scatter of what a plain reduction leaves, and returns the values that v then reads.
func (f *freeRanges) reduceFirst(g *ir.Graph, v *ir.Value, sizes map[string]int64) []*ir.Value {
	acc := v.Reduce.Op.Accumulator(f.inner.Type)
	axes := f.axes(v, sizes)
	first := freshAxes(g, &ir.Value{Name: v.Name + "_first", Type: acc, Axes: axes, Body: ir.Cast(f.inner, acc), Origin: v.Origin,
		Reduce: &ir.Reduction{Op: v.Reduce.Op, Ranges: f.free, Where: f.before}})
	r := *v.Reduce
	r.Ranges, r.Where = f.keyed, f.after
	body := ir.Load(first, ir.Indices(axes), nil).At(v.Body.Span)
	if v.Type == acc {
		v.Reduce, v.Body = &r, body
		return []*ir.Value{first}
	}
	total := freshAxes(g, &ir.Value{Name: v.Name + "_total", Type: acc, Axes: v.Axes, Body: body, Origin: v.Origin, Reduce: &r})
	v.Reduce, v.Body = nil, ir.Cast(ir.Load(total, algebra.UnitIndices(v.Axes), nil), v.Type)
	return []*ir.Value{first, total}
}

// axes is what the plain reduction has a result for each point of, in the order in which the largest tensor that it reads has them.
func (f *freeRanges) axes(v *ir.Value, sizes map[string]int64) []*ir.Range {
	var largest *ir.Expr
	for _, l := range ir.Loads(f.inner) {
		if largest == nil || algebra.BytesAt(l.From, sizes) > algebra.BytesAt(largest.From, sizes) {
			largest = l
		}
	}
	out := slices.DeleteFunc(append(slices.Clone(v.Axes), f.keyed...), func(r *ir.Range) bool {
		return !ir.DependsOn(f.inner, r) && (f.before == nil || !ir.DependsOn(f.before, r))
	})
	if largest == nil {
		return out
	}
	place := func(r *ir.Range) int {
		return slices.IndexFunc(largest.Args, func(at *ir.Expr) bool { return ir.DependsOn(at, r) })
	}
	slices.SortStableFunc(out, func(a, b *ir.Range) int { return place(a) - place(b) })
	return out
}
