package fuse

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// regionKind is a row of the table of kinds: what a region can be besides a nest of loops. A region may be
// of several kinds.
type regionKind struct {
	name   string
	is     func(*program, *region) bool
	begin  func(*region, *ir.Value) bool                               // makes the region of a value one of this kind, and reports whether it did; nil where only merging forms such regions
	align  func(a, b *region, facts ir.Facts) (al *alignment, ok bool) // aligns two regions of this kind in a way of its own; nil for none
	veto   func(*merging) *form.Refusal                                // why two aligned regions must not be merged; nil for a kind that allows all merges
	encode func(*encoding, *region)                                    // writes what a kernel of this kind depends on besides loops and members; nil for nothing
	may    role                                                        // the transformations that such a region can take part in
}

// role is a set of transformations that a region can take part in.
type role uint8

const (
	lastBlocks    role = 1 << iota // last-block reduction: be one of two kernels in one launch
	joins                          // horizontal fusion
	takesRows                      // have a row program as its prologue
	givesRows                      // be the prologue of a product that reads it
	isAccumulated                  // row-chunk accumulation over its rows
)

// regionKinds has a row for each kind. The first veto in its order is the reason that is given.
var regionKinds = []regionKind{
	{name: "product", is: func(p *program, r *region) bool { return p.product(r) != nil }, may: takesRows | isAccumulated,
		veto: (*merging).keepsTiles},
	{name: "scan", is: func(_ *program, r *region) bool { return scanIn(r) != nil }, begin: (*region).scan,
		veto: func(m *merging) *form.Refusal { return oneDirection(m.a, m.b) }},
	{name: "stream", is: func(_ *program, r *region) bool { return r.stream != nil }, may: joins | isAccumulated, align: alignStreams, encode: (*encoding).stream,
		veto: func(m *merging) *form.Refusal {
			return keepsStream(m.wholeA, m.wholeB, m.al, m.a != m.wholeA)
		}},
	{name: "folded product", is: func(_ *program, r *region) bool { return r.folded != nil }, may: isAccumulated, encode: (*encoding).folded,
		veto: func(m *merging) *form.Refusal { return keepsFolds(m.wholeA, m.wholeB) }},
	{name: "order", is: func(_ *program, r *region) bool { return sortIn(r) != nil }, may: joins, begin: (*region).sort,
		veto: func(m *merging) *form.Refusal { return keepsOrder(m.a, m.b, m.al) }},
	{name: "scatter", is: func(_ *program, r *region) bool { return scattersIn(r) }, may: joins, veto: (*merging).keepsKeys},
	{name: "row product", is: func(_ *program, r *region) bool { return r.product != nil }, may: lastBlocks | joins | takesRows | isAccumulated,
		encode: (*encoding).rowProduct},
	{name: "concatenation", is: func(_ *program, r *region) bool { return r.concat },
		veto: func(m *merging) *form.Refusal { return keepsConcat(m.wholeA, m.wholeB) }},
	{name: "row accumulation", is: func(_ *program, r *region) bool { return len(r.accumulated) > 0 }, may: isAccumulated, encode: (*encoding).accumulated},
}

// may reports whether every kind of a region allows it to take part in something.
func (p *program) may(r *region, do role) bool {
	for _, k := range regionKinds {
		if k.may&do == 0 && k.is(p, r) {
			return false
		}
	}
	return true
}

// aligned aligns two regions in the way of a kind, or by their loops.
func (p *program) aligned(a, b *region) (*region, *region, *alignment, *form.Refusal) {
	for _, k := range regionKinds {
		if k.align == nil {
			continue
		}
		if al, ok := k.align(a, b, p.facts); ok {
			return a, b, al, nil
		}
	}
	return p.align(a, b)
}

func newRegion(v *ir.Value) *region {
	r := &region{members: []*ir.Value{v}, cols: map[*ir.Range]bool{}, at: map[*ir.Value]map[*ir.Range]*ir.Expr{v: {}}}
	for _, k := range regionKinds {
		if k.begin != nil && k.begin(r, v) {
			return r
		}
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

// scan makes r the region of v where that is a scan: the axis is its column range, and the
// reduced range another name of it.
func (r *region) scan(v *ir.Value) bool {
	s := form.ScanOf(v)
	if s == nil {
		return false
	}
	for _, own := range algebra.Widened(v.Axes) {
		r.space = append(r.space, own)
		r.at[v][own] = own.At()
	}
	r.at[v][s.Over] = s.Axis.At()
	r.cols[s.Axis] = true
	return true
}

// sort makes r the region of v if v picks from an order. The space of r is the places of every
// row's order.
func (r *region) sort(v *ir.Value) bool {
	s := form.SortOf(v)
	if s == nil {
		return false
	}
	for _, own := range algebra.Widened(v.Axes) {
		r.space = append(r.space, own)
		r.at[v][own] = own.At()
	}
	r.at[v][s.Over] = s.Over.At()
	return true
}
