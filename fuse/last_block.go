package fuse

import (
	"math"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/ir"
)

// Last-block reductions. A kernel that folds the results of the kernel ahead of it, and has
// little to do, is run by the last blocks of that one (ir.LastBlock): the second half
// of a split reduction, the mean of the losses of rows. That saves a launch, and
// the time in which one kernel ends and the next begins.

// Figures of last-block reductions. A kernel with one should need no more registers than
// by itself, and its block is alone with the work: estimates. Each block waits for its
// count while memory is busy, as long as for what it reads, and has nothing under way
// meanwhile: measured, a second kernel is faster unless all blocks are there at once. Where a
// thread reads a time or two and is done, as in chunks of long columns, that wait is as long as
// the rest of its life, and more blocks come with larger sizes than the default ones.
const (
	lastBlockRegisters = 8                                    // of a thread, for the columns in flight
	lastBlockRounds    = 4                                    // times that a thread waits for columns: beyond, a launch is faster
	lastBlockThreads   = ir.ReferenceSMs * forecast.ThreadsSM // of all blocks: what a large GPU holds at once
	shortRounds        = 2                                    // times that a thread waits for columns,
	shortFewer         = 4                                    // up to which the threads of last blocks are so many times fewer
)

// lastBlockKernel fits the kernels of one launch to each other: of the last blocks of the first, the second's bodies.
type lastBlockKernel struct{ *kernel }

// lastBlock has the kernel's last blocks run the kernel of then, where that pays.
func (lo lastBlockKernel) lastBlock(then *kernel) {
	parts := slices.DeleteFunc(slices.Clone(lo.k.Rows), func(r *ir.Range) bool { return !lo.parts[r] })
	lastBlock := &ir.LastBlock{Kernel: then.k, Parts: parts}
	variants := lo.without(lo.k.Variants, func(v *ir.Variant) bool {
		return v.Schedule.Stages > 0 || v.Schedule.LookBack > 0 // whose blocks go on to other rows, or fold those of others
	})
	if variants == nil {
		return
	}
	wider, taken := lo.onlyIn(then), false
	for i, v := range variants {
		own := *v
		own.LastBlock = lastBlockKernel{then}.lastBlockOf(lo.k, lastBlock, v)
		if own.LastBlock == nil {
			return
		}
		if !taken && holdsAt(v.When, lo.sizes) {
			if taken = true; !lo.shortLastBlock(then, &own) {
				return
			}
		}
		if !v.Schedule.Index64 && wider != nil {
			if v.When == nil {
				return
			}
			own.When = algebra.And(wider, v.When)
		}
		variants[i] = &own
	}
	lo.k.LastBlock = lastBlock
	lo.cover(lo.k, variants)
}

// refit fits the bodies of last blocks to the schedules of variants that choices brought. They
// are other numbers of threads, which leaves the rows of a thread what they were.
func (lo lastBlockKernel) refit(then *kernel) {
	if lo.k.LastBlock == nil {
		return
	}
	for i, v := range lo.k.Variants {
		own := *v
		if own.LastBlock = (lastBlockKernel{then}).lastBlockOf(lo.k, lo.k.LastBlock, v); own.LastBlock == nil {
			panic("BUG: a choice of schedule has no body for the last blocks")
		}
		lo.k.Variants[i] = &own
	}
}

// onlyIn is the condition under which the offsets of then fit 32 bits, where lo's own
// condition does not say so; nil for always.
func (lo lastBlockKernel) onlyIn(then *kernel) *ir.Expr {
	own := lo.extents()
	var out *ir.Expr
	for _, size := range then.extents() {
		if !slices.ContainsFunc(own, func(e *ir.Expr) bool { return ir.SameSize(e, size) }) {
			out = algebra.And(out, ir.Apply(ir.OpLt, size, ir.IntConst(forecast.Largest32)))
		}
	}
	return out
}

// shortLastBlock reports whether the blocks of a variant are there at once, and reduce in
// few rounds, at the default sizes.
func (lo lastBlockKernel) shortLastBlock(then *kernel, v *ir.Variant) bool {
	limit := float64(lastBlockThreads)
	if lo.rounds(v.Schedule) <= shortRounds {
		limit /= shortFewer
	}
	if !lo.g.OneKernel && lo.threadsOf(v.Schedule) > limit {
		return false
	}
	return lastBlockKernel{then}.rounds(v.LastBlock.Schedule)*float64(passesOf(v.LastBlock.Sections)) <= lastBlockRounds
}

// rounds is how often a thread waits for columns, at the default sizes.
func (lo lastBlockKernel) rounds(s ir.Schedule) float64 {
	threads := s.RowThreads
	if s.Mapping == ir.FlatMapping {
		threads = s.ColThreads
	} else {
		threads *= s.Vector
	}
	return math.Ceil(lo.estimate(algebra.Product(lo.k.Cols)) / float64(threads*max(1, s.Unroll, s.Items)))
}

