package fuse

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Shapes of tiles of the warpgroup mapping, and what products cost in them.

// Figures of folds beside those of products; see docs/performance.md.
const (
	foldSpares = 1000 // cycles of a tile whose sums are neither staged nor stored
	placeSlots = 60   // of comparing two values with their places
)

// foldSpared is the cycles of what follows a product that folds do without.
func (lo warpgroupKernel) foldSpared() int64 {
	if lo.r.folded == nil {
		return 0
	}
	return foldSpares
}

// foldSlots is the work that folds of tiles do for each element of the product.
func (lo warpgroupKernel) foldSlots() int {
	slots := 0
	if lo.r.folded == nil {
		return 0
	}
	for _, f := range lo.folds {
		slots += form.CostOf(f.Body).Slots + f.Op.Info().Combine.Info().Cost
		if f.Op.IsArg() {
			slots += placeSlots
		}
	}
	return slots
}

// warpgroupTile is a shape of tile and what it costs a multiprocessor, in cycles; see
// docs/performance.md for the measurements.
type warpgroupTile struct {
	m, n, turns, cluster int
	step                 int64 // for each stage: of the tensor cores, or of the L2 cache where a small tile is bound by its operands
	around               int64 // for each tile: filling the ring, staging and storing the sums
	splits               int   // of the columns; 0 for one
	blocks               int   // that a multiprocessor shall hold; 0 for one
	few                  int   // rows of the TMA tiles of A, where no more are multiplied; 0 for m
	full                 bool  // in place of a tile that warpgroups share, where much follows the sums: few registers are left for it
}

// warpgroupTiles is the shapes: of those that cost the same the first is used. The
// last takes what is left, and tensors whose offsets need 64 bits.
var warpgroupTiles = []warpgroupTile{
	{m: 128, n: 256, turns: 1, cluster: 2, step: 1024, around: 2600},
	{m: 128, n: 192, turns: 2, cluster: 2, step: 790, around: 15000, full: true}, // a guess: reads are waited for
	{m: 128, n: 64, turns: 1, cluster: 1, step: 400, around: 800},
	{m: 128, n: 128, turns: 2, cluster: 1, step: 540, around: 1500},
}

// byteFloatTiles is the shapes for 8-bit floats, whose registers hold the sums of two stages
// beside those of the tile: both warpgroups multiply half of it.
var byteFloatTiles = []warpgroupTile{
	{m: 128, n: 128, turns: 1, cluster: 2, step: 560, around: 2000},
	{m: 128, n: 64, turns: 1, cluster: 1, step: 400, around: 800},
	{m: 128, n: 128, turns: 1, cluster: 1, step: 580, around: 1500},
}

// muchAfter is operations an element, after the sums, that are not worth to wait for.
const muchAfter = 16

// lanesSM is how many f32 operations a multiprocessor does in a cycle.
const lanesSM = 128

// cost is the cycles a product takes with tiles of a shape: rounds of tiles over the
// multiprocessors, times what a tile takes. What follows the sums, `slots` operations
// an element, stands between the products of one tile and the next, unless
// warpgroups take turns: then only the last tile's does, where it takes no longer than
// the products of the other's tile.
func (lo warpgroupKernel) cost(c *ir.Contract, t warpgroupTile, slots int) *ir.Expr {
	tiles := ir.Apply(ir.OpMul, algebra.CeilDiv(algebra.Product(c.M), int64(t.m*t.cluster)),
		ir.Apply(ir.OpMul, algebra.CeilDiv(algebra.Product(c.N), int64(t.n/len(c.B))), algebra.Product(c.Batch)))
	rounds := algebra.CeilDiv(tiles, int64(lo.device.SMs/t.cluster))
	steps := ir.Apply(ir.OpMul, algebra.CeilDiv(algebra.Product(lo.columns()), int64(depthOf(c.Type))), ir.IntConst(t.step))
	around := ir.IntConst(t.around - lo.foldSpared() + int64(slots*t.m*t.n/len(c.B)/lanesSM))
	if t.turns > 1 {
		both := ir.Apply(ir.OpFloorDiv, ir.Apply(ir.OpAdd, steps, around), ir.IntConst(2))
		return ir.Simplify(ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, rounds, ir.Apply(ir.OpMax, steps, both)), around), lo.facts)
	}
	return ir.Simplify(ir.Apply(ir.OpMul, rounds, ir.Apply(ir.OpAdd, steps, around)), lo.facts)
}

// tilesFor is the shapes of which each fold's and each block's share is whole TMA tiles. Where
// much follows the sums, the largest is one that warpgroups take in turns.
func tilesFor(c *ir.Contract, much bool) []warpgroupTile {
	var out []warpgroupTile
	shapes := warpgroupTiles
	if form.ByteTile(c.Type) && c.Type.IsFloat() {
		shapes = byteFloatTiles
	}
	much = much && len(c.B) == 1 && c.Type.Size() == 2
	for _, t := range shapes {
		if t.full != much && (t.full || t.cluster > 1) {
			continue
		}
		each := t.n / len(c.B) // of which blocks share the rows or, where those lie side by side, the columns
		if c.B[0].KLast && each/t.cluster%8 == 0 || each%depthOf(c.Type) == 0 {
			out = append(out, t)
		}
	}
	return out
}

// cheapest is the condition under which the first shape costs the least of all.
func (lo warpgroupKernel) cheapest(c *ir.Contract, tiles []warpgroupTile) *ir.Expr {
	slots := lo.slotsAfter(c) + lo.foldSlots()
	var out *ir.Expr
	for _, other := range tiles[1:] {
		out = algebra.And(out, ir.Apply(ir.OpLe, lo.cost(c, tiles[0], slots), lo.cost(c, other, slots)))
	}
	return out
}

// slotsAfter is the operations that follow the sums, for each element: what belongs to a
// row is computed once for a vector.
func (lo warpgroupKernel) slotsAfter(c *ir.Contract) (slots int) {
	lane, counted := algebra.Innermost(c.N), map[*ir.Expr]bool{}
	for _, s := range lo.stores {
		slots += lo.laneSlots(s.Value, lane, counted)
	}
	return slots
}

// laneSlots is the operations of an expression that neighbours along a range do not share.
func (lo warpgroupKernel) laneSlots(e *ir.Expr, lane *ir.Range, counted map[*ir.Expr]bool) int {
	c := form.CostOf(e)
	if counted[e] {
		return 0
	}
	counted[e] = true
	if !ir.DependsOn(e, lane) && !waits(e) {
		return c.Slots / operandVector
	}
	slots := c.Slots
	for _, part := range e.Args {
		slots -= form.CostOf(part).Slots
	}
	for _, part := range e.Args {
		slots += lo.laneSlots(part, lane, counted)
	}
	return slots
}
