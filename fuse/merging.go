package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
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

// straysFar reports whether such stores of so many bytes take longer than a launch.
func straysFar(device ir.Device, bytes float64) bool {
	return strayStores*bytes/device.Bandwidth > device.Launch
}

// storesAcross reports whether one of two regions stores large results along another loop than that along which the other one
// stores its own, or reads what it reduces although it has a result for each point of that loop. One kernel would read or store
// across memory, and that costs more than reading their tensors once saves. Products have tiles, which are stored along either
// loop.
func (m *merging) storesAcross() bool {
	if m.g.OneKernel || slices.ContainsFunc(m.a.members, form.Crosses) || slices.ContainsFunc(m.b.members, form.Crosses) {
		return false
	}
	alongA, bytesA := m.storedAlong(m.a)
	alongB, bytesB := m.storedAlong(m.b)
	across := func(bytes float64) bool { return straysFar(m.device, bytes) }
	switch {
	case len(m.b.cols) == 0 && alongB != nil:
		if alongA != nil && (len(m.a.cols) == 0 || m.readsAlong(m.a, alongA)) {
			return m.al.to[alongB] != alongA && across(min(bytesA, bytesB))
		}
		read := m.reducedAlong(m.a)
		spans := func(r *ir.Range) bool { return m.al.to[r] == read }
		return read != nil && !spans(alongB) && slices.ContainsFunc(m.b.space, spans) && across(bytesB)
	case len(m.a.cols) == 0 && alongA != nil:
		read := m.al.to[m.reducedAlong(m.b)]
		return read != nil && read != alongA && slices.Contains(m.a.space, read) && across(bytesA)
	}
	return false
}

// turnedColumns is the most columns of rows that blocks turn in shared memory (row_turn.go), so that one kernel stores across what it
// reads along them.
const turnedColumns = 1024

// reducedAlong is the loop along which a reduction walks its largest tensor; nil if that is no single loop. It is nil for rows that
// blocks may turn, as those of no usual size, for scans, whose results are as many as what they read, and for scatters, whose
// threads go from element to element of what is added.
func (m *merging) reducedAlong(r *region) *ir.Range {
	apart := func(v *ir.Value) bool { return form.ScanOf(v) != nil || form.ScatterIn(v) != nil }
	if columns := algebra.Product(ordered(r.space, r.cols)); !algebra.HasUsualSize(m.g, columns) || m.estimate(columns) <= turnedColumns {
		return nil
	}
	if at := m.contiguous(r); at >= 0 && len(r.cols) > 0 && !slices.ContainsFunc(r.members, apart) {
		return r.space[at]
	}
	return nil
}
