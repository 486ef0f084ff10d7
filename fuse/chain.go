package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// Chains of blocks (ir.Schedule.Chain). A reduction of rows that lie across memory, too few for
// blocks that have all of their columns, is left whole where blocks of one round of reads hand
// their totals on: that takes neither partial results in memory nor a second kernel. Blocks of
// one round are read in the order of memory, and what a multiprocessor has under way is bounded:
// both count, see docs/performance.md.

const (
	chainLanes   = 16   // threads of a strip at least: 256 bytes of each column
	chainSingles = 64   // and of one of single elements
	chainThreads = 1024 // of a block: two on a multiprocessor have 64 KiB under way
	chainUnroll  = 2    // accesses of a thread in its round at least
	chainStrips  = 16   // strips from which the chains are short
	chainRounds  = 8    // rounds of the columns from which it pays
)

const chainHeavy = 24 // work of a point from which arithmetic is what a block waits for

// Figures of the schedules of such blocks.
const (
	chainMost      = 16 // and at most
	chainRegisters = 12 // for its accesses and states, where there are so many threads,
	chainWork      = 8  // and the work of a point
	chainFew       = 32 // registers for them where there are half as many threads
)

// part is how many columns a part has.
func (s share) part(unroll int) int { return s.groups * unroll }

// chainShare divides a block of so many threads among rows in vectors.
func chainShare(threads, vector int) share {
	return share{threads, threads / max(chainLanes, chainSingles/vector)}
}

// chainable reports whether a chain of blocks suits so many rows and columns, better than blocks
// that have all columns of their rows.
func chainable(rows, cols float64, vector int) bool {
	return shareOf(cols).blocks(rows, vector) < stripLeast && cols >= float64(chainRounds*chainShare(chainThreads, vector).part(chainUnroll))
}

// chained reports whether a reduction is better left whole, for such blocks: nothing reads it
// that would share a kernel with more than its results.
func (s *splitter) chained(v *ir.Value) bool {
	if !s.histograms || walksColumns(v, s.sizes) || v.Reduce.Op.IsArg() || s.largest[v] > algebra.PointsAt(v.Axes, s.sizes) || s.besideHeld(v) || !s.alone(v) {
		return false
	}
	rows, vector := algebra.PointsAt(v.Axes, s.sizes), accessBytes/v.Body.Type.Size()
	return chainable(rows, algebra.PointsAt(v.Reduce.Ranges, s.sizes), vector) && chainShare(chainThreads, vector).blocks(rows, vector) >= chainStrips
}

// alone reports whether a reduction waits for no other one, shares what it reads with nothing of more
// than its results, which would join its kernel, and has little to do for each element, with the
// values that become part of it: with more, arithmetic is what its blocks wait for.
func (s *splitter) alone(v *ir.Value) bool {
	seen, work := map[*ir.Value]bool{v: true}, 0
	var visit func(v *ir.Value) bool
	visit = func(v *ir.Value) bool {
		if v.Body == nil {
			return true
		}
		work += workOf(v.Body)
		for _, l := range v.Loads() {
			if from := l.From; !seen[from] {
				if seen[from] = true; from.Reduce != nil || !visit(from) {
					return false
				}
			}
		}
		return true
	}
	if !visit(v) || work > chainHeavy {
		return false
	}
	for from := range seen {
		if slices.ContainsFunc(s.readers[from], func(r *ir.Value) bool {
			return !seen[r] && r.Reduce == nil && algebra.PointsAt(r.Axes, s.sizes) > algebra.PointsAt(v.Axes, s.sizes)
		}) {
			return false
		}
	}
	return true
}

// chains reports whether a kernel's blocks are such.
func (lo *lowering) chains(sections []*ir.Section) bool {
	return lo.handsOn(sections) && chainable(algebra.PointsAt(lo.k.Rows, lo.f.sizes), algebra.PointsAt(lo.k.Cols, lo.f.sizes), lo.vector())
}

// handsOn reports whether blocks may post their totals: the kernel sweeps its columns once, for
// totals that nothing else of the sweep waits for, its results come of these, and it is no product.
func (lo *lowering) handsOn(sections []*ir.Section) bool {
	if len(lo.k.Rows) == 0 || len(lo.k.Walk) > 0 || slices.ContainsFunc(lo.r.members, crosses) {
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
func (lo *lowering) chain(s *ir.Schedule, sections []*ir.Section, words float64) {
	access, states := max(1, words*float64(s.Vector)), float64(stateWords(sections)*s.Vector)
	s.Threads, s.Unroll = chainThreads, chainUnroll
	registers := float64(chainRegisters)
	if access*chainUnroll+states > registers || lo.foldWork() > chainWork || lo.wideSums(sections) {
		s.Threads, registers = s.Threads/2, chainFew
	}
	for s.Unroll < chainMost && access*float64(2*s.Unroll)+states <= registers {
		s.Unroll *= 2
	}
	s.ColThreads, s.MinBlocks, s.Chain = chainShare(s.Threads, s.Vector).groups, threadsSM/chainThreads, fullDevice
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
func (lo *lowering) wideSums(sections []*ir.Section) bool {
	return slices.ContainsFunc(sections[0].Folds, func(f *ir.Fold) bool { return f.Result.Type.Size() > 4 })
}

// foldWork is the work of a point, without what follows from the totals.
func (lo *lowering) foldWork() int {
	n := 0
	for _, root := range lo.roots() {
		if root.level == ir.FullLevel {
			n += workOf(*root.expr)
		}
	}
	return n
}
