package fuse

import "github.com/fusec/fusec/ir"

// sharedSlots is the work of one point of a region, where what several members compute, or one computes several times, counts
// once. It is at most the sum over the members, which takes less time to find.
func (fl *flow) sharedSlots(r *region) int {
	w, points := sharedWork{counted: map[uint64]bool{}}, map[*ir.Value]*ir.Expr{}
	for _, v := range r.members {
		body := pointOf(r, v, points)
		w.add(body)
		if v.Reduce == nil {
			points[v] = body
		}
	}
	return w.slots
}

// pointOf is what a member computes, over the region's space. points is that of members before it; it reads them at its own point.
func pointOf(r *region, v *ir.Value, points map[*ir.Value]*ir.Expr) *ir.Expr {
	return ir.Rewrite(v.Body, func(e *ir.Expr) *ir.Expr {
		switch {
		case e.Op == ir.OpRange && r.at[v][e.Range] != nil:
			return r.at[v][e.Range]
		case e.Op == ir.OpLoad && points[e.From] != nil:
			return points[e.From]
		}
		return e
	})
}
