package fuse

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// region is a set of values that become one kernel of the loop template. Its
// space is a list of ranges; every member's own ranges are written over them: as
// one of them, or as outer*n + inner where a range was split (refine.go). The
// columns are the ranges that its reductions run over; a region without a
// reduction has none.
type region struct {
	id      int
	rank    int         // after those of the regions that it reads, see convex.go
	mark    int         // of the search that met it last
	members []*ir.Value // in graph order
	space   []*ir.Range
	cols    map[*ir.Range]bool
	at      map[*ir.Value]map[*ir.Range]*ir.Expr // member's ranges, over space
	walk    map[*ir.Range]bool                   // rows that partial results are folded over, see partial.go
	inside  *ir.Expr                             // where a row of the walk is one; over space
	stream  *streamed                            // of the attend template
	folded  *folded                              // of a product whose tiles are folded
	product *ir.Value                            // the product that waits for the other reductions, see prologue.go
	size    extent
	reads   []*ir.Value        // what its members read, each once
	inputs  map[*ir.Value]bool // the same as a set
}

func newRegion(v *ir.Value) *region {
	r := &region{members: []*ir.Value{v}, cols: map[*ir.Range]bool{}, at: map[*ir.Value]map[*ir.Range]*ir.Expr{v: {}}}
	if s := form.ScanOf(v); s != nil {
		r.scan(v, s)
		return r
	}
	if s := form.SortOf(v); s != nil {
		r.sort(v, s)
		return r
	}
	if v.Reduce != nil && v.Reduce.Rank != nil {
		panic("BUG: the place that " + v.Name + " picks from an order has no axis of its own")
	}
	for _, own := range algebra.Widened(algebra.AllRanges(v)) {
		r.space = append(r.space, own)
		r.at[v][own] = own.At()
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

// index is an index of member v written over the region's space, where its loops
// run.
func (r *region) index(v *ir.Value, e *ir.Expr, facts ir.Facts) *ir.Expr {
	switch e.Op {
	case ir.OpRange:
		return r.at[v][e.Range]
	case ir.OpConst:
		return e
	}
	facts.Within = r.space
	return ir.Simplify(ir.Substitute(e, r.at[v]), facts)
}

// alignment maps the ranges of one region's space to those of another.
type alignment struct {
	to     map[*ir.Range]*ir.Range // b to a
	from   map[*ir.Range]*ir.Range // a to b
	sorted map[*ir.Range]bool      // ranges in order, which are no loops of their regions
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
// the reverse. Where a load shows that a loop of one region is two of the other,
// that loop is split first: the regions returned are those the alignment is of.
func (f *fuser) align(a, b *region) (*region, *region, *alignment, *form.Refusal) {
	for range maxSplits {
		al := &alignment{to: map[*ir.Range]*ir.Range{}, from: map[*ir.Range]*ir.Range{}, sorted: sortedIn(a, b)}
		m := &matcher{alignment: al, facts: f.facts}
		no := f.alignEdges(m, a, b)
		if no == nil && m.want == nil {
			f.alignSharedReads(m, a, b)
		}
		if m.want != nil {
			a, b = m.want.apply(f.g, a, b)
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

// alignEdges makes every load of a member of a from b hit the current point.
func (f *fuser) alignEdges(m *matcher, a, b *region) *form.Refusal {
	for _, u := range b.members {
		for _, load := range f.loads[u] {
			v := load.From
			if !a.has(v) {
				continue
			}
			for d, axis := range v.Axes {
				if algebra.IsUnit(axis) {
					continue
				}
				if !m.match(a.at[v][axis], b.index(u, load.Args[d], f.facts)) {
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

// alignSharedReads pairs loops that walk one axis of a tensor both regions read,
// where all other axes agree already: x[i, k] here and x[i, j] there.
func (f *fuser) alignSharedReads(m *matcher, a, b *region) {
	if len(m.to) == len(b.space) {
		return
	}
	type site struct {
		v    *ir.Value
		load *ir.Expr
	}
	reads := map[*ir.Value][]site{}
	for _, u := range a.members {
		for _, load := range f.loads[u] {
			if !a.has(load.From) {
				reads[load.From] = append(reads[load.From], site{u, load})
			}
		}
	}
	for _, u := range b.members {
		for _, lb := range f.loads[u] {
			for _, s := range reads[lb.From] {
				m.matchLoads(a, s.v, s.load, b, u, lb)
				if m.want != nil {
					return
				}
			}
		}
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
func checkSpaces(al *alignment, a, b *region) *form.Refusal {
	onlyA, onlyB := unpaired(a.space, al.from), unpaired(b.space, al.to)
	span := b.members[len(b.members)-1].Origin.Span
	switch {
	case len(onlyA) > 0 && len(onlyB) > 0:
		return form.Refuse(ir.ReasonDifferentRanges, span, "the loops over %s and over %s are different ones", form.Names(onlyA), form.Names(onlyB))
	case a.stream != nil && len(b.cols) == 0 && len(onlyB) == 0 && a.stream.rowsOnly(onlyA, a.cols):
		return nil // at each row of the stream
	case len(onlyA) > 0 && !(len(b.cols) == 0 && algebra.SameRanges(onlyA, a.cols)):
		return form.Refuse(ir.ReasonDifferentRanges, span, "%s is computed once for all %s", b.members[0].Name, form.Names(onlyA))
	case len(onlyB) > 0 && !(len(a.cols) == 0 && algebra.SameRanges(onlyB, b.cols)):
		return form.Refuse(ir.ReasonDifferentRanges, span, "%s would be computed again for each %s", a.members[0].Name, form.Names(onlyB))
	}
	if len(a.cols) > 0 && len(b.cols) > 0 {
		for rb := range b.cols {
			if !a.cols[al.to[rb]] || len(a.cols) != len(b.cols) {
				return form.Refuse(ir.ReasonDifferentRanges, span, "reductions over %s and over %s need separate sweeps",
					form.Names(ordered(a.space, a.cols)), form.Names(ordered(b.space, b.cols)))
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

func ordered(space []*ir.Range, set map[*ir.Range]bool) []*ir.Range {
	var out []*ir.Range
	for _, r := range space {
		if set[r] {
			out = append(out, r)
		}
	}
	return out
}

// merged returns the union of two aligned regions.
func merged(a, b *region, al *alignment, order map[*ir.Value]int) *region {
	m := &region{id: a.id, space: append([]*ir.Range(nil), a.space...), cols: map[*ir.Range]bool{}, at: map[*ir.Value]map[*ir.Range]*ir.Expr{}}
	for r := range a.cols {
		m.cols[r] = true
	}
	rename := map[*ir.Range]*ir.Expr{}
	for _, rb := range b.space {
		to := al.to[rb]
		if to == nil {
			to = rb
			m.space = append(m.space, rb)
		}
		rename[rb] = to.At()
		if b.cols[rb] {
			m.cols[to] = true
		}
	}
	for v, at := range a.at {
		m.at[v] = at
	}
	for v, at := range b.at {
		m.at[v] = map[*ir.Range]*ir.Expr{}
		for own, e := range at {
			m.at[v][own] = ir.Substitute(e, rename)
		}
	}
	m.members = mergeOrdered(a.members, b.members, order)
	m.stream, m.folded = a.stream, a.folded
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
