package fuse

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/fusec/fusec/ir"
)

// KernelID names a kernel of a plan by its printed text: its tensors and every variant. Kernels
// that share a body have the same ID.
func KernelID(p *ir.Plan, k *ir.Kernel) string {
	if k.Like != nil {
		k = k.Like
	}
	k = beforeChoices(k)
	if k.LastBlock != nil {
		last := *k.LastBlock
		last.Kernel, k.LastBlock = beforeChoices(last.Kernel), &last
	}
	sum := sha256.Sum256([]byte(ir.PrintKernel(p.Graph, k)))
	return hex.EncodeToString(sum[:16])
}

// beforeChoices is a kernel as it is when choices are applied. Only after that does planning make its name unique,
// and give it a condition on the sizes and memory that other tensors share.
func beforeChoices(k *ir.Kernel) *ir.Kernel {
	before := *k
	before.Name, before.When, before.Args = "", nil, make([]*ir.Arg, len(k.Args))
	for i, a := range k.Args {
		arg, buffer := *a, *a.Buffer
		buffer.Slot, buffer.When, buffer.InPlace, buffer.Apart, buffer.Over = 0, nil, false, "", nil
		arg.Shared, arg.Buffer, before.Args[i] = false, &buffer, &arg
	}
	return &before
}

// Candidates lists the choices for a kernel of a plan without choices, at the given sizes of
// symbols. First comes what the rules choose, then the other variants whose conditions hold,
// each with the schedules that its body can have unchanged.
func Candidates(p *ir.Plan, k *ir.Kernel, sizes map[string]int64) []Choice {
	var out []Choice
	id, class := KernelID(p, k), -1
	for i, v := range k.Variants {
		if !holdsAt(v.When, sizes) {
			continue
		}
		if class < 0 {
			class = i
		}
		if v.Schedule.Index64 && !k.Variants[class].Schedule.Index64 {
			continue // the same body, only with wider indices
		}
		for _, s := range alternatives(v.Schedule) {
			out = append(out, Choice{Kernel: id, Class: class, Variant: i, Schedule: s})
		}
	}
	return out
}

// alternatives lists the schedules with which a variant's body and condition stay right, its
// own first. The part of a row that a thread holds, the width of accesses, and the threads that
// share a row are the same in all of them: other values of these are other variants.
func alternatives(s ir.Schedule) []ir.Schedule {
	out := []ir.Schedule{s}
	add := func(change func(*ir.Schedule)) {
		other := s
		change(&other)
		if !slices.Contains(out, other) {
			out = append(out, other)
		}
	}
	switch {
	case s.Mapping == ir.FlatMapping && !s.LooksBack():
		for _, threads := range []int{64, 128, 256, 512, 1024} {
			if s.ColThreads == 0 || threads%s.ColThreads == 0 {
				add(func(o *ir.Schedule) { o.Threads = threads })
			}
		}
	case s.Mapping == ir.RowMapping && s.Items == 0 && s.Stages == 0 && s.RowThreads == s.Threads && s.Cluster <= 1: // read in pieces
		for _, threads := range []int{128, 256, 512, 1024} {
			for _, unroll := range []int{1, 2, 4, 8} {
				add(func(o *ir.Schedule) { o.Threads, o.RowThreads, o.Unroll = threads, threads, unroll })
			}
		}
	case s.Mapping == ir.RowMapping && s.RowThreads < s.Threads: // several rows a block
		for _, rows := range []int{1, 2, 4, 8} {
			add(func(o *ir.Schedule) { o.Threads = rows * o.RowThreads })
		}
	case s == largeFMA[0].on(s, ir.FMAUnit) && s.Mapping == ir.SplitKMapping:
		for _, shape := range largeFMA {
			add(func(o *ir.Schedule) { *o = shape.on(s, ir.FMAUnit) })
		}
	case s.Mapping == ir.RowMapping && s.Stages > 0 && s.Unroll == 0:
		for stages := 1; stages < s.Stages; stages++ {
			add(func(o *ir.Schedule) { o.Stages = stages })
		}
	case s.Mapping == ir.RowMapping && s.MinBlocks > 0:
		add(func(o *ir.Schedule) { o.MinBlocks = 0 })
	}
	return out
}

// choose inserts the chosen variant before the one that it replaces, for the sizes that meet
// the conditions of both.
func (pr *program) choose(choices []Choice, p *ir.Plan, k *ir.Kernel) {
	if len(choices) == 0 {
		return
	}
	id := KernelID(p, k)
	var variants []*ir.Variant
	for i, v := range k.Variants {
		for _, c := range choices {
			if c.Kernel == id && c.Class == i && c.fits(k.Variants) {
				other := *k.Variants[c.Variant]
				other.When, other.Schedule = ir.Both(v.When, other.When), c.Schedule
				variants = append(variants, &other)
				break
			}
		}
		if last := len(variants) - 1; last >= 0 && variants[last].When == nil {
			break // it takes all sizes that are left
		}
		variants = append(variants, v)
	}
	pr.cover(k, variants)
}

// fits reports whether a choice is one that Candidates could have listed. Others come from
// another version of the planner, or were made by hand.
func (c Choice) fits(variants []*ir.Variant) bool {
	return c.Variant >= 0 && c.Variant < len(variants) &&
		slices.Contains(alternatives(variants[c.Variant].Schedule), c.Schedule)
}
