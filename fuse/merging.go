package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// merging is two regions that are to be one kernel.
type merging struct {
	*flow
	wholeA, wholeB *region
	a, b           *region // the same as they are aligned, with loops split
	al             *alignment
}

// region is the union of the two.
func (m *merging) region() *region { return merged(m.a, m.b, m.al, m.order) }

// crossesStates reports whether two regions write next values, do not read each other, and walk
// memory along different loops. If they were merged, the threads of one would share their reads
// through shared memory, and its next values could not be written in place.
func (m *merging) crossesStates() bool {
	writes := func(r *region) bool {
		return slices.ContainsFunc(r.members, func(v *ir.Value) bool { return m.updates[v] != nil })
	}
	if len(m.updates) == 0 || m.b.readsFrom(m.a) || !writes(m.a) || !writes(m.b) {
		return false
	}
	atA, atB := m.contiguous(m.a), m.contiguous(m.b)
	return atA >= 0 && atB >= 0 && m.al.to[m.b.space[atB]] != m.a.space[atA]
}

// strayStores is how many times longer stores take if each goes to a line of its own.
const strayStores = 4

// storesAcross reports whether two regions store large results along different loops, of which the first is pointwise or
// reads memory along the loop of its results, as windows do, and the second is pointwise. One kernel would read or store
// across memory, and that costs more than reading their tensors once saves. Products have tiles, which are stored along either
// loop.
func (m *merging) storesAcross() bool {
	if len(m.b.cols) > 0 || m.g.OneKernel || slices.ContainsFunc(m.a.members, form.Crosses) {
		return false
	}
	alongA, bytesA := m.storedAlong(m.a)
	alongB, bytesB := m.storedAlong(m.b)
	if alongA == nil || alongB == nil || m.al.to[alongB] == alongA || len(m.a.cols) > 0 && !m.readsAlong(m.a, alongA) {
		return false
	}
	return strayStores*min(bytesA, bytesB)/m.device.Bandwidth > m.device.Launch
}
