package fuse

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

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

// scan makes r the region of one scan: the axis is its column range, and the
// reduced range another name of it.
func (r *region) scan(v *ir.Value, s *form.Scan) {
	for _, own := range algebra.Widened(v.Axes) {
		r.space = append(r.space, own)
		r.at[v][own] = own.At()
	}
	r.at[v][s.Over] = s.Axis.At()
	r.cols[s.Axis] = true
}

// sort makes r the region of one order: its space is the places of every row.
func (r *region) sort(v *ir.Value, s *form.Sorted) {
	for _, own := range algebra.Widened(v.Axes) {
		r.space = append(r.space, own)
		r.at[v][own] = own.At()
	}
	r.at[v][s.Over] = s.Over.At()
}
