package fuse

import (
	"math"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/ir"
)

// Last-block reductions. A small kernel that reduces the results of the kernel before it can be run by the last
// blocks of that one (ir.LastBlock), such as the second stage of a two-stage reduction, or the mean of the losses of
// rows. That saves a launch, and the time between the end of one kernel and the beginning of the next.

// Figures of last-block reductions. The registers and rounds are estimates: the second kernel should not raise the
// registers of the first, and one block does all of its work. Each block waits for the answer of its counter. That
// takes as long as a read while memory is busy, and the block has nothing else to do meanwhile. So a separate kernel
// is faster, as measured, unless all blocks run at the same time. If a thread reads only once or twice, as in chunks
// of long columns, that wait is half of its time, and sizes above the default ones have more blocks. So the limit is
// lower there.
const (
	lastBlockRegisters = 8                                    // of a thread, for the columns in flight
	lastBlockRounds    = 4                                    // times that a thread waits for columns: beyond, a launch is faster
	lastBlockThreads   = ir.ReferenceSMs * forecast.ThreadsSM // of all blocks: what a large GPU holds at once
	shortRounds        = 2                                    // if a thread of the first kernel waits for columns at most so often,
	shortFewer         = 4                                    // the limit of threads is so many times lower
)

// lastBlockKernel makes the bodies of a kernel that run in the last blocks of another.
type lastBlockKernel struct{ *kernel }

// lastBlock makes the last blocks of the kernel run the kernel then, where that pays.
func (lo lastBlockKernel) lastBlock(then *kernel) {
	parts := slices.DeleteFunc(slices.Clone(lo.k.Rows), func(r *ir.Range) bool { return !lo.parts[r] })
	lastBlock := &ir.LastBlock{Kernel: then.k, Parts: parts}
	variants := lo.without(lo.k.Variants, func(v *ir.Variant) bool {
		s := v.Schedule // these blocks go on to other rows, reduce the rows of other blocks, or have a part of the columns
		return s.Stages > 0 || s.LookBack > 0 || s.Mapping == ir.FlatMapping && s.Cluster > 1
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

// refit makes new bodies of last blocks for variants whose schedules were replaced by tuned choices. Those differ only
// in the number of threads, so a thread has as many rows as before.
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

// shortLastBlock reports whether, at the default sizes, all blocks of a variant run at once, and the reduction by the
// last of them takes few rounds of reads.
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

// rounds is the number of times that a thread waits for the columns that it reads, at the default sizes.
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

// rowsOfFirst is the number of neighbouring rows of one part that a block of a variant works on. It is 0 for a variant
// whose blocks do not have that form.
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
			return 0 // the rows of a block would not be neighbours
		}
		return s.Threads / max(1, s.ColThreads) * s.Vector
	}
	return 0
}

// lastBlockOf is the body of the kernel that runs in the blocks of a variant of the first kernel; nil where none fits.
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

// lastBlockRows is a body in which so many threads share a row.
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

// lastBlockLanes is a body in which all threads of a block share neighbouring rows.
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

// lastBlockVector is the widest access for which a thread has registers.
func (lo lastBlockKernel) lastBlockVector(sections []*ir.Section) int {
	vector := lo.vector()
	for vector > 1 && lo.rowWords(sections)*float64(vector) > lastBlockRegisters {
		vector /= 2
	}
	return vector
}

// lastBlockUnroll is the number of columns, or of vectors of them, that a thread has in flight.
func (lo lastBlockKernel) lastBlockUnroll(sections []*ir.Section, vector int) int {
	unroll := forecast.GroupUnroll
	for unroll > 1 && lo.rowWords(sections)*float64(unroll*vector) > lastBlockRegisters {
		unroll /= 2
	}
	return unroll
}

// lastBlockBody is a body with a schedule; nil where its vectors are of no use, or where their alignment needs more
// than the condition of the variant promises.
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
		if of.Facts.Divisible[name] == 0 || of.Facts.Divisible[name]%by != 0 {
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
