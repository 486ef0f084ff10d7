package fuse

import (
	"maps"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/fuse/passes"
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

// onlyScatters reports whether all reductions of a plain nest of loops are scatters, of more than few pairs.
func onlyScatters(r *region) bool {
	return storesRowsOnly(r) && !fewPairs(r) && !slices.ContainsFunc(r.members, func(v *ir.Value) bool {
		return v.Reduce != nil && form.ScatterIn(v) == nil
	})
}

// storeOnce makes the members of a scatter with fewer lanes be stored at the first of the lanes that they do not have.
func (r *region) storeOnce(fewer *region) {
	if fewer == nil {
		return
	}
	if r.stored == nil {
		r.stored = map[*ir.Value]*ir.Expr{}
	}
	for _, v := range fewer.members {
		for _, row := range r.lacks(v) {
			r.stored[v] = algebra.And(r.stored[v], ir.Apply(ir.OpEq, row.At(), ir.IntConst(0)))
		}
	}
}

// lacks lists the rows of a region that a member does not lie along.
func (r *region) lacks(v *ir.Value) []*ir.Range {
	own := map[*ir.Range]bool{}
	for _, e := range r.at[v] {
		maps.Copy(own, ir.FreeRanges(e))
	}
	return slices.DeleteFunc(slices.Clone(r.space), func(row *ir.Range) bool { return own[row] || r.cols[row] })
}

// lackTheSame reports whether all members that do not lie along all rows lack the same ones, but for rows that have elements at
// any size. There is one body for the sizes at which these have none, see scatter_empty.go.
func (r *region) lackTheSame() bool {
	var first []*ir.Range
	for _, v := range r.members {
		lacks := slices.DeleteFunc(r.lacks(v), func(row *ir.Range) bool { return row.Extent.Op == ir.OpConst && row.Extent.Int > 0 })
		if len(first) == 0 {
			first = lacks
		}
		if len(lacks) > 0 && !slices.Equal(lacks, first) {
			return false
		}
	}
	return true
}

// repeatsLanes refuses to give a scatter more lanes where that makes no scatter by one key, or takes longer than to find again
// which columns go to a place.
func (m *merging) repeatsLanes() *form.Refusal {
	fewer, more, whole := m.al.fewer, m.b, m.region()
	if fewer == m.b {
		more = m.a
	}
	v, w := reductionOf(fewer), reductionOf(more)
	if !m.isScatter(whole) {
		return form.Refuse(ir.ReasonDifferentRanges, v.Origin.Span, "%s takes the elements that other indices send to each of its rows than %s", v.Name, w.Name)
	}
	if !whole.lackTheSame() {
		return form.Refuse(ir.ReasonDifferentRanges, v.Origin.Span, "%s and others lack different axes of %s: at sizes at which one of these is empty, each would need a kernel of its own", v.Name, w.Name)
	}
	if m.g.OneKernel {
		return nil
	}
	words := 0
	for _, u := range whole.members {
		if u.Reduce == nil {
			continue
		}
		words += forecast.RunningWords(u.Reduce.Op, u.Reduce.Op.Accumulator(u.Body.Type))
		if fewer.has(u) && !passes.SharesLanes(u, w, m.sizes) {
			return form.Refuse(ir.ReasonNoGain, u.Origin.Span, "%s would be computed again in each lane of %s, which takes longer than a kernel of its own", u.Name, w.Name)
		}
	}
	if words > forecast.SharedWords {
		return form.Refuse(ir.ReasonResources, v.Origin.Span, "a thread would have %d registers of running values for each element; beyond %d a scatter is slower",
			words, forecast.SharedWords)
	}
	return nil
}
