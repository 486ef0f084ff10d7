package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// Sharing columns. Where rows are next to each other in memory and columns are not, a
// block reads a strip of each column: some neighbouring rows, the lanes. A strip of a
// line of 128 bytes is as fast as a wider one, and there are more of them. What keeps
// memory busy is bytes under way: groupUnroll accesses of each thread.

// A share is how the threads of a block divide rows that lie across memory.
type share struct {
	threads int // of the block
	groups  int // of those that share the columns of the same rows
}

const (
	groupUnroll  = 8          // columns in flight of a thread in flat mapping
	groupThreads = 8          // threads that share the columns of one row there
	stripLanes   = 8          // threads beside each other on a line
	stripLeast   = fullDevice // blocks below which partial sums and a second kernel are faster
)

const stripShort = 32 // columns from which few rows are spread over more blocks

// shares are tried in this order, until each thread has columns enough to have as many
// under way as it may.
var shares = []share{{512, 64}, {512, 32}, {256, groupThreads}}

// blocks is the number of blocks for so many rows.
func (s share) blocks(rows float64, vector int) float64 {
	return rows / float64(vector*s.threads/s.groups)
}

// shareOf chooses the share of rows with so many columns.
func shareOf(cols float64) share {
	for _, s := range shares {
		if float64(groupUnroll*s.groups) <= cols {
			return s
		}
	}
	return shares[len(shares)-1]
}

// shareColumns sets how threads of a flat schedule share the columns, and how many of
// these each has under way, for what it has registers.
func (lo *lowering) shareColumns(s *ir.Schedule, sections []*ir.Section, words float64) {
	rows, cols := algebra.PointsAt(lo.k.Rows, lo.f.sizes), algebra.PointsAt(lo.k.Cols, lo.f.sizes)
	chosen := shareOf(cols)
	if few := chosen.blocks(rows, s.Vector) < stripLeast/2; few && chosen.groups == groupThreads && cols >= stripShort {
		chosen.groups *= 4 // more blocks, with less to do each
	}
	if chosen.threads > flatThreads && stateWords(sections)*s.Vector > groupSums/2 {
		chosen = share{chosen.threads / 2, chosen.groups / 2} // more registers a thread
	}
	s.Threads, s.ColThreads, s.Unroll = chosen.threads, chosen.groups, groupUnroll
	if s.Vector == 1 && lo.work() > lightWork { // left alone, the compiler spills to run more blocks
		s.MinBlocks = residentThreads / s.Threads
	}
	for s.Unroll > 1 && words*float64(s.Unroll*s.Vector) > groupRegisters {
		s.Unroll /= 2
	}
	if sums := stateWords(sections) * s.Vector; s.Unroll == groupUnroll && sums > groupSums {
		s.Unroll /= 2
		s.MinBlocks = threadsSM / 4 / s.Threads // left alone, the compiler spills
	}
	for guarded(sections) && s.Unroll*s.Vector > groupGuarded {
		s.Unroll /= 2
	}
}

// guarded reports whether a fold leaves out columns, as those beyond the last chunk are.
func guarded(sections []*ir.Section) bool {
	for _, s := range sections {
		if slices.ContainsFunc(s.Folds, func(f *ir.Fold) bool { return f.Where != nil }) {
			return true
		}
	}
	return false
}

// stateWords is the registers that the folds of one lane take.
func stateWords(sections []*ir.Section) int {
	n := 0
	for _, s := range sections {
		for _, f := range s.Folds {
			n += f.Words()
		}
	}
	return n
}
