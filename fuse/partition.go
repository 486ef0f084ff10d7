package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Regions never wait for each other. A set of values can be one kernel only if it is convex: no value
// outside the set is computed from one of its members and feeds another, since the kernel would then wait
// for itself. take is the only way to make a region, and refuses other sets.

// partition is the values of a graph, in regions of which none waits for itself.
type partition struct {
	*flow
	*regionOrder
	next int // id of a region
}

func newPartition(values *flow) *partition {
	return &partition{flow: values, regionOrder: &regionOrder{values: values.dependence, home: map[*ir.Value]*region{}}}
}

// take makes the new region r the home of its members. It returns false, and changes nothing, where the
// members are not convex, or where r has only some of the members of another region.
func (pt *partition) take(r *region) bool {
	parts, whole := pt.partsOf(r)
	if !whole || !pt.contract(r, parts) {
		return false
	}
	r.id = pt.next
	pt.next++
	r.inputs = map[*ir.Value]bool{}
	for _, v := range r.members {
		for _, from := range pt.sources[v] {
			if !r.inputs[from] {
				r.inputs[from] = true
				r.reads = append(r.reads, from)
			}
		}
	}
	r.size = pt.measure(r)
	for _, v := range r.members {
		pt.home[v] = r
	}
	return true
}

// keepsConvex refuses to merge regions where another one depends on a and feeds b.
func (pt *partition) keepsConvex(a, b *region) *form.Refusal {
	_, through := pt.dependents([]*region{a, b}, max(a.rank, b.rank))
	if through == nil {
		return nil
	}
	x, y, span := pt.ends(a, b)
	return form.Refuse(ir.ReasonCycle, span, "the kernel of %s also needs %s, which another kernel computes from %s", y.Name, through.Name, x.Name)
}

// relink computes again what depends on the order of the graph's values, after some were added or taken out.
func (pt *partition) relink() {
	pt.link(pt.program)
	for i, r := range pt.schedule() {
		r.rank = i
	}
}

// schedule orders the regions by their place in the graph, producers first.
func (pt *partition) schedule() []*region {
	var out []*region
	placed := map[*region]bool{}
	var place func(r *region)
	place = func(r *region) {
		placed[r] = true
		for _, v := range r.members {
			for _, from := range pt.sources[v] {
				if home := pt.home[from]; home != nil && !placed[home] {
					place(home)
				}
			}
		}
		out = append(out, r)
	}
	if pt.g.HasState() {
		pt.statesLast(place, placed)
		return out
	}
	for _, v := range pt.g.Values {
		if r := pt.home[v]; r != nil && !placed[r] {
			place(r)
		}
	}
	return out
}

// statesLast puts the regions that write next values of states after all regions that do not
// need them, so that few present values are read after their next ones are written. Among these
// regions, one that reads a present value comes before the one that replaces it, where possible.
func (pt *partition) statesLast(place func(*region), placed map[*region]bool) {
	replaces := map[*region][]*ir.Value{} // the present values
	for v, old := range pt.updates {
		if r := pt.home[v]; r != nil {
			replaces[r] = append(replaces[r], old)
		}
	}
	var left []*region
	for _, v := range pt.g.Values {
		r := pt.home[v]
		if r == nil || placed[r] || slices.Contains(left, r) {
			continue
		}
		if replaces[r] != nil {
			left = append(left, r)
			continue
		}
		place(r)
	}
	reads := func(r *region, old []*ir.Value) bool {
		return slices.ContainsFunc(old, func(v *ir.Value) bool { return slices.Contains(r.reads, v) })
	}
	for len(left) > 0 {
		at := slices.IndexFunc(left, func(r *region) bool {
			return placed[r] || !slices.ContainsFunc(left, func(other *region) bool {
				return other != r && !placed[other] && reads(other, replaces[r])
			})
		})
		r := left[max(at, 0)] // if they wait for each other in a cycle, one state gets a second buffer
		left = slices.DeleteFunc(left, func(other *region) bool { return other == r })
		if !placed[r] {
			place(r)
		}
	}
}
