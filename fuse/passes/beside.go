package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// repeatSlots is the most work, in issue slots, of computing a short reduction again and again: half a microsecond of
// a large GPU, where a kernel of its own takes about two.
const repeatSlots = 1 << 24

// repeatBeside gives short reductions the axes of a longer one that goes with them, so that one kernel has room for all:
// the largest score and the sum of weights of parts of attention, beside the sums for each feature. Each is then
// computed again for every point of those axes, which costs less than a kernel of its own.
func repeatBeside(g *ir.Graph) {
	if g.OneKernel || g.Numerics == ir.Strict {
		return
	}
	sizes, results, readers := algebra.DefaultSizes(g), resultsOf(g), readersOf(g)
	for _, v := range slices.Backward(g.Values) { // a reduction that another one reads follows it
		if results[v] || !foldsParts(v, sizes) {
			continue
		}
		if r := besideOf(v, readers[v]); r != nil && repeatCost(v, r.extra, sizes) <= repeatSlots {
			r.repeat(g)
		}
	}
}

// foldsParts reports whether a value is a plain reduction of a few partial results: what it reads was reduced already.
func foldsParts(v *ir.Value, sizes map[string]int64) bool {
	if v.Reduce == nil || !isPlain(v) || form.Crosses(v) {
		return false
	}
	return repeatCost(v, nil, sizes) <= repeatSlots && !slices.ContainsFunc(v.Loads(), func(l *ir.Expr) bool { return l.From.Reduce == nil })
}

// isPlain reports whether a value is no reduction, or one of all its terms to one number.
func isPlain(v *ir.Value) bool {
	r := v.Reduce
	return r == nil || !r.Op.IsArg() && r.Where == nil && r.Rank == nil && form.ScanOf(v) == nil && form.ScatterIn(v) == nil
}

// repeatCost is the work of a reduction that is computed for each point of further axes.
func repeatCost(v *ir.Value, extra []*ir.Range, sizes map[string]int64) float64 {
	points := algebra.PointsAt(v.Axes, sizes) * algebra.PointsAt(v.Reduce.Ranges, sizes) * algebra.PointsAt(extra, sizes)
	return points * float64(form.CostOf(v.Body).Slots)
}

// A repetition is the axes that all readers of a reduction have beside its own.
type repetition struct {
	v       *ir.Value
	extra   []*ir.Range // of the first reader
	readers map[*ir.Value][]*ir.Range
}

// besideOf finds the axes along which a reduction may be repeated: those that each of its readers has beside the axes of
// the reduction, where another reduction over as many points, which a reader reads or is, has them too. Nil for none.
func besideOf(v *ir.Value, readers []*ir.Value) *repetition {
	r, beside := &repetition{v: v, readers: map[*ir.Value][]*ir.Range{}}, false
	for _, w := range readers {
		for _, l := range w.Loads() {
			if l.From != v {
				continue
			}
			if !isPlain(w) || !form.PlainIndices(l) || slices.ContainsFunc(l.Args, func(a *ir.Expr) bool { return a.Op == ir.OpRange && !slices.Contains(w.Axes, a.Range) }) {
				return nil
			}
			extra := otherAxes(w, l)
			if len(extra) == 0 || r.extra != nil && !sameExtents(extra, r.extra) {
				return nil
			}
			if known := r.readers[w]; known != nil && !slices.Equal(known, extra) {
				return nil
			}
			r.readers[w] = extra
			if r.extra == nil {
				r.extra = extra
			}
			beside = beside || goesWith(w, v)
		}
	}
	if r.extra == nil || !beside {
		return nil
	}
	return r
}

// otherAxes is the axes of a value, but for those of one element, that a load in it does not depend on.
func otherAxes(w *ir.Value, l *ir.Expr) (extra []*ir.Range) {
	for _, a := range algebra.Widened(w.Axes) {
		if !ir.DependsOn(l, a) {
			extra = append(extra, a)
		}
	}
	return extra
}

// goesWith reports whether a reader of v, or what it reads for each of its points, is a reduction over as many points as v.
func goesWith(w, v *ir.Value) bool {
	asMany := func(u *ir.Value) bool {
		return u != v && u.Reduce != nil && sameExtents(u.Reduce.Ranges, v.Reduce.Ranges)
	}
	return asMany(w) || slices.ContainsFunc(w.Loads(), func(l *ir.Expr) bool {
		return asMany(l.From) && form.PlainIndices(l) && len(algebra.Widened(l.From.Axes)) == len(algebra.Widened(w.Axes))
	})
}

// sameExtents reports whether two lists of ranges are of the same sizes.
func sameExtents(a, b []*ir.Range) bool {
	return slices.EqualFunc(a, b, func(a, b *ir.Range) bool { return ir.SameSize(a.Extent, b.Extent) })
}

// repeat adds the axes to the reduction, and to the loads of it.
func (r *repetition) repeat(g *ir.Graph) {
	for _, a := range r.extra {
		r.v.Axes = append(r.v.Axes, g.NewRange(a.Name, a.Extent))
	}
	for w, extra := range r.readers {
		w.MapExprs(func(e *ir.Expr) *ir.Expr {
			return ir.Rewrite(e, func(l *ir.Expr) *ir.Expr {
				if l.Op != ir.OpLoad || l.From != r.v || len(l.Args) == len(r.v.Axes) {
					return l
				}
				return ir.Load(r.v, append(slices.Clone(l.Args), ir.Indices(extra)...), l.Fill).At(l.Span)
			})
		})
	}
}
