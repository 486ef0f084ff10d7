package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// A spreading is a short reduction that its readers might compute again.
type spreading struct {
	*components
	v       *ir.Value
	between map[*ir.Value]bool               // v, and the values of single elements between it and its readers
	ends    []*ir.Value                      // the reductions, and the results, that read these
	split   map[*ir.Value]map[*ir.Range]bool // axes of readers each element of which would be a reduction of its own
}

// spreadOf finds what reads v, directly or through values of single elements. It is nil where one of the readers has to have
// what it reads in memory: products, whose tiles would compute each element in another thread than its neighbours, scans,
// scatters and sorts.
func (c *components) spreadOf(v *ir.Value) *spreading {
	s := &spreading{components: c, v: v, between: map[*ir.Value]bool{v: true}, split: map[*ir.Value]map[*ir.Range]bool{}}
	for queue := []*ir.Value{v}; len(queue) > 0; queue = queue[1:] {
		for _, r := range c.readers[queue[0]] {
			switch {
			case r.Reduce != nil && (r.Reduce.Rank != nil || form.ScanOf(r) != nil || form.ScatterIn(r) != nil || form.Crosses(r)):
				return nil
			case r.Reduce != nil || c.results[r]:
				if !slices.Contains(s.ends, r) {
					s.ends = append(s.ends, r)
				}
			case !s.between[r]:
				s.between[r] = true
				queue = append(queue, r)
			}
		}
	}
	for _, r := range s.ends {
		if axes := s.axesApart(r); len(axes) > 0 {
			s.split[r] = axes
		}
	}
	return s
}

// axesApart is the short axes of a reader that v does not depend on; nil where they are many points together.
func (s *spreading) axesApart(r *ir.Value) map[*ir.Range]bool {
	if r.Reduce == nil || r.Reduce.Op.IsArg() || s.graph.OneKernel {
		return nil
	}
	used := s.usedBy(r)
	out, points := map[*ir.Range]bool{}, 1
	for _, a := range algebra.Widened(r.Axes) {
		if n := knownPoints([]*ir.Range{a}); n > 0 && !used[a] {
			out[a], points = true, points*n
		}
	}
	if points > mostSplit {
		return nil
	}
	return out
}

// usedBy is the ranges of a reader that pick an element of v.
func (s *spreading) usedBy(r *ir.Value) map[*ir.Range]bool {
	beyond := map[*ir.Value]bool{}
	for u := range s.between {
		beyond[u] = u != s.v
	}
	body, used := form.Expand(r.Body, beyond), map[*ir.Range]bool{}
	for grown := body; ; body = grown {
		if grown = form.Expand(body, beyond); grown == body {
			break
		}
	}
	for _, l := range ir.Loads(body) {
		if l.From == s.v {
			for at := range ir.FreeRanges(l) {
				used[at] = true
			}
		}
	}
	return used
}

// reducesAcross reports whether a reader reduces over elements of v, which a kernel of v would have in different rows.
func (s *spreading) reducesAcross(r *ir.Value) bool {
	if r.Reduce == nil {
		return false
	}
	used := s.usedBy(r)
	return slices.ContainsFunc(r.Reduce.Ranges, func(over *ir.Range) bool { return used[over] })
}

// pays compares the time of computing v, and what is between it and its readers, at each point of these readers with that
// of writing v and reading it in each of them, less that of reading what v is computed from once more for each. It is false where none
// of them reduces over elements of v: these stay in registers then.
func (s *spreading) pays() bool {
	again, bytes := 0.0, float64(1+len(s.ends))*algebra.BytesAt(s.v, s.sizes)
	points := map[*ir.Value]float64{} // at which a value is computed
	for _, u := range slices.Backward(s.graph.Values) {
		if !s.between[u] {
			continue
		}
		for _, r := range s.readers[u] {
			points[u] += s.evaluations(u, r, points)
		}
		again += max(0, points[u]-algebra.PointsAt(u.Axes, s.sizes)) * s.slots(u)
		if u != s.v {
			bytes += algebra.BytesAt(u, s.sizes)
		}
	}
	bytes -= max(0, points[s.v]/algebra.PointsAt(s.v.Axes, s.sizes)-1) * sourceBytes(s.v, s.sizes)
	bytes -= s.sharedBytes()
	return slices.ContainsFunc(s.ends, s.reducesAcross) && forecast.ComputesAgain(again, bytes)
}

// sharedBytes is what memory moves of the tensors that the kernel of v reads anyway for reductions that v needs, as the maximum of a row for its
// sum of exponentials. A reader that computes v would read these once more.
func (s *spreading) sharedBytes() (bytes float64) {
	own := s.v.Loads()
	seen := map[*ir.Value]bool{}
	for _, l := range own {
		if l.From.IsInput() || l.From.Reduce == nil {
			continue
		}
		for _, source := range l.From.Loads() {
			b := algebra.BytesAt(source.From, s.sizes)
			if b > onChip && !seen[source.From] && slices.ContainsFunc(own, func(l *ir.Expr) bool { return l.From == source.From }) {
				seen[source.From] = true
				bytes += b
			}
		}
	}
	return bytes
}

// evaluations is how often a reader computes a value that it does not read from memory: once for all points that differ
// along axes of which each element is a reduction of its own. points is how often values between are computed.
func (s *spreading) evaluations(u, reader *ir.Value, points map[*ir.Value]float64) (n float64) {
	var seen []*ir.Expr
	for _, l := range reader.Loads() {
		if l.From != u || slices.ContainsFunc(seen, func(e *ir.Expr) bool { return ir.Equal(e, l) }) {
			continue
		}
		seen = append(seen, l)
		shared := slices.DeleteFunc(slices.Clone(reader.Axes), func(r *ir.Range) bool {
			short := s.split[reader][r] || s.between[reader] && knownPoints([]*ir.Range{r}) > 0
			return !short || ir.DependsOn(l, r)
		})
		at := points[reader]
		if !s.between[reader] {
			at = algebra.PointsAt(algebra.AllRanges(reader), s.sizes)
		}
		n += at / algebra.PointsAt(shared, s.sizes)
	}
	return n
}

// slots is the work of a point of a value, all terms of it. What occurs several times in it is computed once.
func (c *components) slots(v *ir.Value) float64 {
	n, seen := 0, map[uint64]bool{}
	ir.Walk(v.Body, func(e *ir.Expr) bool {
		if seen[e.Hash()] || e.Type == ir.Index {
			return false
		}
		seen[e.Hash()] = true
		n += form.OwnSlots(e)
		return e.Op != ir.OpLoad
	})
	if v.Reduce == nil {
		return float64(n)
	}
	return float64(n+v.Reduce.Op.Info().Combine.Info().Cost) * algebra.PointsAt(v.Reduce.Ranges, c.sizes)
}
