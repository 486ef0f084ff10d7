package fuse

import "github.com/fusec/fusec/ir"

// slicedThreads is a warpgroup that multiplies and a warp that copies.
const slicedThreads = 160

// slicedTile is a shape of tile whose columns the blocks of a cluster share.
type slicedTile struct {
	m, n, slices, blocks int
	tiles                int64 // at most: clusters that run at a time, each block on a multiprocessor of its own
	columns              int64 // from which they cost less than what takes the product otherwise
}

// slicedTiles is the shapes for long sums of few tiles, the first that fits: those with
// the most slices come first, for they keep the most multiprocessors busy. How many
// clusters run at a time is what a device of 132 multiprocessors reports; a constant, so
// that sums do not depend on the device. docs/performance.md has the measurements.
var slicedTiles = []slicedTile{
	{m: 64, n: 64, slices: 16, blocks: 1, tiles: 7, columns: 8192},
	{m: 64, n: 64, slices: 8, blocks: 2, tiles: 16, columns: 2048},
	{m: 64, n: 128, slices: 4, blocks: 2, tiles: 33, columns: 2048},
	{m: 64, n: 128, slices: 2, blocks: 1, tiles: 66, columns: 2048},
}

// tile is the shape as one of tiles.
func (s slicedTile) tile() warpgroupTile {
	return warpgroupTile{m: s.m, n: s.n, turns: 1, cluster: 1, slices: s.slices, blocks: s.blocks}
}

// slicedVariants makes the variants of a contraction whose tiles are too few for the
// device and whose sums are long: the blocks of a cluster take slices of the columns.
func (lo *lowering) slicedVariants(c ir.Contract) (out []*ir.Variant) {
	if !lo.f.opts.Device.Warpgroups() || len(c.B) > 1 {
		return nil
	}
	lo.storeAlongN(&c)
	needs := map[string]int64{}
	if !lo.viewable(&c, needs) {
		return nil
	}
	for _, s := range slicedTiles {
		v, ok := lo.warpgroupVariant(c, s.tile(), operandVector, needs)
		if !ok {
			return nil
		}
		inBatch := ir.Apply(ir.OpMul, tilesOf(product(c.M), s.m), tilesOf(product(c.N), s.n))
		tiles := ir.Apply(ir.OpMul, product(c.Batch), inBatch)
		v.When = and(and(atMostSize(tiles, s.tiles), atLeastSize(product(lo.k.Cols), s.columns)), v.When)
		if ir.Decide(orTrue(v.When), ir.Facts{}) != ir.False {
			out = append(out, v)
		}
	}
	return out
}
