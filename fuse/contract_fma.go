package fuse

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// largeFMA are the large tiles of multiply-adds in f32. The rules choose the first, a
// measurement may choose another: a thread that computes 8 x 8 reads from shared memory
// as many bytes as that delivers while its multiplications run, one with 16 x 8 three
// quarters of them, at half the threads, and with few columns a stage it has registers to
// read ahead.
var largeFMA = []splitShape{
	{m: 128, n: 128, k: 8, partM: 16, partN: 8, stages: 4, blocks: 2, run: longRun},
	looseFMA,
	{m: 128, n: 128, k: 16, partM: 16, partN: 8, stages: 3, blocks: 2},
	{m: 128, n: 128, k: 16, partM: 8, partN: 16, stages: 3, blocks: 2},
	{m: 256, n: 128, k: 16, partM: 16, partN: 8, stages: 3, blocks: 1},
}

// Other tiles of multiply-adds in f32.
var (
	// looseFMA is the large one of operands whose elements are each brought by themselves.
	looseFMA  = splitShape{m: 128, n: 128, k: 16, partM: 8, partN: 8, stages: 3, blocks: 2, run: longRun}
	mediumFMA = splitShape{m: 64, n: 128, k: 16, partM: 8, partN: 8, stages: 3, blocks: 3, run: shortRun}
	lowFMA    = splitShape{m: 32, n: 128, k: 16, partM: 8, partN: 4, stages: 4, blocks: 3, run: shortRun}
	smallFMA  = splitShape{m: 32, n: 64, k: 16, partM: 4, partN: 4, stages: 4, blocks: 4, run: shortRun, step: 300}
	skinnyFMA = splitShape{m: 16, n: 128, k: 32, partM: 4, partN: 4, stages: 3, blocks: 3, run: shortRun}
)

// Figures of multiply-adds in f32. Libraries add up the columns of large products one after
// the other, those of others in many splits: so long and so short are runs.
const (
	longRun     = 1024                // columns whose sums are added up before they join the total, of large tiles
	shortRun    = 128                 // and of all others
	longSum     = 4096                // columns from which large tiles add up runs
	runPrefetch = 16                  // columns that are on their way at least
	cutLeast    = 128                 // columns of a split at least
	fmaBlocks   = 4 * ir.ReferenceSMs // of small tiles: a multiprocessor holds six
)

// cutTile is a tile of a product in f32 whose columns the blocks of a cluster share, for
// some numbers of tiles.
type cutTile struct {
	splitShape
	splits      int64
	first, last int64 // tiles
	rows        int64 // of M at least
}

// cutTiles are the shapes that measured best for numbers of tiles. Multiprocessors should have
// as many blocks as they hold, but no cluster should wait for a second round: of clusters of
// three 124 run at a time where multiprocessors hold three blocks, of two 198. Numbers are
// those of a device of 132 multiprocessors, so that sums do not depend on the device;
// docs/performance.md has the measurements.
var cutTiles = []cutTile{
	{largeFMA[0], 2, 100, 132, 65},
	{mediumFMA, 6, 16, 33, 33},
	{mediumFMA, 8, 34, 66, 33},
	{mediumFMA, 3, 67, 124, 33},
	{mediumFMA, 2, 125, 198, 33},
	{mediumFMA, 2, 265, 440, 33}, // large ones would have little more than a tile a multiprocessor
	{lowFMA, 8, 32, 132, 17},
}

// cutChoices lists the tiles and splits of a product in f32 that has few tiles.
func (lo splitKernel) cutChoices(c *ir.Contract, enough *ir.Expr) []splitCandidate {
	if !lo.device.Clusters() {
		return nil
	}
	var out []splitCandidate
	m, n := algebra.Product(c.M), algebra.Product(c.N)
	for _, t := range cutTiles {
		tiles := ir.Apply(ir.OpMul, algebra.Product(c.Batch), ir.Apply(ir.OpMul, algebra.TilesOf(m, t.m), algebra.TilesOf(n, t.n)))
		fits := algebra.And(algebra.AtLeastSize(tiles, t.first), algebra.AtMostSize(tiles, t.last))
		full := algebra.And(algebra.AtLeastSize(m, t.rows), algebra.AtLeastSize(n, int64(t.n/2+1)))
		long := algebra.AtLeastSize(algebra.Product(lo.k.Cols), t.splits*cutLeast)
		out = append(out, splitCandidate{t.splitShape, int(t.splits), algebra.And(enough, algebra.And(fits, algebra.And(full, long)))})
	}
	return out
}

// inRuns is a shape whose sums are added up in runs of columns: the error of one sum grows
// with the square root of its length, that of a total of runs with the square root of a
// run's (Higham, The Accuracy of Floating Point Summation, 1993, section 2: blocked
// summation). Where the totals leave no room for the ring of tiles in the share of shared
// memory that a block has, there are no runs.
func (lo splitKernel) inRuns(s splitShape) splitShape {
	const padding, element = 4, 4
	share := (lo.device.SharedBlock+sharedOfBlock)/max(1, s.blocks) - sharedOfBlock
	stage := (s.m + s.n + 2*padding) * s.k * element
	stages := min(s.stages, (share-s.m*s.n*element)/stage)
	if (stages-1)*s.k < runPrefetch {
		s.run = 0
		return s
	}
	s.stages = stages
	return s
}
