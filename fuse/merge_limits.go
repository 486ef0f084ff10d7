package fuse

import (
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Limits of a kernel. Within them a merge saves what the model says. Beyond them, memory is a small part
// of the kernel's time, and compiling takes more than proportionally longer.
const (
	// mostSlots is the most work for one point (OpInfo.Cost). A kernel has 40 slots to spare for each 4-byte
	// element that it moves. With 4096 slots, moving one element less saves only 1 %.
	mostSlots = 4096
	// mostPasses is the longest chain of reductions of a row that depend on each other. NVRTC takes 0.3 s for
	// 16 passes over a persistent row, 0.9 s for 32, and 3.3 s for 64.
	mostPasses = 16
	// mostArgs is the most tensors of a kernel. A kernel's parameters may take 4096 bytes; with 8 bytes for
	// each tensor there is room left for sizes and tensor maps.
	mostArgs = 256
)

// measure counts a region's members.
func (fl *flow) measure(r *region) extent {
	x := extent{args: len(fl.tensors(r)), passes: fl.passes(r.members)}
	for _, v := range r.members {
		x.slots += fl.slots(v)
	}
	if x.slots > mostSlots {
		x.slots = fl.sharedSlots(r)
	}
	return x
}

// slots is the work of one point of a value.
func (fl *flow) slots(v *ir.Value) int {
	n, ok := fl.work[v]
	if !ok {
		n = form.CostOf(v.Body).Slots
		fl.work[v] = n
	}
	return n
}

// fitsWork refuses a merge whose kernel would do too much for each element, so that memory takes little of its time.
func (m *merging) fitsWork() *form.Refusal {
	n := m.wholeA.size.slots + m.wholeB.size.slots
	if n <= mostSlots || m.g.OneKernel {
		return nil
	}
	if n = m.sharedSlots(m.region()); n <= mostSlots {
		return nil
	}
	return tooMuchWork(m.wholeB, n)
}

// tooMuchWork is the refusal of a kernel with so much work for one point.
func tooMuchWork(b *region, slots int) *form.Refusal {
	return form.Refuse(ir.ReasonNoGain, b.members[len(b.members)-1].Origin.Span,
		"one kernel would do %d operations for each element; beyond %d a merge saves next to nothing, because memory takes little of the time", slots, mostSlots)
}

// fits refuses a merge whose kernel would be too large. A graph that is to be one kernel is limited by the
// hardware alone.
func (fl *flow) fits(a, b *region) *form.Refusal {
	span := b.members[len(b.members)-1].Origin.Span
	if fl.apart(a, b) {
		return form.Refuse(ir.ReasonNoGain, span, "indices are checked in a kernel of its own")
	}
	if args := a.size.args + b.size.args; args > mostArgs {
		if args = fl.joinedTensors(a, b); args > mostArgs {
			return form.Refuse(ir.ReasonResources, span, "one kernel would read and write %d tensors; the most is %d", args, mostArgs)
		}
	}
	if fl.g.OneKernel {
		return nil
	}
	if n := a.size.slots + b.size.slots; n > mostSlots && !a.readsFrom(b) && !b.readsFrom(a) { // they have no work in common
		return tooMuchWork(b, n)
	}
	if n := a.size.passes + b.size.passes; n > mostPasses {
		if n = fl.passes(mergeOrdered(a.members, b.members, fl.order)); n > mostPasses {
			return form.Refuse(ir.ReasonNoGain, span,
				"one kernel would go over its rows %d times; beyond %d a merge saves next to nothing, because memory takes little of the time", n, mostPasses)
		}
	}
	return nil
}
