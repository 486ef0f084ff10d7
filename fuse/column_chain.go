package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Chains of blocks (ir.Schedule.Chain). This is for reductions over columns that are far apart in memory, with too few
// rows to give each block all columns of its rows. Each block reads its part of the columns in one round, adds its
// totals to those that its predecessor has posted, and posts the sum: that takes neither partial results of all
// blocks in memory nor a second kernel. Two things make it fast: blocks read in the order of memory, and the bytes
// under way on a multiprocessor are bounded (docs/performance.md).

// Figures of the schedules of these blocks.
const (
	chainMost      = 16 // most accesses of a thread in its round
	chainRegisters = 12 // of a thread, for its accesses and states, where there are ChainThreads of them
	chainWork      = 8  // most work of a point
	chainFew       = 32 // registers for accesses and states where there are half as many threads
)

// chains reports whether a kernel's blocks form chains.
func (lo columnKernel) chains(sections []*ir.Section) bool {
	return lo.looksBack(sections) && forecast.Chainable(algebra.PointsAt(lo.k.Rows, lo.sizes), algebra.PointsAt(lo.k.Cols, lo.sizes), lo.vector())
}

// looksBack reports whether blocks may post their totals for other blocks to read. That needs one pass over the
// columns with plain reductions and no stores; all else has to follow from the totals. Products are excluded.
func (lo columnKernel) looksBack(sections []*ir.Section) bool {
	if len(sections) == 0 || len(lo.k.Rows) == 0 || len(lo.k.Accumulated) > 0 || slices.ContainsFunc(lo.r.members, form.Crosses) {
		return false
	}
	for i, s := range sections {
		if (s.Level == ir.FullLevel) != (i == 0) || i == 0 && len(s.Stores)+len(s.Partials) > 0 {
			return false
		}
	}
	return !slices.ContainsFunc(sections[0].Folds, func(f *ir.Fold) bool {
		return f.Prefix != ir.WholeRow || f.After != nil || f.Running != nil || f.Op.IsArg()
	})
}

// chain sets the schedule of these blocks: many threads with few accesses each, or half as many threads with more
// accesses where a thread needs more registers.
func (lo columnKernel) chain(s *ir.Schedule, sections []*ir.Section, words float64) {
	access, states := max(1, words*float64(s.Vector)), float64(stateWords(sections)*s.Vector)
	s.Threads, s.Unroll = forecast.ChainThreads, forecast.ChainUnroll
	registers := float64(chainRegisters)
	if access*forecast.ChainUnroll+states > registers || lo.foldWork() > chainWork || lo.wideSums(sections) {
		s.Threads, registers = s.Threads/2, chainFew
	}
	for s.Unroll < chainMost && access*float64(2*s.Unroll)+states <= registers {
		s.Unroll *= 2
	}
	s.ColThreads, s.MinBlocks, s.Chain = forecast.ChainShare(s.Threads, s.Vector).Groups, forecast.ThreadsSM/forecast.ChainThreads, forecast.FullDevice
	if access*float64(s.Unroll)+states > chainFew || s.Vector == 1 && len(sections[0].Folds) > 1 { // addresses of single elements take registers
		s.MinBlocks = 1
	}
}

// halved is the schedule with half as many threads for the same columns.
func halved(s ir.Schedule) ir.Schedule {
	s.Threads, s.ColThreads, s.Unroll = s.Threads/2, s.ColThreads/2, s.Unroll*2
	return s
}

// wideSums reports whether the state of a fold takes more than a register.
func (lo columnKernel) wideSums(sections []*ir.Section) bool {
	return slices.ContainsFunc(sections[0].Folds, func(f *ir.Fold) bool { return f.Result.Type.Size() > 4 })
}
