package fuse

import (
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// oneDirection refuses to put scans of opposite directions into one kernel, because a row that is read in
// pieces is read in one direction. It also refuses to split the loop of a scan.
func oneDirection(a, b *region) *form.Refusal {
	for i, r := range []*region{a, b} {
		other := []*region{b, a}[i]
		if v := scanIn(r); v != nil && (len(r.cols) != 1 || len(other.accumulated) > 0) {
			return form.Refuse(ir.ReasonIndexMismatch, v.Origin.Span, "a reshape would cut the axis along which %s accumulates", v.Name)
		}
	}
	for _, u := range a.members {
		for _, v := range b.members {
			su, sv := form.ScanOf(u), form.ScanOf(v)
			if su != nil && sv != nil && su.Reverse != sv.Reverse {
				return form.Refuse(ir.ReasonDifferentRanges, v.Origin.Span,
					"%s and %s accumulate from opposite ends of their axis", u.Name, v.Name)
			}
		}
	}
	return nil
}