// threadsOf is the threads of all blocks of a loop kernel with columns.
func (lo lastBlockKernel) threadsOf(s ir.Schedule) float64 {
	rows := algebra.PointsAt(lo.k.Rows, lo.sizes)
	if s.Mapping == ir.RowMapping {
		return rows * float64(s.RowThreads*max(1, s.Cluster))
	}
	return rows / float64(s.Vector) * float64(max(1, s.ColThreads))
}

// rowsOfFirst is the number of rows, less the parts, that a block of a variant works
// on: those of one part, next to each other in the order of the rows. 0 for a variant
// whose blocks are not so.
func rowsOfFirst(k *ir.Kernel, f *ir.LastBlock, v *ir.Variant) int {
	s := v.Schedule
	switch {
	case s.Mapping == ir.RowMapping && s.Stages == 0:
		if s.Cluster > 1 || len(f.Parts) == len(k.Rows) {
			return 1
		}
		return s.Threads / s.RowThreads
	case s.Mapping == ir.FlatMapping && len(k.Cols) > 0 && !s.LooksBack():
		lane := algebra.Innermost(k.Rows)
		if slices.Contains(f.Parts, lane) || !ir.Multiple(lane.Extent, int64(s.Vector), v.Facts) {
			return 0 // vectors would not be next to each other
		}
		return s.Threads / max(1, s.ColThreads) * s.Vector
	}
	return 0
}

// lastBlockOf is the body of the kernel for blocks of a variant of the one ahead; nil
// where it has none that fits them.
func (lo lastBlockKernel) lastBlockOf(first *ir.Kernel, f *ir.LastBlock, v *ir.Variant) *ir.Variant {
	rows := rowsOfFirst(first, f, v)
	if rows == 0 {
		return nil
	}
	if v.Schedule.Mapping == ir.RowMapping {
		return lo.lastBlockRows(v, v.Schedule.Threads/rows)
	}
	return lo.lastBlockLanes(v, rows)
}

// lastBlockRows gives each row as many threads.
func (lo lastBlockKernel) lastBlockRows(v *ir.Variant, threads int) *ir.Variant {
	sections := lo.passes(true)
	for vector := lo.lastBlockVector(sections); ; vector /= 2 {
		s := ir.Schedule{Mapping: ir.RowMapping, Threads: v.Schedule.Threads, RowThreads: threads, Vector: vector,
			Unroll: lo.lastBlockUnroll(sections, vector)}
		if b := lo.lastBlockBody(sections, s, algebra.Innermost(lo.k.Cols), v); b != nil || vector == 1 {
			return b
		}
	}
}

// lastBlockLanes shares rows that are next to each other among all threads of a block.
func (lo lastBlockKernel) lastBlockLanes(v *ir.Variant, rows int) *ir.Variant {
	sections, lane := lo.passes(true), algebra.Innermost(lo.k.Rows)
	for vector := lo.lastBlockVector(sections); vector >= 1; vector /= 2 {
		if rows/vector == 0 || v.Schedule.Threads%(rows/vector) != 0 || !ir.Multiple(lane.Extent, int64(vector), v.Facts) {
			continue
		}
		s := ir.Schedule{Mapping: ir.FlatMapping, Threads: v.Schedule.Threads, Vector: vector,
			ColThreads: v.Schedule.Threads / (rows / vector), Unroll: lo.lastBlockUnroll(sections, vector)}
		if b := lo.lastBlockBody(sections, s, lane, v); b != nil {
			return b
		}
	}
	return nil
}

// lastBlockVector is the width of accesses for which a thread has registers.
func (lo lastBlockKernel) lastBlockVector(sections []*ir.Section) int {
	vector := lo.vector()
	for vector > 1 && lo.rowWords(sections)*float64(vector) > lastBlockRegisters {
		vector /= 2
	}
	return vector
}

// lastBlockUnroll is the columns, or vectors of them, in flight of a thread.
func (lo lastBlockKernel) lastBlockUnroll(sections []*ir.Section, vector int) int {
	unroll := forecast.GroupUnroll
	for unroll > 1 && lo.rowWords(sections)*float64(unroll*vector) > lastBlockRegisters {
		unroll /= 2
	}
	return unroll
}

// lastBlockBody is a body under a schedule; nil where its accesses are aligned only under
// more than the variant that it belongs to promises, or where vectors are of no use.
func (lo lastBlockKernel) lastBlockBody(sections []*ir.Section, s ir.Schedule, lane *ir.Range, of *ir.Variant) *ir.Variant {
	s.Index64 = of.Schedule.Index64
	b := newBody(lo.kernel)
	v := &ir.Variant{Strategy: ir.StrategyOf(lo.k, s), Sections: b.sections(sections), Locals: b.locals, Schedule: s}
	needs, wide := lo.widen(v, lane, s.Vector)
	if wide == 0 && s.Vector > 1 {
		return nil
	}
	if needs == nil {
		v.Facts = of.Facts
		return v
	}
	for name, by := range v.Facts.Divisible {
		if by > 1 && (of.Facts.Divisible[name] == 0 || of.Facts.Divisible[name]%by != 0) {
			return nil
		}
	}
	for _, m := range v.Facts.Multiples {
		if !ir.Multiple(m.Size, m.By, of.Facts) {
			return nil
		}
	}
	return v
}
