package fuse

import (
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/fuse/passes"
	"github.com/fusec/fusec/ir"
)

// repeatsLanes refuses to give a scatter more lanes where that makes no scatter by one key, or takes longer than to find again
// which columns go to a place.
func (m *merging) repeatsLanes() *form.Refusal {
	fewer, more, whole := m.al.fewer, m.b, m.region()
	if fewer == m.b {
		more = m.a
	}
	v, w := reductionOf(fewer), reductionOf(more)
	if fewPairs(fewer) || fewPairs(more) {
		return form.Refuse(ir.ReasonNoGain, v.Origin.Span, "%s or %s has few pairs of a place and a column, which each kernel looks at by itself", v.Name, w.Name)
	}
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
		words += passes.RunningWords(u)
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
