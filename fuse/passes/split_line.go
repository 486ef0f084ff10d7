package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/ir"
)

// Reductions along memory. Where all that a reduction reads is contiguous in the order of its ranges, as
// in the sum of a whole tensor, the ranges are one range of places, and a chunk may begin at any of them.
// Blocks of one round then read neighbouring chunks in the order in which they begin, so that all together
// read memory almost in order, with as few reads in flight as it needs.

// lineParts is the most chunks, because one block may have to add them up; beyond it, chunks are made
// longer.
const lineParts = 65536

// lineOf joins the ranges of a reduction into one if everything that it reads is contiguous along them. It
// reports whether the reduction is now over one range along memory. Values that are computed point by
// point do not count as read, because the reduction's kernel can compute them over the same ranges.
func lineOf(g *ir.Graph, v *ir.Value) bool {
	ranges := v.Reduce.Ranges
	if v.Reduce.Where != nil || len(v.Loads()) == 0 || !alongMemory(v.Body, ranges) {
		return false
	}
	pointwise := func(l *ir.Expr) bool { return !l.From.IsInput() && l.From.Reduce == nil }
	if len(ranges) > 1 && slices.ContainsFunc(v.Loads(), pointwise) {
		return false
	}
	if len(ranges) == 1 {
		return true
	}
	takeAsOne(g, v)
	return true
}

// alongMemory reports whether an expression depends on the ranges only through loads whose last indices
// are exactly these ranges, over whole axes.
func alongMemory(e *ir.Expr, ranges []*ir.Range) bool {
	reduced, along := algebra.RangeSet(ranges), true
	ir.Walk(e, func(e *ir.Expr) bool {
		switch {
		case e.Op == ir.OpLoad && algebra.DependsOnAny(e, reduced):
			along = along && liesAlong(e, ranges, reduced)
			return false
		case e.Op == ir.OpRange && reduced[e.Range]:
			along = false
		}
		return along
	})
	return along
}

func liesAlong(l *ir.Expr, ranges []*ir.Range, reduced map[*ir.Range]bool) bool {
	first := len(l.Args) - len(ranges)
	if first < 0 || l.Fill != nil || slices.ContainsFunc(l.Args[:first], func(e *ir.Expr) bool { return algebra.DependsOnAny(e, reduced) }) {
		return false
	}
	for d, r := range ranges {
		index := l.Args[first+d]
		if index.Op != ir.OpRange || index.Range != r || !ir.SameSize(l.From.Shape()[first+d], r.Extent) {
			return false
		}
	}
	return true
}

// lineChunk is the places that a block takes of a reduction along memory: as many as the longest row that
// is read at once (singlePass).
func (s *splitter) lineChunk(v *ir.Value) int64 {
	chunk := int64(forecast.LoopThreads * forecast.PassUnroll * min(forecast.WidestVector, forecast.AccessBytes/s.element[v]))
	for algebra.PointsAt(v.Axes, s.sizes)*algebra.PointsAt(v.Reduce.Ranges, s.sizes) > lineParts*float64(chunk) && chunk < mostChunk {
		chunk *= 2
	}
	return chunk
}

// elements is the bytes of the smallest elements that each reduction reads. For reductions over equally many points that one value reads, such as
// a sum of losses and a sum of their weights, these are the smallest of all: with equal chunks, one kernel computes the partial results
// of all of them, and its last blocks what reads them.
func (s *splitter) elements() map[*ir.Value]int {
	out := map[*ir.Value]int{}
	for _, v := range s.g.Values {
		out[v] = forecast.AccessBytes
		for _, l := range v.Loads() {
			out[v] = min(out[v], l.From.Type.Size())
		}
	}
	for _, reader := range s.g.Values {
		loads := reader.Loads()
		for i, a := range loads {
			for _, b := range loads[:i] {
				if u, v := a.From, b.From; u.Reduce != nil && v.Reduce != nil && sameSpace(u, v) {
					out[u] = min(out[u], out[v])
					out[v] = out[u]
				}
			}
		}
	}
	return out
}

// sameSpace reports whether two reductions have equally many results, of equally many points.
func sameSpace(u, v *ir.Value) bool {
	return ir.SameSize(algebra.Product(u.Axes), algebra.Product(v.Axes)) && ir.SameSize(algebra.Product(u.Reduce.Ranges), algebra.Product(v.Reduce.Ranges))
}
