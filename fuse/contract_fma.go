package fuse

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// largeFMA are the large tiles of multiply-adds in f32. The rules choose the first one; a measurement may
// choose another. A thread that computes 8 x 8 needs exactly the rate at which shared memory delivers. A
// thread that computes 16 x 8 reads three quarters as many bytes for each multiplication. That takes half
// as many threads, and with few columns in a stage there are registers for prefetching.
var largeFMA = []splitShape{
	{m: 128, n: 128, k: 8, partM: 16, partN: 8, stages: 4, blocks: 2, run: longRun},
	looseFMA,
	{m: 128, n: 128, k: 16, partM: 16, partN: 8, stages: 3, blocks: 2},
	{m: 128, n: 128, k: 16, partM: 8, partN: 16, stages: 3, blocks: 2},
	{m: 256, n: 128, k: 16, partM: 16, partN: 8, stages: 3, blocks: 1},
}

// Other tiles of multiply-adds in f32.
var (
	// looseFMA is the large tile for operands whose elements are copied one by one.
	looseFMA  = splitShape{m: 128, n: 128, k: 16, partM: 8, partN: 8, stages: 3, blocks: 2, run: longRun}
	mediumFMA = splitShape{m: 64, n: 128, k: 16, partM: 8, partN: 8, stages: 3, blocks: 3, run: shortRun}
	lowFMA    = splitShape{m: 32, n: 128, k: 16, partM: 8, partN: 4, stages: 4, blocks: 3, run: shortRun}
	smallFMA  = splitShape{m: 32, n: 64, k: 16, partM: 4, partN: 4, stages: 4, blocks: 4, run: shortRun, step: 300}
	// The tiles for groups of few channels in convolutions: all channels of a group are in each thread, so that an
	// element of the input is copied once for all of them, and pixels are many.
	eightFMA   = splitShape{m: 8, n: 256, k: 16, partM: 8, partN: 4, stages: 3, blocks: 4}
	sixteenFMA = splitShape{m: 16, n: 256, k: 16, partM: 8, partN: 4, stages: 3, blocks: 3}
	skinnyFMA  = splitShape{m: 16, n: 128, k: 32, partM: 4, partN: 4, stages: 3, blocks: 3, run: shortRun}
)

// Figures of multiply-adds in f32. Libraries add up the columns of large products one after the other, and
// those of other products in many splits. The lengths of runs here follow them.
const (
	longRun     = 1024                // columns of a run, which are added up before they join the total, for large tiles
	shortRun    = 128                 // the same for all other tiles
	longSum     = 4096                // columns from which large tiles use runs
	runPrefetch = 16                  // least columns that are being copied at a time
	cutLeast    = 128                 // least columns of a split
	fmaBlocks   = 4 * ir.ReferenceSMs // blocks of small tiles; a multiprocessor holds six of them
)

// lowChoices are tiles of few rows of either side, for products in f32 of many tiles: half or more of a large tile would be empty.
// Windows have few channels of weights on the left side.
func (lo splitKernel) lowChoices(c *ir.Contract, enough *ir.Expr) (out []splitCandidate) {
	windowed := lo.isWindowed(c)
	if c.Unit != ir.FMAUnit || !windowed && c.Type == ir.F64 {
		return nil
	}
	for _, s := range []splitShape{lowFMA, mediumFMA} {
		few := algebra.AtMostSize(algebra.Product(c.M), int64(s.m))
		if windowed {
			s.run = 0
			out = append(out, splitCandidate{splitShape: s, splits: 1, when: algebra.And(enough, few)})
			continue
		}
		out = append(out, splitCandidate{splitShape: s, splits: 1, when: algebra.And(enough, few)},
			splitCandidate{splitShape: s.transposed(), splits: 1, when: algebra.And(enough, algebra.AtMostSize(algebra.Product(c.N), int64(s.m)))})
	}
	return out
}

// cutTile is a tile of a product in f32 whose columns are split over the blocks of a cluster, for a range
// of numbers of tiles.
type cutTile struct {
	splitShape
	splits      int64
	first, last int64 // tiles
	rows        int64 // of M at least
}

// cutTiles are the shapes that measured best, by number of tiles. Multiprocessors should have as many
// blocks as they hold, but no cluster should wait for a second round: where a multiprocessor holds three
// blocks, 124 clusters of three run at a time, or 198 of two. The numbers are those of a device of 132
// multiprocessors, and constants, so that sums do not depend on the device. docs/performance.md has the
// measurements.
var cutTiles = []cutTile{
	{largeFMA[0], 2, 100, 132, 65},
	{mediumFMA, 6, 16, 33, 33},
	{mediumFMA, 8, 34, 66, 33},
	{mediumFMA, 3, 67, 124, 33},
	{mediumFMA, 2, 125, 198, 33},
	{mediumFMA, 2, 265, 440, 33}, // large tiles would give a multiprocessor little more than one
	{lowFMA, 8, 32, 132, 17},
}

// cutChoices lists the tiles and splits for a product in f32 that has few tiles.
func (lo splitKernel) cutChoices(c *ir.Contract, enough *ir.Expr) []splitCandidate {
	if !lo.device.Clusters() {
		return nil
	}
	var out []splitCandidate
	m, n := algebra.Product(c.M), algebra.Product(c.N)
	for _, t := range cutTiles {
		tiles := tilesIn(c, t.splitShape)
		fits := algebra.And(algebra.AtLeastSize(tiles, t.first), algebra.AtMostSize(tiles, t.last))
		full := algebra.And(algebra.AtLeastSize(m, t.rows), algebra.AtLeastSize(n, int64(t.n/2+1)))
		long := algebra.AtLeastSize(algebra.Product(lo.k.Cols), t.splits*cutLeast)
		out = append(out, splitCandidate{splitShape: t.splitShape, splits: int(t.splits), when: algebra.And(enough, algebra.And(fits, algebra.And(full, long)))})
	}
	return out
}

// inRuns is a shape whose sums are added up in runs of columns. The error of one sum grows with the square
// root of its length, that of a total of runs with the square root of a run's length (Higham, The Accuracy
// of Floating Point Summation, 1993, section 2: blocked summation). There are no runs where the totals and
// the pipeline stages do not both fit a block's share of shared memory.
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
