package fuse

import (
	"container/heap"
	"iter"
	"slices"

	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// candidate is a pair of regions that may merge: b reads a, or both read one
// tensor (then a is the earlier).
type candidate struct {
	a, b  *region
	saved float64 // seconds, estimated
}

type queue []candidate

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	if q[i].saved != q[j].saved {
		return q[i].saved > q[j].saved
	}
	return q[i].a.id < q[j].a.id || q[i].a.id == q[j].a.id && q[i].b.id < q[j].b.id
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(candidate)) }
func (q *queue) Pop() any {
	old := *q
	x := old[len(old)-1]
	*q = old[:len(old)-1]
	return x
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
			f.refused.merge(f.program, c.a, c.b, no)
			continue
		}
		if r := m.region(); f.take(r) {
			f.pushNeighbours(q, r, false)
		}
	}
}

// mergeable aligns two regions for one kernel, or says why they cannot be one.
func (f *fuser) mergeable(a, b *region) (*merging, *form.Refusal) {
	if no := f.fits(a, b); no != nil {
		return nil, no
	}
	m := &merging{flow: f.flow, wholeA: a, wholeB: b}
	var no *form.Refusal
	if m.a, m.b, m.al, no = f.aligned(a, b); no != nil {
		return nil, no
	}
	if no = f.keepsConvex(a, b); no != nil {
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

// mostNeighbours is how many of the regions that read one tensor become candidates before a region, and as
// many after it, in the order of the graph. Further regions become candidates as these merge.
const mostNeighbours = 8

// pushNeighbours queues the merges of r with the regions that it reads, that read it, or that read what it
// reads. At the start every region queues its merges; onlyLater then keeps a pair from being queued by
// both of its regions.
func (f *fuser) pushNeighbours(q *queue, r *region, onlyLater bool) {
	seen := map[*region]bool{r: true}
	try := func(other *region, producer bool) {
		if other == nil || seen[other] {
			return
		}
		seen[other] = true
		producer = producer || r.readsFrom(other)
		a, b := r, other
		if producer || !b.readsFrom(a) && b.id < a.id {
			a, b = b, a
		}
		if onlyLater && a != r {
			return
		}
		heap.Push(q, candidate{a, b, f.saving(a, b)})
	}
	for _, v := range r.members {
		f.eachNear(r, v, v, func(other *region) { try(other, false) })
	}
	first := map[*ir.Value]*ir.Value{} // the first member that reads each tensor
	for _, v := range r.members {
		for _, from := range f.sources[v] {
			try(f.home[from], true)
			if first[from] == nil {
				first[from] = v
			}
		}
	}
	for _, v := range r.members {
		for _, from := range f.sources[v] {
			if first[from] == v {
				f.eachNear(r, from, v, func(other *region) { try(other, false) })
			}
		}
	}
}

// eachNear calls do for the regions near r that read v: those next to the given member in the order of the
// graph.
func (f *fuser) eachNear(r *region, v, member *ir.Value, do func(*region)) {
	readers := f.readers[v]
	byOrder := func(u *ir.Value, n int) int { return f.order[u] - n }
	at, _ := slices.BinarySearchFunc(readers, f.order[member], byOrder)
	near := func(list iter.Seq[*ir.Value]) {
		found, last := 0, r
		for u := range list {
			if other := f.home[u]; other != r && other != last {
				if last = other; found == mostNeighbours {
					return
				}
				found++
				do(other)
			}
		}
	}
	near(func(yield func(*ir.Value) bool) {
		for i := at - 1; i >= 0 && yield(readers[i]); i-- {
		}
	})
	near(slices.Values(readers[at:]))
}
