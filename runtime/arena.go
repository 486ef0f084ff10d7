package runtime

import (
	"cmp"
	"slices"
)

// arenaAlign is the alignment of every tensor in an arena, the same as that of memory from the
// driver.
const arenaAlign = 256

// A resident is a tensor that an arena holds from the step first to the step last,
// both included.
type resident struct {
	bytes       int64
	first, last int
}

func (r *resident) meets(other *resident) bool { return r.first <= other.last && other.first <= r.last }

// An arenaPlan is the places of residents; those that live at the same time do not overlap.
type arenaPlan struct {
	offsets []int64 // of each resident, multiples of arenaAlign
	bytes   int64   // of the arena
}

// planArena places residents in as small an arena as it finds. Each is put into the lowest gap
// that it fits, either the largest first or in order of birth, whichever gives the smaller
// arena ("greedy by size", Pisarchyk and Lee, Efficient Memory Management for Deep Neural Net
// Inference, 2020). ok is false where the sum does not fit in 64 bits.
func planArena(list []resident) (plan arenaPlan, ok bool) {
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	bySize := func(i, j int) int { return cmp.Compare(list[j].bytes, list[i].bytes) }
	byBirth := func(i, j int) int { return cmp.Or(cmp.Compare(list[i].first, list[j].first), bySize(i, j)) }
	for _, by := range []func(i, j int) int{bySize, byBirth} {
		slices.SortStableFunc(order, by)
		next, fits := placeInOrder(list, order)
		if fits && (!ok || next.bytes < plan.bytes) {
			plan, ok = next, true
		}
	}
	return plan, ok
}

// roomyArena is the most bytes for which tensors share no memory. Sharing makes some kernels
// wait for each other, and so few bytes stay in the L2 cache anyway.
const roomyArena = 8 << 20

// arenaFor plans an arena. Tensors share memory unless the arena is small without that.
func arenaFor(list []resident) (plan arenaPlan, ok bool) {
	together := make([]resident, len(list))
	for i, r := range list {
		together[i] = resident{bytes: r.bytes}
	}
	if plan, ok := planArena(together); ok && plan.bytes <= roomyArena {
		return plan, ok
	}
	return planArena(list)
}

// placeInOrder places residents one by one, each in the lowest gap among those of its
// time.
func placeInOrder(list []resident, order []int) (plan arenaPlan, ok bool) {
	plan.offsets = make([]int64, len(list))
	var placed []int // sorted by offset
	for _, i := range order {
		size := (list[i].bytes + arenaAlign - 1) &^ (arenaAlign - 1)
		if size < list[i].bytes {
			return plan, false
		}
		at := int64(0)
		for _, j := range placed {
			if !list[j].meets(&list[i]) {
				continue
			}
			if plan.offsets[j]-at >= size {
				break
			}
			at = max(at, plan.offsets[j]+list[j].bytes)
			at = (at + arenaAlign - 1) &^ (arenaAlign - 1)
		}
		if at+size < at {
			return plan, false
		}
		plan.offsets[i] = at
		plan.bytes = max(plan.bytes, at+size)
		after, _ := slices.BinarySearchFunc(placed, at, func(j int, at int64) int {
			return cmp.Compare(plan.offsets[j], at)
		})
		placed = slices.Insert(placed, after, i)
	}
	return plan, true
}

// peak is the most bytes that residents have at one time: no arena is smaller.
func peak(list []resident) int64 {
	most := int64(0)
	for _, at := range list { // the peak is at the first step of some resident
		sum := int64(0)
		for _, r := range list {
			if r.first <= at.first && at.first <= r.last {
				sum += r.bytes
			}
		}
		most = max(most, sum)
	}
	return most
}
