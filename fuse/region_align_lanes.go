package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Two scatters by one key may differ in their lanes: the weights of a graph's edges are summed for each node, and what the
// edges bring, for each node and feature; the rows of a mean are summed, and counted. One kernel for both finds once which
// columns go to a place. Each lane then has the sums of the scatter with fewer lanes too, which the first one stores.

// sharesKeys reports whether two aligned regions are scatters of which one has all loops of the other, and lanes beside them.
func (p *program) sharesKeys(al *alignment, a, b *region) bool {
	onlyA, onlyB := unpaired(a.space, al.from), unpaired(b.space, al.to)
	if len(a.cols) == 0 || len(a.cols) != len(b.cols) || !onlyScatters(a) || !onlyScatters(b) {
		return false
	}
	for r := range b.cols {
		if !a.cols[al.to[r]] {
			return false
		}
	}
	switch {
	case len(onlyA) > 0 && len(onlyB) == 0:
		al.fewer = b
	case len(onlyB) > 0 && len(onlyA) == 0:
		al.fewer = a
	}
	return al.fewer != nil
}

// onlyScatters reports whether all reductions of a plain nest of loops are scatters.
func onlyScatters(r *region) bool {
	return r.stream == nil && r.folded == nil && r.product == nil && len(r.accumulated) == 0 && !slices.ContainsFunc(r.members, func(v *ir.Value) bool {
		return v.Reduce != nil && form.ScatterIn(v) == nil
	})
}
