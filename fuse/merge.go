package fuse

import (
	"container/heap"

	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// fuser grows the regions of a partition by merging them until no merge saves time, and records why others stay apart.
type fuser struct {
	*partition
	refused edgeRefusals
	choices []Choice
	stored  map[*ir.Value]bool // concatenations whose parts other kernels store
}

// mergeAll takes the most profitable legal merge until none is left. Regions are
// replaced when they merge, so a candidate that names a replaced one is stale.
func (f *fuser) mergeAll() {
	q := &queue{}
	for _, v := range f.g.Values {
		if r := f.home[v]; r != nil {
			f.pushNeighbours(q, r, true)
		}
	}
	f.mergeFrom(q)
}

// mergeFrom takes the merges of a queue, and those that they lead to.
func (f *fuser) mergeFrom(q *queue) {
	for q.Len() > 0 {
		c := heap.Pop(q).(candidate)
		if f.home[c.a.members[0]] != c.a || f.home[c.b.members[0]] != c.b || c.a.concat || c.b.concat {
			continue
		}
		m, no := f.mergeable(c.a, c.b)
		if no != nil {
			f.refused.unmerged(f.program, c.a, c.b, no)
			continue
		}
		if r := m.region(); f.take(r) {
			f.pushNeighbours(q, r, false)
		}
	}
}

// mergeable aligns two regions for one kernel, or says why they cannot be one.
func (pt *partition) mergeable(a, b *region) (*merging, *form.Refusal) {
	if no := pt.fits(a, b); no != nil {
		return nil, no
	}
	m := &merging{flow: pt.flow, wholeA: a, wholeB: b}
	var no *form.Refusal
	if m.a, m.b, m.al, no = pt.aligned(a, b); no != nil {
		return nil, no
	}
	if no = m.fitsWork(); no != nil {
		return nil, no
	}
	if no = pt.keepsConvex(a, b); no != nil {
		return nil, no
	}
	return m, m.refusal()
}

// refusal is why two regions should not be one kernel although they can be aligned; nil where they should.
func (m *merging) refusal() *form.Refusal {
	first, last := m.wholeB.members[0], m.wholeB.members[len(m.wholeB.members)-1]
	if m.crossesStates() {
		return form.Refuse(ir.ReasonNoGain, first.Origin.Span, "%s would be written over a state that is still read in another order", last.Name)
	}
	if m.storesAcross() {
		return form.Refuse(ir.ReasonNoGain, first.Origin.Span, "one would store its elements across memory, as the two run along different axes")
	}
	if no := m.fillsDevice(); no != nil {
		return no
	}
	for _, k := range regionKinds {
		if k.veto == nil {
			continue
		}
		if no := k.veto(m); no != nil {
			return no
		}
	}
	return nil
}
