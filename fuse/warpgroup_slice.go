package fuse

import "github.com/fusec/fusec/ir"

// slicedThreads is a warpgroup that multiplies and a warp that copies.
const slicedThreads = 160

// slicedRows is from how many rows of both sides shapes are not for few rows.
const slicedRows = 17

// slicedTile is a shape of tile whose columns the blocks of a cluster share.
type slicedTile struct {
	m, n, slices, blocks int
	few                  int   // rows of M at most, and of the boxes that bring them; 0 where it is for more than few
	tiles                int64 // at most: clusters that run at a time, each block on a multiprocessor of its own
	columns              int64 // from which they cost less than what takes the product otherwise
}

// slicedTiles is the shapes for long sums of few tiles, the first that fits: those with
// the most slices come first, for they keep the most multiprocessors busy. Small tiles do
// better than wide ones, whose sums take longer to pass between blocks. Few rows have
// boxes of their own: rows that are not there take the copy engine as long as others.
// How many clusters run at a time is what a device of 132 multiprocessors reports; a
// constant, so that sums do not depend on the device. docs/performance.md has the
// measurements.
var slicedTiles = []slicedTile{
	{m: 64, n: 64, slices: 8, blocks: 2, tiles: 16, columns: 2048},
	{m: 64, n: 64, slices: 2, blocks: 1, tiles: 66, columns: 2048},
	{m: 64, n: 128, slices: 2, blocks: 1, tiles: 66, columns: 4096},
	{m: 64, n: 128, slices: 2, blocks: 1, few: 16, tiles: 66, columns: 4096},
}

// tile is the shape as one of tiles.
func (s slicedTile) tile() warpgroupTile {
	return warpgroupTile{m: s.m, n: s.n, turns: 1, cluster: 1, slices: s.slices, blocks: s.blocks, few: s.few}
}

// fits is the condition under which a product is of so few tiles and so many columns.
func (s slicedTile) fits(lo *lowering, c *ir.Contract) *ir.Expr {
	m, n := product(c.M), product(c.N)
	tiles := ir.Apply(ir.OpMul, product(c.Batch), ir.Apply(ir.OpMul, tilesOf(m, s.m), tilesOf(n, s.n)))
	rows := atLeastSize(m, slicedRows)
	if s.few > 0 {
		rows = atMostSize(m, int64(s.few))
	}
	enough := and(and(rows, atLeastSize(n, slicedRows)), atLeastSize(product(lo.k.Cols), s.columns))
	if s.few > 0 { // with less to read, few rows are faster through mma.sync
		enough = and(enough, atLeastSize(tiles, s.tiles/2))
	}
	return and(atMostSize(tiles, s.tiles), enough)
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
		if s.few > 0 && !c.A.KLast {
			continue
		}
		v, ok := lo.warpgroupVariant(c, s.tile(), operandVector, needs)
		if !ok {
			return nil
		}
		v.When = and(s.fits(lo, &c), v.When)
		if ir.Decide(orTrue(v.When), ir.Facts{}) != ir.False {
			out = append(out, v)
		}
	}
	return out
}
