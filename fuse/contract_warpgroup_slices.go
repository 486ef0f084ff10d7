package fuse

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// Slices of products through warpgroups (ir.Contract.Slices). The gradient of a weight has few tiles, each a sum over all
// rows of a batch: 768 x 3072 are 144 tiles of 128 x 128, which 132 multiprocessors take in two rounds, the second nearly
// empty. So the columns of a tile are cut into slices, and rounds of slices are nearly full. The sums of slices pass
// through memory, and the warpgroup that comes last adds them in order. Slices of all tiles at the same columns run at the
// same time, so that they find each other's operands in the L2 cache.

// Figures of slices; see docs/performance.md.
const (
	warpgroupSlices = 7    // of a tile. 17 tiles fill one round, and of 133 or more at most one multiprocessor in 16 has nothing to do
	sliceColumns    = 8192 // least columns of a product in slices, so that passing sums through memory takes little of its time
	sliceGain       = 4    // rounds of slices take at most 4/5 of the time of rounds of tiles
	sliceGainOf     = 5
)

// sliceVariant is the variant in slices; none where the product is never long enough.
func (lo warpgroupKernel) sliceVariant(c ir.Contract, tiles []warpgroupTile, needs *algebra.Needs) []*ir.Variant {
	tile := tiles[len(tiles)-1]
	if c.Type.Size() != 2 || len(c.B) > 1 || tile.turns < 2 || lo.r.folded != nil {
		return nil
	}
	c.Slices = ir.IntConst(warpgroupSlices)
	v, ok := lo.warpgroupVariant(c, tile, operandVector, needs)
	if !ok {
		return nil
	}
	long := algebra.AtLeastSize(algebra.Product(lo.columns()), sliceColumns)
	v.When = algebra.And(algebra.And(lo.worthTiles(&c, splitRows), long), algebra.And(lo.fillsRounds(&c, tile), v.When))
	if ir.Decide(algebra.OrTrue(v.When), ir.Facts{}) == ir.False {
		return nil
	}
	return []*ir.Variant{v}
}

// fillsRounds is the condition that rounds of slices leave less of the device idle than rounds of tiles.
func (lo warpgroupKernel) fillsRounds(c *ir.Contract, t warpgroupTile) *ir.Expr {
	times := func(e *ir.Expr, n int64) *ir.Expr { return ir.Apply(ir.OpMul, e, ir.IntConst(n)) }
	rounds := func(items *ir.Expr) *ir.Expr { return algebra.CeilDiv(items, ir.ReferenceSMs) }
	m, n := algebra.TilesOf(algebra.Product(c.M), t.m), algebra.TilesOf(algebra.Product(c.N), t.n)
	tiles := ir.Apply(ir.OpMul, algebra.Product(c.Batch), ir.Apply(ir.OpMul, m, n))
	sliced, whole := times(rounds(times(tiles, warpgroupSlices)), sliceGainOf), times(rounds(tiles), sliceGain*warpgroupSlices)
	return ir.Simplify(ir.Apply(ir.OpLe, sliced, whole), lo.facts)
}
