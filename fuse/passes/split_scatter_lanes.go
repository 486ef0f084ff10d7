package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// A scatter whose key another one with more lanes has too, as the counts of a mean, is folded in each lane of that one, in one
// kernel. So both are cut into the same chunks, or neither is.

// withLanes finds, for each scatter of a graph that shares the kernel of another, the other one.
func withLanes(g *ir.Graph, sizes map[string]int64) map[*ir.Value]*ir.Value {
	var scatters []*ir.Value
	for _, v := range g.Values {
		if isPlainScatter(v) {
			scatters = append(scatters, v)
		}
	}
	out, words := map[*ir.Value]*ir.Value{}, map[*ir.Value]int{}
	for _, v := range scatters {
		var most *ir.Value
		for _, w := range scatters {
			if hasLanesOf(v, w) && (most == nil || algebra.PointsAt(w.Axes, sizes) > algebra.PointsAt(most.Axes, sizes)) {
				most = w
			}
		}
		if most == nil || dependsOn(v, most) || dependsOn(most, v) {
			continue
		}
		all := max(words[most], RunningWords(most)) + RunningWords(v)
		if all <= forecast.SharedWords && SharesLanes(v, most, sizes) {
			out[v], words[most] = most, all
		}
	}
	return out
}

// RunningWords is the registers of a running value of a scatter.
func RunningWords(v *ir.Value) int {
	return forecast.RunningWords(v.Reduce.Op, v.Reduce.Op.Accumulator(v.Body.Type))
}

// hasLanesOf reports whether a scatter takes the columns of another one to the same places, and has fewer of its lanes.
func hasLanesOf(v, w *ir.Value) bool {
	a, b := form.ScatterIn(v), form.ScatterIn(w)
	if v == w || !sameExtents(v.Reduce.Ranges, w.Reduce.Ranges) || !sameExtents(a.Batch, b.Batch) || !ir.SameSize(a.To.Extent, b.To.Extent) {
		return false
	}
	few, many := algebra.Widened(a.Lanes(v.Axes)), algebra.Widened(b.Lanes(w.Axes))
	if len(few) >= len(many) {
		return false
	}
	for _, r := range many {
		if len(few) > 0 && ir.SameSize(few[0].Extent, r.Extent) {
			few = few[1:]
		}
	}
	if len(few) > 0 {
		return false
	}
	at := map[*ir.Range]*ir.Expr{a.To: b.To.At()}
	for i, r := range v.Reduce.Ranges {
		at[r] = w.Reduce.Ranges[i].At()
	}
	for i, r := range a.Batch {
		at[r] = b.Batch[i].At()
	}
	whereV, _ := conditionAndTerm(v)
	whereW, _ := conditionAndTerm(w)
	x, y := form.Conditions(ir.Substitute(whereV, at)), form.Conditions(whereW)
	return len(x) == len(y) && len(form.CommonConditions(x, y, w.Axes, w.Reduce.Ranges)) == len(x)
}

// dependsOn reports whether a value is computed from another one.
func dependsOn(v, from *ir.Value) bool {
	seen := map[*ir.Value]bool{}
	var search func(v *ir.Value) bool
	search = func(v *ir.Value) bool {
		if seen[v] {
			return false
		}
		seen[v] = true
		return slices.ContainsFunc(v.Loads(), func(l *ir.Expr) bool { return l.From == from || search(l.From) })
	}
	return search(v)
}

// SharesLanes reports whether it takes less time to fold a scatter in each lane of another one than in a kernel of its own, which
// finds again where columns go. A histogram has no room for more running values.
func SharesLanes(v, w *ir.Value, sizes map[string]int64) bool {
	const lanes = 4 // a thread computes a term once for about so many lanes
	if takesHistogram(w, sizes) {
		return false
	}
	on, s := ir.Devices()[0], form.ScatterIn(w)
	_, term := conditionAndTerm(v)
	cost, rate := form.CostOf(term), on.F32Rate/2
	each := (float64(cost.Slots)+float64(cost.Special)*rate/on.SpecialRate)/lanes + float64(v.Reduce.Op.Info().Combine.Info().Cost)
	points := algebra.PointsAt(s.Batch, sizes) * algebra.PointsAt(w.Reduce.Ranges, sizes) * algebra.PointsAt(algebra.Widened(s.Lanes(w.Axes)), sizes)
	_, alone := cutScatter(v, sizes)
	return points*each/rate < alone+on.Launch
}

// takesHistogram reports whether a scatter is fastest as a histogram, in chunks or whole.
func takesHistogram(v *ir.Value, sizes map[string]int64) bool {
	s := form.ScatterIn(v)
	if cut, _ := cutScatter(v, sizes); cut != nil {
		return !cut.placesFirst
	}
	one := forecast.ScatterOf(s, v.Axes, v.Reduce.Ranges)
	if algebra.Estimate(one.Lanes, sizes) > forecast.HistogramLanes || algebra.Estimate(one.To, sizes) < forecast.HistogramPlaces {
		return false
	}
	return secondsAt(one, one.Histogram(runningTile(v, one, sizes)), sizes) < wholeTime(one, sizes)
}
