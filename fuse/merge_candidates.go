package fuse

import (
	"container/heap"
	"iter"
	"slices"

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

// mostNeighbours is how many of the regions that read one tensor become candidates before a region, and as
// many after it, in the order of the graph. Further regions become candidates as these merge.
const mostNeighbours = 8

// pushNeighbours queues the merges of r with the regions that it reads, that read it, or that read what it
// reads. At the start every region queues its merges; onlyLater then keeps a pair from being queued by
// both of its regions.
func (pt *partition) pushNeighbours(q *queue, r *region, onlyLater bool) {
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
		heap.Push(q, candidate{a, b, pt.saving(a, b)})
	}
	for _, v := range r.members {
		pt.eachNear(r, v, v, func(other *region) { try(other, false) })
	}
	first := map[*ir.Value]*ir.Value{} // the first member that reads each tensor
	for _, v := range r.members {
		for _, from := range pt.sources[v] {
			try(pt.home[from], true)
			if first[from] == nil {
				first[from] = v
			}
		}
	}
	for _, v := range r.members {
		for _, from := range pt.sources[v] {
			if first[from] == v {
				pt.eachNear(r, from, v, func(other *region) { try(other, false) })
			}
		}
	}
}

// eachNear calls do for the regions near r that read v: those next to the given member in the order of the
// graph.
func (pt *partition) eachNear(r *region, v, member *ir.Value, do func(*region)) {
	readers := pt.readers[v]
	byOrder := func(u *ir.Value, n int) int { return pt.order[u] - n }
	at, _ := slices.BinarySearchFunc(readers, pt.order[member], byOrder)
	near := func(list iter.Seq[*ir.Value]) {
		found, last := 0, r
		for u := range list {
			if other := pt.home[u]; other != r && other != last {
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
