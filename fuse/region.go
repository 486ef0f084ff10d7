package fuse

import (
	"maps"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// region is a set of values that become one kernel of the loop template. Its space is a list of ranges,
// over which the ranges of every member are written: each is one of them, or outer*n + inner where a range
// was split (region_refine.go). The columns are the ranges that the region's reductions run over; a region
// without a reduction has none.
type region struct {
	id          int
	rank        int         // above the ranks of the regions that it reads, see region_order.go
	mark        int         // mark of the search that found it last
	members     []*ir.Value // in graph order
	space       []*ir.Range
	cols        map[*ir.Range]bool
	at          map[*ir.Value]map[*ir.Range]*ir.Expr // member's ranges, over space
	stored      map[*ir.Value]*ir.Expr               // conditions, over space, under which members are stored, see merge_placed.go
	accumulated map[*ir.Range]bool                   // rows that partial results are folded over, see merge_partial.go
	inside      *ir.Expr                             // condition that a row of the chunk exists; over space
	stream      *streamed                            // of the attend template
	folded      *folded                              // of a product with a reduction epilogue
	product     *ir.Value                            // the product that waits for the other reductions, see merge_prologue.go
	concat      bool                                 // of a concatenation whose parts other regions store: it has no kernel, see merge_concat.go
	size        extent
	reads       []*ir.Value        // the values that its members read, each once
	inputs      map[*ir.Value]bool // the same as a set
}

// has reports whether v is computed in the region.
func (r *region) has(v *ir.Value) bool { return r.at[v] != nil }

// reductionOf is the first reduction of a region; nil where it has none.
func reductionOf(r *region) *ir.Value {
	for _, v := range r.members {
		if v.Reduce != nil {
			return v
		}
	}
	return nil
}

// readsFrom reports whether a member of the region reads a member of another one.
func (r *region) readsFrom(other *region) bool {
	return r != other && slices.ContainsFunc(r.reads, other.has)
}

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
	if al.streams != nil && al.streams.swapped {
		a, b, al = b, a, al.reversed()
	}
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
	m.stored = maps.Clone(a.stored)
	for v, inside := range b.stored {
		if m.stored == nil {
			m.stored = map[*ir.Value]*ir.Expr{}
		}
		m.stored[v] = ir.Substitute(inside, rename)
	}
	m.storeOnce(al.fewer)
	m.members = mergeOrdered(a.members, b.members, order)
	m.stream, m.folded = a.stream, a.folded
	if al.streams != nil {
		m.stream = al.streams.joined(a.stream, b.stream, al)
	}
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

// folded is the part of a region that only a product with a reduction epilogue has. The columns of such a
// region are the points of a chunk.
type folded struct {
	product *ir.Value
	depth   []*ir.Range // ranges that the product sums over, which are no loops of the region
	index   *ir.Expr    // index of the column, counted from the first chunk
	extent  *ir.Expr    // upper bound of index; nil where it is always below
}

// extent is the size of a region's kernel.
type extent struct {
	slots  int // work of one point
	passes int // the longest chain of reductions
	args   int // tensors it reads or writes
}

// accumulates reports whether a member is a result accumulated over rows.
func (r *region) accumulates(v *ir.Value) bool {
	for _, own := range v.Reduce.Ranges {
		if e := r.at[v][own]; e != nil && algebra.DependsOnAny(e, r.accumulated) {
			return true
		}
	}
	return false
}

// alignment maps the ranges of one region's space to those of another.
type alignment struct {
	to     map[*ir.Range]*ir.Range // b to a
	from   map[*ir.Range]*ir.Range // a to b
	sorted map[*ir.Range]bool      // ranges that are sorted, which are no loops of their regions
	fewer  *region                 // the scatter of the two that has fewer lanes, see scatter_region_lanes.go; nil where both have the same

	streams *streamPair // set if the streams of both regions become one kernel
}

// pair records that ra and rb are the same loop. It returns false where either is paired with another loop
// already, or where the extents may differ.
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

// scanIn returns a member of the region that is a scan; nil where none is.
func scanIn(r *region) *ir.Value {
	for _, v := range r.members {
		if form.ScanOf(v) != nil {
			return v
		}
	}
	return nil
}

// templateOf names the template of a region.
func templateOf(r *region) ir.Template {
	switch {
	case scanIn(r) != nil:
		return ir.ScanTemplate
	case sortIn(r) != nil:
		return ir.SortTemplate
	}
	return ir.LoopTemplate
}

// sortIn returns a member of the region that picks from an order; nil where none does.
func sortIn(r *region) *ir.Value {
	for _, v := range r.members {
		if form.SortOf(v) != nil {
			return v
		}
	}
	return nil
}

// sortedIn lists the ranges that orders of the regions sort over. They are no loops: the kernel loops over
// the places of the order.
func sortedIn(regions ...*region) map[*ir.Range]bool {
	out := map[*ir.Range]bool{}
	for _, r := range regions {
		for _, v := range r.members {
			if s := form.SortOf(v); s != nil {
				out[s.Over] = true
			}
		}
	}
	return out
}

// keepsConcat refuses to merge a concatenation, which has no kernel, with what reads it.
func keepsConcat(regions ...*region) *form.Refusal {
	for _, r := range regions {
		if r.concat {
			return form.Refuse(ir.ReasonNoGain, r.members[0].Origin.Span, "the kernels that compute the parts of %s store them", r.members[0].Name)
		}
	}
	return nil
}
