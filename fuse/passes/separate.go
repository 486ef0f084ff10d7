package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// Figures of separating windows.
const (
	separateOverlap = 4       // least windows that have each element
	separateLess    = 3       // how many times fewer terms are left at least, as the partial results are written and read
	separateSaved   = 1 << 22 // least terms that go, as a kernel more takes the time of so many
)

// separateWindows makes two reductions of one over large windows: max[i, j] x[p + i, q + j] is max[j] (max[i] x[p + i, q + j]), where
// the inner one is computed once for each place along the second axis. A window of 15 x 15 then has 30 terms in place of 225. It is the
// reverse of joinNested, which is for small windows. The order of additions changes, so strict graphs keep sums of floats.
func separateWindows(g *ir.Graph) {
	if g.OneKernel {
		return
	}
	sizes := algebra.DefaultSizes(g)
	insertBefore(g, func(v *ir.Value) []*ir.Value {
		var made []*ir.Value
		for u := separateWindow(g, v, sizes); u != nil; u = separateWindow(g, u, sizes) {
			made = append([]*ir.Value{u}, made...)
		}
		return made
	})
}

// separateWindow takes the innermost taps that it can from a reduction, and returns the value of the others, which v then reads; nil where
// v is no large window.
func separateWindow(g *ir.Graph, v *ir.Value, sizes map[string]int64) *ir.Value {
	if v.Reduce == nil || v.Reduce.Rank != nil || v.Reduce.Where != nil || len(v.Reduce.Ranges) < 2 || !anyOrder(g, v) ||
		!keepsType(v) || algebra.PointsAt(v.Reduce.Ranges, sizes) <= nestedColumns {
		return nil
	}
	for _, tap := range slices.Backward(v.Reduce.Ranges) {
		if s := separableAt(g, v, tap); s != nil && s.pays(v, sizes) {
			return s.separate(g, v)
		}
	}
	return nil
}

// keepsType reports whether partial results of a reduction have its type without being rounded.
func keepsType(v *ir.Value) bool {
	extreme := v.Reduce.Op == ir.Max || v.Reduce.Op == ir.Min
	return v.Type == v.Body.Type && (extreme || v.Type == v.Reduce.Op.Accumulator(v.Type))
}

// separable is a reduction whose terms depend on a tap through one index of what they read alone.
type separable struct {
	tap, row *ir.Range
	at       *ir.Expr  // the index: a place of the row and the tap
	along    *ir.Range // all places of that index
	body     *ir.Expr  // the terms, at such a place
	fill     *ir.Expr  // what terms are at places outside; nil where all are inside
	read     *ir.Value // the largest tensor that is read at the index
	axes     []*ir.Range
}

// separableAt describes the terms of a reduction that depend on a tap through an index; nil where there are others.
func separableAt(g *ir.Graph, v *ir.Value, tap *ir.Range) *separable {
	s := &separable{tap: tap}
	outside := false
	s.body = ir.Rewrite(v.Body, func(e *ir.Expr) *ir.Expr {
		if e.Op != ir.OpLoad {
			return e
		}
		d := slices.IndexFunc(e.Args, func(at *ir.Expr) bool { return ir.DependsOn(at, tap) })
		if d < 0 || !s.takes(g, v, e.Args[d], e.From.Shape()[d]) {
			return e
		}
		outside = outside || e.Fill != nil
		if s.read == nil || len(e.From.Axes) > len(s.read.Axes) {
			s.read = e.From
		}
		args := slices.Clone(e.Args)
		args[d] = s.along.At()
		return ir.Load(e.From, args, e.Fill).At(e.Span)
	})
	if s.at == nil || ir.DependsOn(s.body, tap) || ir.DependsOn(s.body, s.row) {
		return nil
	}
	if outside {
		s.fill = ir.Cast(v.Reduce.Op.Identity(v.Body.Type), v.Type)
		none := ir.Rewrite(v.Body, func(e *ir.Expr) *ir.Expr {
			if e.Op == ir.OpLoad && e.Fill != nil && slices.ContainsFunc(e.Args, func(at *ir.Expr) bool { return ir.Equal(at, s.at) }) {
				return e.Fill
			}
			return e
		})
		if none = ir.Simplify(ir.Cast(none, v.Type), g.Facts()); !ir.Equal(none, ir.Simplify(s.fill, g.Facts())) {
			return nil
		}
	}
	for _, a := range v.Axes {
		if a == s.row {
			a = s.along
		}
		s.axes = append(s.axes, a)
	}
	return s
}

// takes reports whether an index is the one that s is about: of a place of one row and the tap, along an axis of the given size.
func (s *separable) takes(g *ir.Graph, v *ir.Value, at, size *ir.Expr) bool {
	if s.at != nil {
		return ir.Equal(at, s.at) && ir.SameSize(size, s.along.Extent)
	}
	free := ir.FreeRanges(at)
	for _, a := range v.Axes {
		if free[a] {
			s.row = a
		}
	}
	if s.row == nil || len(free) != 2 || ir.Has(at, ir.OpLoad) {
		return false
	}
	s.at, s.along = at, g.NewRange(s.row.Name+"_at", size)
	return true
}

// pays reports whether windows overlap so much that far fewer terms are left.
func (s *separable) pays(v *ir.Value, sizes map[string]int64) bool {
	rows, taps := algebra.PointsAt(v.Axes, sizes), algebra.Estimate(s.tap.Extent, sizes)
	all := rows * algebra.PointsAt(v.Reduce.Ranges, sizes)
	left := algebra.PointsAt(s.axes, sizes)*algebra.PointsAt(v.Reduce.Ranges, sizes)/max(1, taps) + rows*taps
	return all >= separateOverlap*algebra.PointsAt(s.read.Axes, sizes) && all >= separateLess*left && all-left >= separateSaved
}

// separate makes v a reduction over the tap of what is left of the other ones, and returns the value of that.
func (s *separable) separate(g *ir.Graph, v *ir.Value) *ir.Value {
	others := slices.DeleteFunc(slices.Clone(v.Reduce.Ranges), func(r *ir.Range) bool { return r == s.tap })
	u := freshAxes(g, &ir.Value{Name: v.Name + "_across", Type: v.Type, Axes: s.axes, Body: s.body, Origin: v.Origin,
		Reduce: &ir.Reduction{Op: v.Reduce.Op, Ranges: others}})
	index := make([]*ir.Expr, len(v.Axes))
	for d, a := range v.Axes {
		if index[d] = a.At(); a == s.row {
			index[d] = s.at
		}
	}
	v.Reduce = &ir.Reduction{Op: v.Reduce.Op, Ranges: []*ir.Range{s.tap}}
	v.Body = ir.Load(u, index, s.fill).At(v.Body.Span)
	return u
}
