package fuse

import (
	"slices"

	"github.com/fusec/fusec/ir"
)

// schedule orders the regions by their place in the graph, producers first.
func (f *fuser) schedule() []*region {
	var out []*region
	placed := map[*region]bool{}
	var place func(r *region)
	place = func(r *region) {
		placed[r] = true
		for _, v := range r.members {
			for _, from := range f.sources[v] {
				if home := f.home[from]; home != nil && !placed[home] {
					place(home)
				}
			}
		}
		out = append(out, r)
	}
	if f.g.HasState() {
		f.statesLast(place, placed)
		return out
	}
	for _, v := range f.g.Values {
		if r := f.home[v]; r != nil && !placed[r] {
			place(r)
		}
	}
	return out
}

// statesLast puts the regions that write next values of states after all regions that do not
// need them, so that few present values are read after their next ones are written. Among these
// regions, one that reads a present value comes before the one that replaces it, where possible.
func (f *fuser) statesLast(place func(*region), placed map[*region]bool) {
	replaces := map[*region][]*ir.Value{} // the present values
	for v, old := range f.updates {
		if r := f.home[v]; r != nil {
			replaces[r] = append(replaces[r], old)
		}
	}
	var left []*region
	for _, v := range f.g.Values {
		r := f.home[v]
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
