package fuse

import (
	"maps"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/passes"
	"github.com/fusec/fusec/ir"
)

// A value that only moves elements to other places needs no kernel: the kernel that computes the elements stores
// each at its final place. The phases of a transposed convolution are moved so. They may have places past the end of
// an axis, which are not stored.

// mergePlaced gives such values to the regions that compute what they move.
func (pt *partition) mergePlaced() {
	for _, v := range pt.g.Values {
		from := pt.movedFrom(v)
		if from == nil {
			continue
		}
		a, b := pt.home[from], pt.home[v]
		if a == b || len(b.members) > 1 || !pt.readOnlyIn(from, a, b) || !storesRowsOnly(a) || pt.keepsConvex(a, b) != nil {
			continue
		}
		pt.take(pt.placed(a, v, from))
	}
}

// movedFrom is the sum, or the value computed from it, whose elements v moves; nil if v computes anything, or if
// the elements are needed at their old places too.
func (fl *flow) movedFrom(v *ir.Value) *ir.Value {
	if v.IsInput() || v.Reduce != nil || v.Body.Op != ir.OpLoad || v.Body.Fill != nil {
		return nil
	}
	from := v.Body.From
	if from.IsInput() || from.Type != v.Type || fl.results[from] || fl.updates[v] != nil || passes.PlacesOf(v, v.Body) == nil {
		return nil
	}
	return from
}

// storesRowsOnly reports whether a region is a plain reduction, whose results are stored after it.
func storesRowsOnly(r *region) bool {
	return len(r.cols) > 0 && r.stream == nil && r.folded == nil && r.product == nil && len(r.accumulated) == 0 &&
		scanIn(r) == nil && sortIn(r) == nil
}

// placed is a region with one more member, which moves the elements of the member from.
func (fl *flow) placed(a *region, v, from *ir.Value) *region {
	m := &region{id: a.id, space: a.space, cols: a.cols, at: maps.Clone(a.at), stored: maps.Clone(a.stored),
		members: mergeOrdered(a.members, []*ir.Value{v}, fl.order)}
	m.at[v] = map[*ir.Range]*ir.Expr{}
	places := passes.PlacesOf(v, v.Body)
	inside := a.stored[from] // from may have been moved itself, and have places past the end of another axis
	for _, r := range v.Axes {
		place, ok := places[r]
		if !ok {
			continue
		}
		m.at[v][r] = place.At(from, func(own *ir.Range) *ir.Expr { return a.index(from, own.At(), fl.facts) })
		if place.Stride > 1 && !ir.Multiple(r.Extent, place.Stride, fl.facts) {
			inside = algebra.And(inside, ir.Apply(ir.OpLt, m.at[v][r], r.Extent))
		}
	}
	if inside != nil {
		if m.stored == nil {
			m.stored = map[*ir.Value]*ir.Expr{}
		}
		m.stored[v] = inside
	}
	return m
}
