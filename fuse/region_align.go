package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// align finds a renaming of b's space under which both regions run in one nest of loops, or says why there
// is none. b may read values of a, and never the reverse. Where a load shows that a loop of one region is
// two loops of the other, that loop is split first; the alignment is of the regions returned.
func (p *program) align(a, b *region) (*region, *region, *alignment, *form.Refusal) {
	for range maxSplits {
		al := &alignment{to: map[*ir.Range]*ir.Range{}, from: map[*ir.Range]*ir.Range{}, sorted: sortedIn(a, b)}
		m := &matcher{alignment: al, facts: p.facts}
		no := p.alignEdges(m, a, b)
		if no == nil && m.want == nil {
			p.alignSharedReads(m, a, b)
		}
		if m.want != nil {
			a, b = m.want.apply(p.g, a, b)
			continue
		}
		if no == nil {
			alignLeftovers(al, a, b)
			no = p.checkSpaces(al, a, b)
		}
		return a, b, al, no
	}
	return a, b, nil, form.Refuse(ir.ReasonIndexMismatch, diag.Span{}, "more than %d reshapes lie between the two", maxSplits)
}

// alignEdges pairs loops so that b reads every member of a at the current point.
func (p *program) alignEdges(m *matcher, a, b *region) *form.Refusal {
	for _, u := range b.members {
		for _, load := range p.loads[u] {
			v := load.From
			if !a.has(v) {
				continue
			}
			for d, axis := range v.Axes {
				if algebra.IsUnit(axis) {
					continue
				}
				if !m.match(a.at[v][axis], b.index(u, load.Args[d], p.facts)) {
					return readsElsewhere(u, load, d)
				}
				m.commit()
				if m.want != nil {
					return nil
				}
			}
		}
	}
	return nil
}

// readsElsewhere refuses a reader u that loads, along axis d, an element that is not computed at the
// current point.
func readsElsewhere(u *ir.Value, load *ir.Expr, d int) *form.Refusal {
	if len(ir.Loads(load.Args[d])) > 0 {
		return form.Refuse(ir.ReasonIndexMismatch, load.Span, "%s looks up elements of %s by indices that are data, so all of it has to be there first", u.Name, load.From.Name)
	}
	return form.Refuse(ir.ReasonIndexMismatch, load.Span,
		"%s does not read the element of %s that is computed beside it: a transpose, slice, window, shift or reshape lies between", u.Name, load.From.Name)
}

// site is a load, and the member of a region whose expression it is in.
type site struct {
	r    *region
	v    *ir.Value
	load *ir.Expr
}

// index is an index of the load over the region's space.
func (s site) index(d int, facts ir.Facts) *ir.Expr { return s.r.index(s.v, s.load.Args[d], facts) }

// alignSharedReads pairs loops that index the same axis of a tensor which both regions read, where all
// other axes agree already: x[i, k] in one and x[i, j] in the other.
func (p *program) alignSharedReads(m *matcher, a, b *region) {
	if len(m.to) == len(b.space) {
		return
	}
	reads := map[*ir.Value][]site{}
	for _, u := range a.members {
		for _, load := range p.loads[u] {
			if !a.has(load.From) {
				reads[load.From] = append(reads[load.From], site{a, u, load})
			}
		}
	}
	for _, u := range b.members {
		for _, lb := range p.loads[u] {
			for _, s := range reads[lb.From] {
				m.matchLoads(s, site{b, u, lb})
				if m.want != nil {
					return
				}
			}
		}
	}
}

// alignLeftovers pairs the loops that no read constrains, in order, by extent.
func alignLeftovers(al *alignment, a, b *region) {
	for _, rb := range b.space {
		if al.to[rb] != nil {
			continue
		}
		for _, ra := range a.space {
			compatible := len(a.cols) == 0 || len(b.cols) == 0 || a.cols[ra] == b.cols[rb]
			if al.from[ra] == nil && compatible && al.pair(ra, rb) {
				break
			}
		}
	}
}

