package fuse

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// streamsIn lists the streams that may be regions, and why others may not. m has the graph's values.
func streamsIn(g *ir.Graph, m *form.Recogniser) (streams []*form.Stream, refused []ir.Refusal) {
	all, refused := m.StreamsAndRefused()
	for _, s := range all {
		if len(s.Epilogue) == 0 { // a stream with factors to apply at the end appeared only after the pass that takes them out of the sum
			streams = append(streams, s)
		}
	}
	return append(streams, form.Chains(g)...), refused
}

// streamRegion makes a region of a stream: scores, maximum, sums of weights and weighted sum, over the ranges of the
// weighted sum. Merging then adds what follows at each point.
func streamRegion(g *ir.Graph, s *form.Stream) *region {
	r := &region{cols: algebra.RangeSet(s.Keys), at: map[*ir.Value]map[*ir.Range]*ir.Expr{}}
	r.stream = &streamed{Stream: s, depth: map[*ir.Range]bool{}}
	r.space = append(algebra.Widened(s.Out.Axes), s.Keys...)
	own := map[*ir.Range]*ir.Expr{}
	for _, axis := range r.space {
		own[axis] = axis.At()
	}
	r.at[s.Out] = own
	for _, l := range s.Products() {
		r.at[l.From] = axesAt(l)
		for _, c := range l.From.Reduce.Ranges { // the sum of a score runs where the score is used
			r.at[l.From][c], r.stream.depth[c] = c.At(), true
		}
	}
	if top := s.Weight.Max; top != nil {
		r.at[top.From] = axesAt(top)
		r.at[top.From][top.From.Reduce.Ranges[0]] = s.Keys[0].At()
	}
	for _, u := range s.Sums {
		r.at[u] = streamAxes(s, u)
		r.at[u][u.Reduce.Ranges[0]] = s.Keys[0].At()
	}
	for _, v := range g.Values {
		if r.has(v) {
			r.members = append(r.members, v)
		}
	}
	return r
}

// axesAt maps the axes of a value to the ranges by which a load reads them.
func axesAt(load *ir.Expr) map[*ir.Range]*ir.Expr {
	out := map[*ir.Range]*ir.Expr{}
	for d, a := range load.Args {
		if a.Op == ir.OpRange {
			out[load.From.Axes[d]] = a
		}
	}
	return out
}

// streamAxes maps the axes of a sum of weights to those of the weighted sum: both read the same maximum,
// and axes that index it alike belong together.
func streamAxes(s *form.Stream, u *ir.Value) map[*ir.Range]*ir.Expr {
	out := map[*ir.Range]*ir.Expr{}
	for _, l := range u.Loads() {
		if l.From != s.Weight.Max.From {
			continue
		}
		for d, a := range l.Args {
			if a.Op == ir.OpRange {
				out[a.Range] = s.Weight.Max.Args[d]
			}
		}
	}
	return out
}

// keepsStream refuses to merge anything with a stream but what follows it point by point, and another stream of which
// it is a pair, because its registers hold no other sums. split says that a loop of a would have to be split in two.
func keepsStream(a, b *region, al *alignment, split bool) *form.Refusal {
	if a.stream == nil && b.stream == nil || al.streams != nil {
		return nil
	}
	span := b.members[len(b.members)-1].Origin.Span
	if split {
		return form.Refuse(ir.ReasonIndexMismatch, span, "%s reshapes the axes of the attention that it follows", b.members[0].Name)
	}
	if b.stream != nil || len(b.cols) > 0 || len(b.accumulated) > 0 {
		return form.Refuse(ir.ReasonResources, span, "%s is computed as one attention, whose registers have no room for another reduction", streamOf(a, b).Out.Name)
	}
	for _, v := range b.members {
		for _, l := range v.Loads() {
			if a.has(l.From) {
				return nil
			}
		}
	}
	return form.Refuse(ir.ReasonNoGain, span, "%s is not computed from the attention beside it", b.members[0].Name)
}

// streamOf returns the stream of whichever of two regions has one.
func streamOf(a, b *region) *streamed {
	if a.stream != nil {
		return a.stream
	}
	return b.stream
}
