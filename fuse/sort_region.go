package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// keepsOrder refuses to put anything into the kernel of an order but values that pick from the same order,
// and what is computed from it point by point.
func keepsOrder(a, b *region, al *alignment) *form.Refusal {
	va, vb := sortIn(a), sortIn(b)
	switch {
	case va == nil && vb == nil:
		return nil
	case readsPlaces(a, b), readsPlaces(b, a):
	case vb == nil && b.readsFrom(a) && len(b.cols) == 0 && len(b.accumulated) == 0 && asLoops(a, va):
		return nil
	case va != nil && vb != nil && sameOrder(a, va, b, vb, al):
		return nil
	}
	v := vb
	if v == nil {
		v = va
	}
	return form.Refuse(ir.ReasonDifferentRanges, v.Origin.Span, "%s is sorted in a kernel of its own", v.Name)
}

// readsPlaces reports whether a region reads at which places elements stand: the kernel of the order knows that place by place, and
// not element by element.
func readsPlaces(order, by *region) bool {
	return slices.ContainsFunc(order.members, func(v *ir.Value) bool {
		return v.Reduce != nil && v.Reduce.Inverse && slices.Contains(by.reads, v)
	})
}

// asLoops reports whether v's axes are loops of the region, unchanged.
func asLoops(r *region, v *ir.Value) bool {
	for _, axis := range algebra.Widened(v.Axes) {
		if r.at[v][axis].Op != ir.OpRange {
			return false
		}
	}
	return true
}

// sameOrder reports whether two values pick from one order.
func sameOrder(a *region, va *ir.Value, b *region, vb *ir.Value, al *alignment) bool {
	sa, sb := form.SortOf(va), form.SortOf(vb)
	if !asLoops(a, va) || !asLoops(b, vb) || va.Reduce.Op.Descending() != vb.Reduce.Op.Descending() ||
		va.Body.Type != vb.Body.Type || !ir.SameSize(sa.Over.Extent, sb.Over.Extent) {
		return false
	}
	toA := map[*ir.Range]*ir.Expr{sb.Over: sa.Over.At()}
	for _, r := range vb.Axes {
		if e := b.at[vb][r]; e != nil && al.to[e.Range] != nil {
			toA[r] = al.to[e.Range].At()
		}
	}
	if !ir.Equal(toA[sb.Place], a.at[va][sa.Place]) {
		return false
	}
	return ir.Equal(ir.Substitute(va.Body, a.at[va]), ir.Substitute(vb.Body, toA))
}
