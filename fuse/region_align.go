package fuse

import (
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
			no = checkSpaces(al, a, b)
		}
		return a, b, al, no
	}
	return a, b, nil, form.Refuse(ir.ReasonIndexMismatch, diag.Span{}, "their loops would have to be split more than %d times", maxSplits)
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
					return form.Refuse(ir.ReasonIndexMismatch, load.Span,
						"%s reads %s at other points than the loop that computes it visits", u.Name, v.Name)
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
// the rows of the other.
func checkSpaces(al *alignment, a, b *region) *form.Refusal {
	onlyA, onlyB := unpaired(a.space, al.from), unpaired(b.space, al.to)
	span := b.members[len(b.members)-1].Origin.Span
	switch {
	case len(onlyA) > 0 && len(onlyB) > 0:
		return form.Refuse(ir.ReasonDifferentRanges, span, "the loops over %s and over %s are different ones", form.Names(onlyA), form.Names(onlyB))
	case a.stream != nil && len(b.cols) == 0 && len(onlyB) == 0 && a.stream.rowsOnly(onlyA, a.cols):
		return nil // at each row of the stream
	case len(onlyA) > 0 && !(len(b.cols) == 0 && algebra.SameRanges(onlyA, a.cols)):
		return form.Refuse(ir.ReasonDifferentRanges, span, "%s has no loop over %s, in which %s is computed", b.members[0].Name, form.Names(onlyA), a.members[len(a.members)-1].Name)
	case len(onlyB) > 0 && !(len(a.cols) == 0 && algebra.SameRanges(onlyB, b.cols)):
		return form.Refuse(ir.ReasonDifferentRanges, span, "%s would be computed again for each %s", a.members[0].Name, form.Names(onlyB))
	}
	if len(a.cols) > 0 && len(b.cols) > 0 {
		for rb := range b.cols {
			if !a.cols[al.to[rb]] || len(a.cols) != len(b.cols) {
				return form.Refuse(ir.ReasonDifferentRanges, span, "%s and %s are reduced over in loops of their own",
					form.Names(ordered(a.space, a.cols)), form.Names(ordered(b.space, b.cols)))
			}
		}
	}
	return nil
}
