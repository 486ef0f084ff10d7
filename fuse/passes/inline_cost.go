package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// onChip is the bytes of a tensor that the L2 cache holds beside others: it is read from memory once, however often it is read.
const onChip = 16 << 20

// A substitution is what decides whether the readers of a value compute it again for every point of axes that it does not depend on, as
// the places that are the same for all images of a batch.
type substitution struct {
	sizes   map[string]int64
	readers map[*ir.Value][]*ir.Value
	results map[*ir.Value]bool
	points  map[*ir.Value]float64 // at which a value may be computed: those of what it may be substituted into
}

func newSubstitution(g *ir.Graph, sizes map[string]int64) *substitution {
	s := &substitution{sizes, readersOf(g), resultsOf(g), map[*ir.Value]float64{}}
	for _, v := range slices.Backward(g.Values) {
		s.points[v] = algebra.PointsAt(algebra.AllRanges(v), sizes)
		for _, r := range s.readers[v] {
			if v.Reduce == nil && !s.results[v] {
				s.points[v] = max(s.points[v], s.points[r])
			}
		}
	}
	return s
}

// pays reports whether computing a value at each point of its readers, in so many slots, takes less time than writing it and reading it
// there. What products multiply is read by tiles, and scans, scatters and sorts read elements more than once: they need it in memory.
func (s *substitution) pays(v *ir.Value, slots int) bool {
	if s.results[v] {
		return false
	}
	own, bytes := algebra.PointsAt(v.Axes, s.sizes), algebra.BytesAt(v, s.sizes)
	again, saved := -own*float64(slots), bytes
	for _, r := range s.readers[v] {
		if r.Reduce != nil && (r.Reduce.Rank != nil || form.Crosses(r) || form.ScanOf(r) != nil || form.ScatterIn(r) != nil) {
			return false
		}
		points := s.points[r]
		again += points * float64(slots-form.LoadSlots)
		saved += bytes - max(0, points/own-1)*sourceBytes(v, s.sizes)
	}
	return forecast.ComputesAgain(again, saved)
}

// sourceBytes is what memory moves of the tensors that a value is computed from, without those that stay in the cache.
func sourceBytes(v *ir.Value, sizes map[string]int64) (bytes float64) {
	seen := map[*ir.Value]bool{}
	for _, l := range v.Loads() {
		if b := algebra.BytesAt(l.From, sizes); !seen[l.From] && b > onChip {
			bytes += b
		}
		seen[l.From] = true
	}
	return bytes
}
