package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// streamed is the part of a region that only the attend template has.
type streamed struct {
	*form.Stream
	depth map[*ir.Range]bool // ranges that a score sums over, which are no loops of the region

	also *form.Stream            // another sum over the same columns, over the region's ranges; nil for none
	same map[*ir.Value]*ir.Value // from products of also to the equal products of the stream
}

// isScore reports whether v is a product from which the weights of a stream are made.
func (s *streamed) isScore(v *ir.Value) bool {
	return s.same[v] != nil || slices.ContainsFunc(s.Products(), func(l *ir.Expr) bool { return l.From == v })
}

// rowsOnly reports whether ranges are the keys alone, or the keys with all columns of the values.
func (s *streamed) rowsOnly(ranges []*ir.Range, cols map[*ir.Range]bool) bool {
	n := 0
	for _, r := range ranges {
		if !cols[r] && !s.Own[r] {
			return false
		}
		if s.Own[r] {
			n++
		}
	}
	return n == 0 || n == len(s.Own)
}

// beyond lists the loops of a stream on which its member v does not depend. For a member that belongs to a
// whole row these are the columns of the values.
func (r *region) beyond(v *ir.Value) []*ir.Range {
	if r.stream == nil {
		return nil
	}
	have := map[*ir.Range]bool{}
	for _, e := range r.at[v] {
		for s := range ir.FreeRanges(e) {
			have[s] = true
		}
	}
	var out []*ir.Range
	for _, s := range r.space {
		if !have[s] && !r.cols[s] {
			out = append(out, s)
		}
	}
	return out
}

// streamPair is how one chained stream joins another one that has all of its products.
type streamPair struct {
	main, also *form.Stream
	swapped    bool                    // main is the stream of the second of the aligned regions
	same       map[*ir.Value]*ir.Value // from products of also to the equal products of main
}

// renamed is the joining stream over the ranges of the main one.
func (p *streamPair) renamed(al *alignment) *form.Stream {
	to := al.to
	if p.swapped {
		to = al.from
	}
	at, out := map[*ir.Range]*ir.Expr{}, *p.also
	for r, main := range to {
		at[r] = main.At()
	}
	out.Keys, out.Own = p.main.Keys, p.main.Own
	out.Factor, out.Value = ir.Substitute(out.Factor, at), ir.Substitute(out.Value, at)
	return &out
}

// joined is the region's stream with another one beside it.
func (p *streamPair) joined(main, also *streamed, al *alignment) *streamed {
	out := &streamed{Stream: main.Stream, depth: map[*ir.Range]bool{}, also: p.renamed(al), same: p.same}
	for _, s := range []*streamed{main, also} {
		for r := range s.depth {
			out.depth[r] = true
		}
	}
	return out
}

// reversed is the alignment with the regions in the other order.
func (al *alignment) reversed() *alignment {
	out := *al
	out.to, out.from = al.from, al.to
	if al.streams != nil {
		p := *al.streams
		p.swapped = !p.swapped
		out.streams = &p
	}
	return &out
}
