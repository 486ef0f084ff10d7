package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Chains of blocks (ir.Schedule.Chain). A reduction of rows that lie across memory, too few for
// blocks that have all of their columns, is left whole where blocks of one round of reads hand
// their totals on: that takes neither partial results in memory nor a second kernel. Blocks of
// one round are read in the order of memory, and what a multiprocessor has under way is bounded:
// both count, see docs/performance.md.

// Figures of the schedules of such blocks.
const (
	chainMost      = 16 // and at most
	chainRegisters = 12 // for its accesses and states, where there are so many threads,
	chainWork      = 8  // and the work of a point
	chainFew       = 32 // registers for them where there are half as many threads
)

// chains reports whether a kernel's blocks are such.
func (lo columnKernel) chains(sections []*ir.Section) bool {
	return lo.looksBack(sections) && forecast.Chainable(algebra.PointsAt(lo.k.Rows, lo.sizes), algebra.PointsAt(lo.k.Cols, lo.sizes), lo.vector())
}

// looksBack reports whether blocks may post their totals: the kernel passes over its columns once, for
// totals that nothing else of the pass waits for, its results come of these, and it is no product.
func (lo columnKernel) looksBack(sections []*ir.Section) bool {
	if len(lo.k.Rows) == 0 || len(lo.k.Accumulated) > 0 || slices.ContainsFunc(lo.r.members, form.Crosses) {
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

// chain sets the schedule of such blocks: of many threads with few accesses each, or of half as
// many with more of them where a thread has more to hold.
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
	if access*float64(s.Unroll)+states > chainFew || s.Vector == 1 && len(sections[0].Folds) > 1 { // addresses of single elements
		s.MinBlocks = 1
	}
}

// halved has half as many threads read as many columns.
func halved(s ir.Schedule) ir.Schedule {
	s.Threads, s.ColThreads, s.Unroll = s.Threads/2, s.ColThreads/2, s.Unroll*2
	return s
}

// wideSums reports whether a fold's state is wider than a register.
func (lo columnKernel) wideSums(sections []*ir.Section) bool {
	return slices.ContainsFunc(sections[0].Folds, func(f *ir.Fold) bool { return f.Result.Type.Size() > 4 })
}