// checkSpaces decides whether the aligned regions are one nest of loops: their spaces are equal, or one is
// the rows of the other, or both are scatters of which one has fewer lanes.
func (p *program) checkSpaces(al *alignment, a, b *region) *form.Refusal {
	onlyA, onlyB := unpaired(a.space, al.from), unpaired(b.space, al.to)
	switch {
	case len(onlyA) > 0 && len(onlyB) > 0:
		return p.runsApart(a, b, onlyA)
	case a.stream != nil && len(b.cols) == 0 && b.readsFrom(a) && slices.ContainsFunc(b.space, func(r *ir.Range) bool { return a.cols[al.to[r]] }):
		return p.runsApart(a, b, ordered(a.space, a.cols)) // what follows a stream goes along its results, not along keys that are as many
	case a.stream != nil && len(b.cols) == 0 && len(onlyB) == 0 && a.stream.rowsOnly(onlyA, a.cols):
		return nil // at each row of the stream
	case p.sharesKeys(al, a, b):
		return nil
	case len(onlyA) > 0 && !(len(b.cols) == 0 && algebra.SameRanges(onlyA, a.cols)):
		return p.repeats(a, b, onlyA)
	case len(onlyB) > 0 && !(len(a.cols) == 0 && algebra.SameRanges(onlyB, b.cols)):
		return p.repeats(a, b, nil)
	}
	if len(a.cols) > 0 && len(b.cols) > 0 {
		for rb := range b.cols {
			if !a.cols[al.to[rb]] || len(a.cols) != len(b.cols) {
				x, y, span := p.ends(a, b)
				return form.Refuse(ir.ReasonDifferentRanges, span, "the kernel of %s reduces over %s and that of %s over %s: one kernel reduces over the same axes",
					x.Name, form.Shape(ordered(a.space, a.cols)), y.Name, form.Shape(ordered(b.space, b.cols)))
			}
		}
	}
	return nil
}

// edge returns a value of a that a value of b reads, the reader, and the place of the read.
func (p *program) edge(a, b *region) (producer, consumer *ir.Value, span diag.Span) {
	for _, u := range b.members {
		for _, l := range p.loads[u] {
			if a.has(l.From) {
				return l.From, u, l.Span
			}
		}
	}
	return nil, nil, diag.Span{}
}

// ends returns a value of a and a value of b that reads it, or the last value of a and the first of b if b reads none;
// and the place in b that messages point to.
func (p *program) ends(a, b *region) (x, y *ir.Value, span diag.Span) {
	span = b.members[len(b.members)-1].Origin.Span
	if x, y, _ = p.edge(a, b); x != nil {
		return x, y, span
	}
	return a.members[len(a.members)-1], b.members[0], span
}

// runsApart refuses regions each of which has a loop that the other has not; onlyA is the loops that only a
// has.
func (p *program) runsApart(a, b *region, onlyA []*ir.Range) *form.Refusal {
	x, y, span := p.ends(a, b)
	over, other := form.Shape(a.space), form.Shape(b.space)
	switch {
	case algebra.Subset(algebra.RangeSet(onlyA), a.cols):
		return form.Refuse(ir.ReasonDifferentRanges, span,
			"%s has to be complete before %s begins: it is reduced along another axis than the kernel of %s goes along", x.Name, y.Name, y.Name)
	case over == other:
		return form.Refuse(ir.ReasonDifferentRanges, span, "the kernels of %s and %s both run over %s, but not over the same axes of these lengths", x.Name, y.Name, over)
	}
	return form.Refuse(ir.ReasonDifferentRanges, span, "the kernel of %s runs over %s and that of %s over %s: one kernel runs over the same axes",
		x.Name, over, y.Name, other)
}

// repeats refuses regions of which one would be computed again at every point of a loop of the other. onlyA is the
// loops that only a has; if it is empty, b has more loops.
func (p *program) repeats(a, b *region, onlyA []*ir.Range) *form.Refusal {
	x, y, span := p.ends(a, b)
	if len(onlyA) > 0 && len(b.cols) > 0 && algebra.SameRanges(onlyA, a.cols) {
		return form.Refuse(ir.ReasonDifferentRanges, span, "%s reduces across the rows that the kernel of %s computes side by side, and has to wait for all of them", y.Name, x.Name)
	}
	inner, outer := a, b
	if len(onlyA) > 0 {
		inner, outer, x, y = b, a, y, x
	}
	over := "computed over " + form.Shape(inner.space)
	if len(inner.space) == 0 {
		over = "a single number"
	}
	return form.Refuse(ir.ReasonDifferentRanges, span, "%s is %s, and would be computed again and again in a kernel with %s, which runs over %s",
		x.Name, over, y.Name, form.Shape(outer.space))
}
