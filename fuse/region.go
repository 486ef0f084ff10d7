package fuse

import (
	"fmt"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// region is a set of values that become one kernel of the loop template. Its
// space is a list of ranges; every member's own ranges are renamed to them. The
// columns are the ranges that its reductions run over; a region without a
// reduction has none.
type region struct {
	id      int
	members []*ir.Value // in graph order
	space   []*ir.Range
	cols    map[*ir.Range]bool
	at      map[*ir.Value]map[*ir.Range]*ir.Range // member's ranges to space
}

func newRegion(id int, v *ir.Value) *region {
	r := &region{id: id, members: []*ir.Value{v}, cols: map[*ir.Range]bool{}, at: map[*ir.Value]map[*ir.Range]*ir.Range{v: {}}}
	for _, own := range widened(allRanges(v)) {
		r.space = append(r.space, own)
		r.at[v][own] = own
	}
	if v.Reduce != nil {
		for _, own := range v.Reduce.Ranges {
			r.cols[own] = true
		}
	}
	return r
}

// has reports whether v is computed in the region.
func (r *region) has(v *ir.Value) bool { return r.at[v] != nil }

// refusal is why two regions stay apart.
type refusal struct {
	reason ir.Reason
	detail string
	span   diag.Span
}

func refuse(reason ir.Reason, span diag.Span, format string, args ...any) *refusal {
	return &refusal{reason, fmt.Sprintf(format, args...), span}
}

// alignment maps the ranges of one region's space to those of another.
type alignment struct {
	to   map[*ir.Range]*ir.Range // b to a
	from map[*ir.Range]*ir.Range // a to b
}

// pair records that rb is the same loop as ra; false where either is another
// loop already or the extents may differ.
func (al *alignment) pair(ra, rb *ir.Range) bool {
	if al.to[rb] == ra && ra != nil {
		return true
	}
	if al.to[rb] != nil || al.from[ra] != nil || !ir.SameSize(ra.Extent, rb.Extent) {
		return false
	}
	al.to[rb], al.from[ra] = ra, rb
	return true
}

// align finds the renaming of b's space under which both regions run in one
// nest of loops, or says why there is none. Values of a may be read by b, never
// the reverse.
func align(a, b *region) (*alignment, *refusal) {
	al := &alignment{map[*ir.Range]*ir.Range{}, map[*ir.Range]*ir.Range{}}
	if no := alignEdges(al, a, b); no != nil {
		return nil, no
	}
	alignSharedReads(al, a, b)
	alignLeftovers(al, a, b)
	return al, checkSpaces(al, a, b)
}

// alignEdges makes every load of a member of a from b hit the current point.
func alignEdges(al *alignment, a, b *region) *refusal {
	for _, u := range b.members {
		for _, load := range u.Loads() {
			v := load.From
			if !a.has(v) {
				continue
			}
			for d, axis := range v.Axes {
				if isUnit(axis) {
					continue
				}
				e := load.Args[d]
				if e.Op != ir.OpRange || !al.pair(a.at[v][axis], b.at[u][e.Range]) {
					return refuse(ir.ReasonIndexMismatch, load.Span,
						"%s reads %s at other points than the loop that computes it visits", u.Name, v.Name)
				}
			}
		}
	}
	return nil
}

// alignSharedReads pairs loops that walk one axis of a tensor both regions read,
// where all other axes agree already: x[i, k] here and x[i, j] there.
func alignSharedReads(al *alignment, a, b *region) {
	if len(al.to) == len(b.space) {
		return
	}
	type site struct {
		v    *ir.Value
		load *ir.Expr
	}
	reads := map[*ir.Value][]site{}
	for _, u := range a.members {
		for _, load := range u.Loads() {
			if !a.has(load.From) {
				reads[load.From] = append(reads[load.From], site{u, load})
			}
		}
	}
	for _, u := range b.members {
		for _, lb := range u.Loads() {
			for _, s := range reads[lb.From] {
				pairLoad(al, a.at[s.v], s.load, b.at[u], lb)
			}
		}
	}
}

// pairLoad pairs the loops of two loads of one tensor when every axis is indexed
// alike and nothing speaks against it.
func pairLoad(al *alignment, atA map[*ir.Range]*ir.Range, la *ir.Expr, atB map[*ir.Range]*ir.Range, lb *ir.Expr) {
	type loops struct{ a, b *ir.Range }
	var fresh []loops
	for d := range la.Args {
		ea, eb := la.Args[d], lb.Args[d]
		if ea.Op != ir.OpRange || eb.Op != ir.OpRange {
			if ir.Equal(ea, eb) && ea.Op == ir.OpConst {
				continue
			}
			return
		}
		ra, rb := atA[ea.Range], atB[eb.Range]
		switch {
		case al.to[rb] == ra:
		case al.to[rb] == nil && al.from[ra] == nil && ir.SameSize(ra.Extent, rb.Extent):
			fresh = append(fresh, loops{ra, rb})
		default:
			return
		}
	}
	for _, p := range fresh {
		al.pair(p.a, p.b)
	}
}

// alignLeftovers pairs the loops nothing constrains, in order, by extent.
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

// checkSpaces decides whether the aligned regions are one nest of loops: equal
// spaces, or one of them the rows of the other.
func checkSpaces(al *alignment, a, b *region) *refusal {
	onlyA, onlyB := unpaired(a.space, al.from), unpaired(b.space, al.to)
	span := b.members[len(b.members)-1].Origin.Span
	switch {
	case len(onlyA) > 0 && len(onlyB) > 0:
		return refuse(ir.ReasonDifferentRanges, span, "the loops over %s and over %s are different ones", names(onlyA), names(onlyB))
	case len(onlyA) > 0 && !(len(b.cols) == 0 && sameRanges(onlyA, a.cols)):
		return refuse(ir.ReasonDifferentRanges, span, "%s is computed once for all %s", b.members[0].Name, names(onlyA))
	case len(onlyB) > 0 && !(len(a.cols) == 0 && sameRanges(onlyB, b.cols)):
		return refuse(ir.ReasonDifferentRanges, span, "%s would be computed again for each %s", a.members[0].Name, names(onlyB))
	}
	if len(a.cols) > 0 && len(b.cols) > 0 {
		for rb := range b.cols {
			if !a.cols[al.to[rb]] || len(a.cols) != len(b.cols) {
				return refuse(ir.ReasonDifferentRanges, span, "reductions over %s and over %s need separate sweeps",
					names(ordered(a.space, a.cols)), names(ordered(b.space, b.cols)))
			}
		}
	}
	return nil
}

func unpaired(space []*ir.Range, paired map[*ir.Range]*ir.Range) []*ir.Range {
	var out []*ir.Range
	for _, r := range space {
		if paired[r] == nil {
			out = append(out, r)
		}
	}
	return out
}

func sameRanges(list []*ir.Range, set map[*ir.Range]bool) bool {
	for _, r := range list {
		if !set[r] {
			return false
		}
	}
	return len(list) == len(set)
}

func ordered(space []*ir.Range, set map[*ir.Range]bool) []*ir.Range {
	var out []*ir.Range
	for _, r := range space {
		if set[r] {
			out = append(out, r)
		}
	}
	return out
}

func names(ranges []*ir.Range) string {
	s := ""
	for i, r := range ranges {
		if i > 0 {
			s += ", "
		}
		s += fmt.Sprintf("%s: %s", r.Name, r.Extent)
	}
	return s
}

// merged returns the union of two aligned regions.
func merged(a, b *region, al *alignment, order map[*ir.Value]int) *region {
	m := &region{id: a.id, space: append([]*ir.Range(nil), a.space...), cols: map[*ir.Range]bool{}, at: map[*ir.Value]map[*ir.Range]*ir.Range{}}
	for r := range a.cols {
		m.cols[r] = true
	}
	for _, rb := range b.space {
		to := al.to[rb]
		if to == nil {
			to = rb
			m.space = append(m.space, rb)
		}
		if b.cols[rb] {
			m.cols[to] = true
		}
	}
	for v, at := range a.at {
		m.at[v] = at
	}
	for v, at := range b.at {
		m.at[v] = map[*ir.Range]*ir.Range{}
		for own, rb := range at {
			m.at[v][own] = rb
			if to := al.to[rb]; to != nil {
				m.at[v][own] = to
			}
		}
	}
	m.members = mergeOrdered(a.members, b.members, order)
	return m
}

func mergeOrdered(a, b []*ir.Value, order map[*ir.Value]int) []*ir.Value {
	out := make([]*ir.Value, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if order[a[0]] < order[b[0]] {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
}
