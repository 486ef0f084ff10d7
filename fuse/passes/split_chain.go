package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

const chainHeavy = 24 // least work of a point with which arithmetic limits a block

// chained reports whether a reduction should stay whole for blocks that add to each other's totals in a
// chain: no reader of it would share a kernel over more than its results.
func (s *splitter) chained(v *ir.Value) bool {
	if !s.histograms || contiguousColumns(v, s.sizes) || v.Reduce.Op.IsArg() || s.largest[v] > algebra.PointsAt(v.Axes, s.sizes) || s.besidePersistent(v) || !s.alone(v) {
		return false
	}
	rows, vector := algebra.PointsAt(v.Axes, s.sizes), forecast.AccessBytes/v.Body.Type.Size()
	return forecast.Chainable(rows, algebra.PointsAt(v.Reduce.Ranges, s.sizes), vector) && forecast.ChainShare(forecast.ChainThreads, vector).Blocks(rows, vector) >= forecast.ChainStrips
}

// alone reports whether a reduction depends on no other one, shares what it reads only with values of no
// more points than its results, which would join its kernel, and has little work for each element,
// together with values that become part of it. With more work arithmetic limits its blocks.
func (s *splitter) alone(v *ir.Value) bool {
	seen, work := map[*ir.Value]bool{v: true}, 0
	var visit func(v *ir.Value) bool
	visit = func(v *ir.Value) bool {
		if v.Body == nil {
			return true
		}
		work += form.WorkOf(v.Body)
		for _, l := range v.Loads() {
			if from := l.From; !seen[from] {
				if seen[from] = true; from.Reduce != nil || !visit(from) {
					return false
				}
			}
		}
		return true
	}
	if !visit(v) || work > chainHeavy {
		return false
	}
	for from := range seen {
		if slices.ContainsFunc(s.readers[from], func(r *ir.Value) bool {
			return !seen[r] && r.Reduce == nil && algebra.PointsAt(r.Axes, s.sizes) > algebra.PointsAt(v.Axes, s.sizes)
		}) {
			return false
		}
	}
	return true
}
