package fuse

import (
	"maps"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// splitThreads is the threads of a warpgroup that multiplies and of a warp that copies.
const splitThreads = 160

// splitRows is the least number of rows, of both sides, for the shapes that are not for few rows.
const splitRows = 17

// splitTile is a shape of tile whose columns are split over the blocks of a cluster.
type splitTile struct {
	m, n, splits, blocks int
	fewRows              int   // most rows of M, and the rows of their TMA tiles; 0 for a shape that is for more rows
	tiles                int64 // most tiles: the clusters that run at a time, with each block on a multiprocessor of its own; for few rows it is the least number of tiles
	columns              int64 // least columns of 16 bits with which this costs less than what would be used instead
}

// splitTiles is the shapes for long sums of few tiles, of products and of windows; the first that fits is used. Shapes
// with most splits come first, because they keep most multiprocessors busy. Small tiles do better than wide ones,
// whose sums take longer to pass between blocks. Few rows have small TMA tiles: the copy engine takes as
// long for rows that do not exist as for others. The number of clusters that run at a time is what a
// device of 132 multiprocessors reports; it is a constant, so that sums do not depend on the device.
// docs/performance.md has the measurements.
var splitTiles = []splitTile{
	{m: 64, n: 64, splits: 8, blocks: 1, tiles: 15, columns: 2048},
	{m: 64, n: 64, splits: 8, blocks: 2, tiles: 16, columns: 1024},
	{m: 64, n: 128, splits: 4, blocks: 1, tiles: 30, columns: 8192},
	{m: 64, n: 64, splits: 2, blocks: 1, tiles: 66, columns: 768},
	{m: 64, n: 128, splits: 2, blocks: 1, tiles: 66, columns: 2048},
	{m: 64, n: 128, splits: 2, blocks: 1, fewRows: 16, tiles: 13, columns: 2048},
}

// tile is the shape as a warpgroupTile.
func (s splitTile) tile() warpgroupTile {
	return warpgroupTile{m: s.m, n: s.n, turns: 1, cluster: 1, splits: s.splits, blocks: s.blocks, fewRows: s.fewRows}
}

// fits is the condition that a product has so few tiles and so many columns.
func (s splitTile) fits(lo *kernel, c *ir.Contract) *ir.Expr {
	m, n := algebra.Product(c.M), algebra.Product(c.N)
	tiles := ir.Apply(ir.OpMul, algebra.Product(c.Batch), ir.Apply(ir.OpMul, tilesOfSide(c.A, c.M, s.m), tilesOfSide(c.B[0], c.N, s.n)))
	long := algebra.AtLeastSize(algebra.Product(lo.k.Cols), s.columns*2/int64(c.Type.Size()))
	if s.fewRows > 0 { // products of few rows with less to read are faster through mma.sync
		return algebra.And(algebra.And(algebra.AtMostSize(m, int64(s.fewRows)), algebra.AtLeastSize(n, splitRows)), algebra.And(algebra.AtLeastSize(tiles, s.tiles), long))
	}
	return algebra.And(algebra.AtMostSize(tiles, s.tiles), algebra.And(algebra.And(algebra.AtLeastSize(m, splitRows), algebra.AtLeastSize(n, splitRows)), long))
}

// warpgroupSplitVariants makes the variants of a contraction with long sums whose tiles are too few for
// the device: the columns are split over the blocks of a cluster (split-K).
func (lo warpgroupKernel) warpgroupSplitVariants(c ir.Contract) (out []*ir.Variant) {
	if !lo.device.Warpgroups() || len(c.B) > 1 {
		return nil
	}
	lo.storeAlongN(&c)
	if lo.isWindowed(&c) {
		return lo.windowSplitVariants(c)
	}
	needs := lo.viewableNeeds(&c)
	if needs == nil {
		return nil
	}
	for _, s := range splitTiles {
		if s.fewRows > 0 && c.Type == ir.F32 { // mma.sync takes few rows in tf32
			continue
		}
		v, ok := lo.warpgroupSplitVariant(c, s, widestVector(c.Type), needs)
		if !ok { // results are stored one by one instead
			v, _ = lo.warpgroupSplitVariant(c, s, 1, needs)
		}
		out = append(out, v...)
		if s.fewRows > 0 { // few rows of N instead, along which results are contiguous
			v, _ = lo.warpgroupSplitVariant(*swapped(&c), s, 1, needs)
			out = append(out, v...)
		}
	}
	return out
}

// warpgroupSplitVariant builds the variants of a shape, none where its sizes exclude each other. ok is
// false where nothing is read or written in vectors of that width.
func (lo warpgroupKernel) warpgroupSplitVariant(c ir.Contract, s splitTile, vector int, needs *algebra.Needs) (out []*ir.Variant, ok bool) {
	v, ok := lo.warpgroupVariant(c, s.tile(), vector, needs)
	if !ok {
		return nil, false
	}
	v.When = algebra.And(s.fits(lo.kernel, &c), v.When)
	if ir.Decide(algebra.OrTrue(v.When), ir.Facts{}) != ir.False {
		out = append(out, v)
	}
	return out, true
}

// tilesOfSide is the tiles of so many rows that a side of a product has, or its boxes of as many places.
func tilesOfSide(o ir.Operand, own []*ir.Range, rows int) *ir.Expr {
	if o.WindowTiles == nil || o.WindowTiles.Tile == nil {
		return algebra.TilesOf(algebra.Product(own), rows)
	}
	tiles := ir.IntConst(1)
	for i, n := range o.WindowTiles.Tile {
		tiles = ir.Apply(ir.OpMul, tiles, algebra.CeilDiv(own[i].Extent, int64(n)))
	}
	return tiles
}

// windowSplitVariants makes the variants of a windowed contraction with long sums and few tiles.
func (lo warpgroupKernel) windowSplitVariants(of ir.Contract) (out []*ir.Variant) {
	w := lo.windowContract(of)
	if w == nil || w.InParts() || w.Taps != nil {
		return nil
	}
	w.cover = nil // blocks of a cluster have parts of the columns, which begin at any tap
	for _, s := range splitTiles {
		if s.fewRows > 0 {
			continue
		}
		sizes := s.fewSizes(&w.Contract, lo.sizes)
		boxes := lo.windowBoxes(w, s.tile(), sizes)
		v, ok := lo.windowWarpgroup(w, boxes, widestStore(w.Contract))
		if !ok { // results are stored one by one instead
			v, ok = lo.windowWarpgroup(w, boxes, 1)
		}
		if !ok {
			continue
		}
		v.When = algebra.And(s.fits(lo.kernel, v.Contract), v.When)
		if ir.Decide(algebra.OrTrue(v.When), lo.positive()) != ir.False {
			out = append(out, v)
		}
	}
	return out
}

// fewSizes are the sizes, the number of images made smaller, at which there are as few tiles as the shape is for: its boxes
// are then those of few images.
func (s splitTile) fewSizes(c *ir.Contract, usual map[string]int64) map[string]int64 {
	sizes := maps.Clone(usual)
	points := ir.Apply(ir.OpMul, algebra.Product(c.M), algebra.Product(c.N))
	most := float64(s.tiles * int64(s.m*s.n))
	for _, r := range slices.Concat(c.M[:min(1, len(c.M))], c.N[:min(1, len(c.N))]) {
		ir.Walk(r.Extent, func(e *ir.Expr) bool {
			for e.Op == ir.OpSym && sizes[e.Name] > 1 && algebra.Estimate(points, sizes) > most {
				sizes[e.Name] /= 2
			}
			return true
		})
	}
	return sizes
}
