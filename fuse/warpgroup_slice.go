package fuse

import "github.com/fusec/fusec/ir"

// Figures of warpgroups that slice the columns.
const (
	slicedThreads = 256 // a warpgroup that copies and one that multiplies 64 rows
	slicedRows    = 17  // rows of M and N from which they are faster than few rows through mma.sync
)

// slicedTile is a shape of tile whose columns the blocks of a cluster share.
type slicedTile struct {
	n, slices int
	least     int64 // blocks below which another row has the better shape
	columns   int64 // from which it costs less than what takes the product otherwise
}

// slicedTiles is the shapes for long sums of few tiles, 64 rows each, the first that
// fits. Wide ones come first: all blocks read the same rows of A, and a wide tile reads
// them less often. Slices cost 18000 cycles once, for their sums pass between
// multiprocessors. What they save for every 64 columns is, with wide tiles and 128 wide
// ones, 250 cycles of a tile of 128x64; with 64x64 330 cycles of a tile of 32x32; and 64
// where that is sliced too. Their ratio is where columns begin; docs/performance.md has
// the measurements.
var slicedTiles = []slicedTile{
	{n: 256, slices: 4, least: 67, columns: 4096},
	{n: 128, slices: 4, least: 33, columns: 3968},
	{n: 64, slices: 8, least: 33, columns: 3072},
	{n: 64, slices: 8, columns: 15680},
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
	enough := and(atLeastSize(product(c.M), slicedRows), atLeastSize(product(c.N), slicedRows))
	for _, s := range slicedTiles {
		tile := warpgroupTile{m: 64, n: s.n, turns: 1, cluster: 1, slices: s.slices}
		v, ok := lo.warpgroupVariant(c, tile, operandVector, needs)
		if !ok {
			return nil
		}
		inBatch := ir.Apply(ir.OpMul, tilesOf(product(c.M), tile.m), tilesOf(product(c.N), tile.n))
		tiles := ir.Apply(ir.OpMul, product(c.Batch), inBatch)
		slices := int64(s.slices)
		fits := and(atMostSize(tiles, sliceDevice/slices), atLeastSize(product(lo.k.Cols), s.columns))
		if s.least > 0 {
			fits = and(fits, atLeastSize(tiles, (s.least+slices-1)/slices))
		}
		v.When = and(and(enough, fits), v.When)
		if ir.Decide(orTrue(v.When), ir.Facts{}) != ir.False {
			out = append(out, v)
		}
	}
	return out
}
