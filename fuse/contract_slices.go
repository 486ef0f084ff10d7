package fuse

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// Slices of products in f32 (ir.Contract.Slices). If tiles are few and columns many, one cluster for each tile does not
// fill the device. More but smaller tiles would read shared memory too often for what they multiply. So the columns of
// a tile are cut into as many slices as give the device one round of blocks, and the sums of slices pass through
// memory.

// slicedTile is a tile whose columns may be cut into slices.
type slicedTile struct {
	splitShape
	fill    int   // blocks on each multiprocessor
	most    int64 // most tiles: with more, tiles without slices fill the device too
	columns int64 // least columns of a slice
	few     int64 // least slices that pay even if they do not fill the device; 0 if none do
}

// slicedTiles are tried in this order. The sums of larger tiles take longer to pass through memory, so these need
// more columns. With two blocks of 128 threads a multiprocessor multiplies about as fast as with more.
var slicedTiles = []slicedTile{
	{splitShape: largeFMA[0], fill: 2, most: 105, columns: 256},
	{splitShape: mediumFMA, fill: 2, most: 52, columns: 96},
	{splitShape: mediumFMA.transposed(), fill: 2, most: 52, columns: 96},
	{splitShape: skinnyFMA, fill: 3, most: 16, columns: 128, few: 64},
	{splitShape: skinnyFMA.transposed(), fill: 3, most: 16, columns: 128, few: 64},
	{splitShape: lowFMA, fill: 3, most: 31, columns: 128, few: 32},
	{splitShape: lowFMA.transposed(), fill: 3, most: 31, columns: 128, few: 32},
	{splitShape: smallFMA, fill: 4, most: 31, columns: 128, few: 16},
}

// slicedSingles are the same for operands whose elements are copied one by one.
var slicedSingles = []slicedTile{
	{splitShape: looseFMA, fill: 2, most: 105, columns: 256},
	{splitShape: mediumFMA, fill: 2, most: 52, columns: 96},
	{splitShape: smallFMA, fill: 4, most: 31, columns: 128, few: 16},
}

// fewSlices is the number of slices up to which an odd number in two rounds of blocks may be better
// than half of it in one round.
const fewSlices = 4

// A large tile is mostly padding if tiles of half its size cover the product with less than 8/5 as many tiles.
const (
	halvesNumber = 8
	halvesOf     = 5
)

// sliceChoices lists the tiles in slices for a product in f32.
func (lo splitKernel) sliceChoices(c *ir.Contract, enough *ir.Expr, wide bool) []splitCandidate {
	tiles := slicedTiles
	if !wide {
		tiles = slicedSingles
	}
	var out []splitCandidate
	for _, t := range tiles {
		count := tilesIn(c, t.splitShape)
		slices, room := t.slices(count), ir.Apply(ir.OpFloorDiv, algebra.Product(lo.k.Cols), ir.IntConst(t.columns))
		least := slices
		if t.few > 0 {
			slices = ir.Simplify(ir.Apply(ir.OpMax, ir.Apply(ir.OpMin, slices, room), ir.IntConst(1)), ir.Facts{})
			least, room = ir.IntConst(t.few), slices
		}
		when := algebra.And(algebra.AtMostSize(count, t.most), ir.Simplify(ir.Apply(ir.OpLe, least, room), ir.Facts{}))
		when = algebra.And(algebra.And(enough, t.suits(c)), when)
		out = append(out, splitCandidate{splitShape: t.splitShape, splits: 1, slices: slices, fill: t.fill, when: when})
	}
	return out
}

// slices is the number of slices of each tile: as many as fill one round of blocks. If these are few, and an odd number
// of slices fits two rounds, that number leaves less of the device idle, and is taken.
func (t slicedTile) slices(tiles *ir.Expr) *ir.Expr {
	inTwo := ir.Apply(ir.OpFloorDiv, ir.IntConst(int64(2*t.fill*ir.ReferenceSMs)), ir.Apply(ir.OpMax, tiles, ir.IntConst(1)))
	odd := ir.Apply(ir.OpMod, inTwo, ir.IntConst(2))
	few := ir.Apply(ir.OpMin, ir.IntConst(1), ir.Apply(ir.OpFloorDiv, ir.IntConst(2*fewSlices+2), ir.Apply(ir.OpAdd, inTwo, ir.IntConst(1))))
	rounds := ir.Apply(ir.OpSub, ir.IntConst(2), ir.Apply(ir.OpMul, odd, few)) // 1 for an odd number, else 2
	return ir.Simplify(ir.Apply(ir.OpFloorDiv, inTwo, rounds), ir.Facts{})
}

// suits is the condition that a product fills more than half of the tile along both sides, that a tile for few rows
// gets no more of them, and that a large tile is not mostly padding.
func (t slicedTile) suits(c *ir.Contract) *ir.Expr {
	m, n := algebra.Product(c.M), algebra.Product(c.N)
	wide, high := algebra.AtLeastSize(n, int64(t.n/2+1)), algebra.AtLeastSize(m, int64(t.m/2+1))
	switch t.splitShape {
	case smallFMA:
		return nil
	case skinnyFMA:
		return algebra.AtMostSize(m, int64(t.m))
	case skinnyFMA.transposed():
		return algebra.AtMostSize(n, int64(t.n))
	case lowFMA:
		return algebra.And(wide, algebra.AtMostSize(m, int64(t.m)))
	case lowFMA.transposed():
		return algebra.And(high, algebra.AtMostSize(n, int64(t.n)))
	}
	suits := algebra.And(high, wide)
	if t.m != t.n {
		return suits
	}
	most := ir.Apply(ir.OpMul, tilesIn(c, t.splitShape), ir.IntConst(halvesNumber))
	for _, half := range []splitShape{mediumFMA, mediumFMA.transposed()} {
		halves := ir.Apply(ir.OpMul, tilesIn(c, half), ir.IntConst(halvesOf))
		suits = algebra.And(suits, ir.Simplify(ir.Apply(ir.OpLe, most, halves), ir.Facts{}))
	}
	return suits
}

// tilesIn is the number of tiles of a shape in a product, its batch included.
func tilesIn(c *ir.Contract, s splitShape) *ir.Expr {
	m, n := algebra.Product(c.M), algebra.Product(c.N)
	return ir.Apply(ir.OpMul, algebra.Product(c.Batch), ir.Apply(ir.OpMul, algebra.TilesOf(m, s.m), algebra.TilesOf(n, s.n)))
}
