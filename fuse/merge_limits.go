package fuse

import (
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Limits of a kernel. Up to them a merge saves what the model says; beyond, memory is a
// small part of the kernel's time, and compiling takes longer than linear in its text.
const (
	// mostSlots is the work of one point (OpInfo.Cost). A kernel has 40 slots to spare for
	// each 4-byte element it moves: with so many, moving one element less saves 1 %.
	mostSlots = 4096
	// mostPasses is how many reductions of a row wait for each other. NVRTC takes 0.3 s for
	// 16 passes over a persistent row, 0.9 s for 32, 3.3 s for 64.
	mostPasses = 16
	// mostArgs is the tensors of a kernel, whose parameters are 4096 bytes at most: with 8
	// bytes a tensor, that leaves room for sizes and tensor maps.
	mostArgs = 256
)

// measure counts a region's members.
func (f *fuser) measure(r *region) extent {
	x := extent{args: len(f.tensors(r)), passes: f.passes(r.members)}
	for _, v := range r.members {
		x.slots += f.slots(v)
	}
	return x
}

// slots is the work of one point of a value.
func (f *fuser) slots(v *ir.Value) int {
	n, ok := f.work[v]
	if !ok {
		n = form.CostOf(v.Body).Slots
		f.work[v] = n
	}
	return n
}

// passes is the longest chain of reductions among values in graph order.
func (f *fuser) passes(members []*ir.Value) int {
	most, depth := 0, make(map[*ir.Value]int, len(members))
	for _, v := range members {
		n := 0
		for _, from := range f.sources[v] {
			n = max(n, depth[from])
		}
		if v.Reduce != nil {
			n++
		}
		depth[v], most = n, max(most, n)
	}
	return most
}

// fits refuses a merge whose kernel would be too large. A graph that is to be one kernel
// has only the limit that the hardware sets.
func (f *fuser) fits(a, b *region) *form.Refusal {
	span := b.members[len(b.members)-1].Origin.Span
	if f.apart(a, b) {
		return form.Refuse(ir.ReasonNoGain, span, "checks of indices are kernels of their own")
	}
	if args := a.size.args + b.size.args; args > mostArgs {
		if args = f.joinedArgs(a, b); args > mostArgs {
			return form.Refuse(ir.ReasonResources, span, "one kernel would take %d tensors, of at most %d", args, mostArgs)
		}
	}
	if f.g.OneKernel {
		return nil
	}
	if n := a.size.slots + b.size.slots; n > mostSlots {
		return form.Refuse(ir.ReasonNoGain, span,
			"one kernel would do %d operations a point, of at most %d: beside them, memory takes no time", n, mostSlots)
	}
	if n := a.size.passes + b.size.passes; n > mostPasses {
		if n = f.passes(mergeOrdered(a.members, b.members, f.order)); n > mostPasses {
			return form.Refuse(ir.ReasonNoGain, span,
				"one kernel would pass over its rows %d times, of at most %d: beside that, memory takes no time", n, mostPasses)
		}
	}
	return nil
}

// joinedArgs is the tensors that two regions together read and write.
func (f *fuser) joinedArgs(a, b *region) int {
	all := map[*ir.Value]bool{}
	for _, v := range append(f.tensors(a), f.tensors(b)...) {
		inside := (a.has(v) || b.has(v)) && !f.results[v] && f.readOnlyIn(v, a, b)
		if !inside {
			all[v] = true
		}
	}
	return len(all)
}
