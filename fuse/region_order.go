package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
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

// crossesStates reports whether two regions write next values, do not read each other, and walk
// memory along different loops. If they were merged, the threads of one would share their reads
// through shared memory, and its next values could not be written in place.
func (f *fuser) crossesStates(a, b *region, al *alignment) bool {
	writes := func(r *region) bool {
		return slices.ContainsFunc(r.members, func(v *ir.Value) bool { return f.updates[v] != nil })
	}
	if len(f.updates) == 0 || b.readsFrom(a) || !writes(a) || !writes(b) {
		return false
	}
	atA, atB := f.contiguous(a), f.contiguous(b)
	return atA >= 0 && atB >= 0 && al.to[b.space[atB]] != a.space[atA]
}

// strayStores is how many times longer stores take if each goes to a line of its own.
const strayStores = 4

// storesAcross reports whether two pointwise regions store large results along different loops. One kernel would
// store one of the results across memory, and that costs more than reading their tensors once saves.
func (f *fuser) storesAcross(a, b *region, al *alignment) bool {
	if len(a.cols) > 0 || len(b.cols) > 0 || al == nil || f.g.OneKernel {
		return false
	}
	alongA, bytesA := f.storedAlong(a)
	alongB, bytesB := f.storedAlong(b)
	if alongA == nil || alongB == nil || al.to[alongB] == alongA {
		return false
	}
	return strayStores*min(bytesA, bytesB)/f.device.Bandwidth > f.device.Launch
}

// storedAlong is the loop along which a region stores its results, and their bytes; nil if the results are stored along
// different loops, or along an index that is no loop.
func (f *fuser) storedAlong(r *region) (along *ir.Range, bytes float64) {
	for _, v := range r.members {
		axes := algebra.Widened(v.Axes)
		if !f.leaves(v, r) || len(axes) == 0 {
			continue
		}
		at := r.at[v][axes[len(axes)-1]]
		if at == nil || at.Op != ir.OpRange || along != nil && along != at.Range {
			return nil, 0
		}
		along, bytes = at.Range, bytes+f.bytes(v)
	}
	return along, bytes
}
