package passes

import (
	"math"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Rows that clusters keep on chip. Every normalisation reduces a tensor and then reads it again. Such a
// reduction is not cut if the blocks of a cluster can hold its row: one kernel then reads the tensor once,
// which gains more than having more blocks at work.

// Figures of such rows, for a large device.
const (
	largestCluster = 8       // blocks
	blockShare     = 1 << 17 // bytes of a row that a block holds
	wholeBusy      = 0.75    // least share of the device at work with which reading once is faster
	fewerClusters  = 0.85    // share of the multiprocessors that take part, because clusters do not cross groups of these
)

// wholeRows returns the reductions whose rows a cluster keeps for values that read the same tensor
// afterwards.
func (s *splitter) wholeRows() map[*ir.Value]bool {
	out := map[*ir.Value]bool{}
	for _, v := range s.g.Values {
		if load := s.alongRow(v); load != nil && s.readAgain(v, load.From) {
			out[v] = true
		}
	}
	return out
}

// alongRow is the largest load of a reduction over rows that clusters can keep, aligned at the default
// sizes to vectors along the last reduced range; nil where there is none.
func (s *splitter) alongRow(v *ir.Value) *ir.Expr {
	if v.Reduce == nil || v.Reduce.Op.IsArg() || v.Reduce.Rank != nil || form.ConditionOf(v) != nil || form.ScanOf(v) != nil {
		return nil
	}
	var largest *ir.Expr
	bytes := 0.0 // bytes of one column
	seen := map[*ir.Value]bool{}
	for _, l := range v.Loads() {
		if largest == nil || algebra.BytesAt(l.From, s.sizes) > algebra.BytesAt(largest.From, s.sizes) {
			largest = l
		}
	}
	for _, l := range v.Loads() {
		if !seen[l.From] && algebra.PointsAt(l.From.Axes, s.sizes) == algebra.PointsAt(largest.From.Axes, s.sizes) {
			seen[l.From] = true
			bytes += float64(l.From.Type.Size())
		}
	}
	if largest == nil || len(largest.Args) == 0 || largest.Fill != nil {
		return nil
	}
	lane, facts := algebra.Innermost(v.Reduce.Ranges), s.g.Facts()
	facts.Within, facts.Positive = algebra.AllRanges(v), true
	stride, ok := ir.Stride(ir.Simplify(ir.FlatOffset(largest.From.Shape(), largest.Args), facts), lane, facts)
	along := algebra.Estimate(lane.Extent, s.sizes) * float64(largest.From.Type.Size())
	if !ok || !stride.IsConst(1) || int64(along)%forecast.AccessBytes != 0 {
		return nil
	}
	if !keepsBusy(algebra.PointsAt(v.Axes, s.sizes), algebra.PointsAt(v.Reduce.Ranges, s.sizes)*bytes) {
		return nil
	}
	return largest
}

// keepsBusy reports whether so many rows of so many bytes, each kept by a cluster, occupy most of a large
// device.
func keepsBusy(rows, bytes float64) bool {
	cluster := 1.0
	for cluster*blockShare < bytes {
		cluster *= 2
	}
	if cluster > largestCluster || rows < 1 {
		return false
	}
	atOnce := ir.ReferenceSMs / cluster
	if cluster > 1 {
		atOnce = math.Floor(atOnce * fewerClusters)
	}
	turns := math.Ceil(rows / atOnce)
	return rows*cluster/(turns*ir.ReferenceSMs) >= wholeBusy
}

// mostStatistics is the most values that the search from a reduction to its readers follows. Norms have a
// few; the bound keeps the search from going through a whole graph.
const mostStatistics = 64

// readAgain reports whether a value with an element for each of the reduction's points reads both the
// tensor and, through values of its rows, the reduction.
func (s *splitter) readAgain(v, tensor *ir.Value) bool {
	again := s.readersAgain(v, tensor)
	if len(again) == 0 {
		return false
	}
	rows := algebra.PointsAt(v.Axes, s.sizes)
	seen, next := map[*ir.Value]bool{v: true}, []*ir.Value{v}
	for len(next) > 0 && len(seen) <= mostStatistics {
		u := next[0]
		next = next[1:]
		for _, r := range s.readers[u] {
			switch {
			case again[r]:
				return true
			case !seen[r] && algebra.PointsAt(r.Axes, s.sizes) <= rows:
				seen[r] = true
				next = append(next, r)
			}
		}
	}
	return false
}

// readersAgain is the values that read the tensor and have an element for each point of the reduction,
// with so little work that the threads that keep a row do it too.
func (s *splitter) readersAgain(v, tensor *ir.Value) map[*ir.Value]bool {
	points := algebra.PointsAt(v.Axes, s.sizes) * algebra.PointsAt(v.Reduce.Ranges, s.sizes)
	out := map[*ir.Value]bool{}
	for _, r := range s.readers[tensor] {
		if r.Reduce == nil && algebra.PointsAt(r.Axes, s.sizes) == points && s.light(v, r) {
			out[r] = true
		}
	}
	return out
}

// light reports whether two values together are so little work that threads which keep a row
// can do it.
func (s *splitter) light(a, b *ir.Value) bool {
	return form.WorkOf(a.Body)+form.WorkOf(b.Body) <= forecast.HeavyWork
}
