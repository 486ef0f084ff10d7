package fuse

import "github.com/fusec/fusec/ir"

// Sharing columns. Where rows are next to each other in memory and columns are not, a
// block reads a strip of each column: some neighbouring rows, the lanes. A strip of a
// line of 128 bytes is as fast as a wider one, and there are more of them. What keeps
// memory busy is bytes under way: with groupUnroll accesses of each thread, one block a
// multiprocessor will do, and half of the multiprocessors nearly will.

// A share is how the threads of a block divide rows that lie across memory.
type share struct {
	threads int // of the block
	groups  int // of those that share the columns of the same rows
}

const (
	stripLanes  = 8              // threads beside each other on a line
	stripBlocks = fullDevice / 2 // blocks, one a multiprocessor of a large GPU
	stripLeast  = 32             // blocks below which a second kernel is faster
	stripRounds = 2              // columns of each thread, at least, that are worth its part in the merge
)

// shares are tried in this order, until there are columns enough for all groups.
var shares = []share{{512, 64}, {256, 32}, {256, groupThreads}}

// crowded is the share of so few rows that there is not a block a multiprocessor.
var crowded = share{1024, 128}

// blocks is the number of blocks for so many rows.
func (s share) blocks(rows float64, vector int) float64 {
	return rows / float64(vector*s.threads/s.groups)
}

// shareOf chooses the share of rows with so many columns.
func shareOf(rows, cols float64, vector int) share {
	fits := func(s share) bool { return float64(stripRounds*s.groups) <= cols }
	if fits(crowded) && crowded.blocks(rows, vector) < stripBlocks {
		return crowded
	}
	for _, s := range shares {
		if fits(s) {
			return s
		}
	}
	return shares[len(shares)-1]
}

// shareColumns sets how threads of a flat schedule share the columns.
func (lo *lowering) shareColumns(s *ir.Schedule) {
	rows, cols := pointsAt(lo.k.Rows, lo.f.sizes), pointsAt(lo.k.Cols, lo.f.sizes)
	chosen := shareOf(rows, cols, s.Vector)
	s.Threads, s.ColThreads = chosen.threads, chosen.groups
}
