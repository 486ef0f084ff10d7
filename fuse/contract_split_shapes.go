package fuse

import "github.com/fusec/fusec/ir"

// The tiles of the split-K mapping.

// splitShape is a tile of the split-K mapping: its rows of M and N and its columns, the part of it that
// one warp (with tensor cores) or one thread computes, and how many tiles of columns shared memory holds.
type splitShape struct {
	m, n, k, partM, partN, stages int
	blocks                        int // blocks that the registers of a multiprocessor should be enough for

	run  int   // columns of a run, whose sums are added up before they join the total, in f32; 0 for one run
	step int64 // cycles of a block for each tile of columns, where warpgroups are a choice too
}

// threads is the size of a block.
func (s splitShape) threads(u ir.Multiplier) int {
	n := s.m / s.partM * (s.n / s.partN)
	if u.TensorCores() {
		return 32 * n
	}
	return n
}

// on completes a schedule of the split-K mapping with this shape.
func (s splitShape) on(v ir.Schedule, u ir.Multiplier) ir.Schedule {
	v.Threads, v.TileM, v.TileN, v.TileK = s.threads(u), s.m, s.n, s.k
	v.PartM, v.PartN, v.Stages, v.MinBlocks = s.partM, s.partN, s.stages, s.blocks
	return v
}

// transposed is the shape for few rows of N in place of M.
func (s splitShape) transposed() splitShape {
	s.m, s.n, s.partM, s.partN = s.n, s.m, s.partN, s.partM
	return s
}

// splitShapes are the tiles that a product may take, by its sizes.
type splitShapes struct {
	fewRows []splitShape // for at most m rows of M, or transposed for as few rows of N
	small   splitShape   // taken while larger tiles would leave multiprocessors without work
	large   splitShape
	least   int64 // least number of large tiles that keeps a device busy
}

// shapesOf are the tiles for each unit that multiplies; those of multiply-adds are for f32.
var shapesOf = map[ir.Multiplier]splitShapes{
	ir.HalfUnit: {
		fewRows: []splitShape{{m: 16, n: 64, k: 64, partM: 16, partN: 16, stages: 8}, {m: 64, n: 64, k: 64, partM: 32, partN: 32, stages: 6}},
		small:   splitShape{m: 32, n: 32, k: 64, partM: 16, partN: 16, stages: 4, step: 350},
		large:   splitShape{m: 128, n: 128, k: 32, partM: 64, partN: 64, stages: 4, blocks: 2},
		least:   24,
	},
	ir.TF32Unit: {
		fewRows: []splitShape{{m: 16, n: 64, k: 32, partM: 16, partN: 16, stages: 6}},
		small:   splitShape{m: 64, n: 64, k: 32, partM: 32, partN: 32, stages: 3, step: 1200}, // nearly the 1400 of a large tile: it waits for what it reads
		large:   splitShape{m: 128, n: 128, k: 32, partM: 64, partN: 64, stages: 3, blocks: 2},
		least:   100,
	},
	ir.FMAUnit: {
		fewRows: []splitShape{skinnyFMA},
		small:   smallFMA,
		large:   largeFMA[0],
		least:   100,
	},
	ir.DoubleUnit: {
		fewRows: []splitShape{{m: 16, n: 64, k: 16, partM: 16, partN: 16, stages: 4}},
		small:   splitShape{m: 32, n: 64, k: 16, partM: 16, partN: 32, stages: 4},
		large:   splitShape{m: 64, n: 64, k: 16, partM: 32, partN: 32, stages: 3, blocks: 3},
		least:   200,
	},
	ir.IntegerUnit: {
		fewRows: []splitShape{{m: 16, n: 64, k: 16, partM: 4, partN: 4, stages: 3}},
		small:   splitShape{m: 32, n: 64, k: 16, partM: 4, partN: 4, stages: 3},
		large:   splitShape{m: 64, n: 64, k: 16, partM: 8, partN: 4, stages: 3, blocks: 3},
		least:   200,
	},
}

// doubleShapes are the tiles of multiply-adds in f64, whose elements take two registers each.
var doubleShapes = splitShapes{
	fewRows: []splitShape{{m: 16, n: 64, k: 16, partM: 4, partN: 4, stages: 3}},
	small:   splitShape{m: 32, n: 64, k: 16, partM: 4, partN: 4, stages: 3},
	large:   splitShape{m: 64, n: 64, k: 16, partM: 4, partN: 4, stages: 3},
	least:   200,
}
