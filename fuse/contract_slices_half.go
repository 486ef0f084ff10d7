package fuse

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/ir"
)

// Slices of products in 16 bits. The gradient of the weights of a narrow layer is a sum over all rows of the data, and has one
// tile. A cluster for it would leave most multiprocessors idle while a few read all there is. So the columns are cut into as many
// slices as the device has room for blocks, and their sums pass through memory.

// Figures of such tiles.
const (
	halfSlicePart    = 32       // rows of either side that a warp multiplies
	halfSliceDepth   = 64       // columns of a stage
	halfSliceFill    = 2        // blocks of a multiprocessor
	halfSliceRing    = 96 << 10 // bytes of shared memory for the stages of a block
	halfSliceColumns = 1 << 10  // least columns of a slice
	halfSliceStages  = 8        // most stages
)

// halfSlices are the candidates in slices of a product in 16 bits; none where the usual sizes have many tiles, or short sums.
func (lo splitKernel) halfSlices(c *ir.Contract) []splitCandidate {
	m, n, columns := algebra.Product(c.M), algebra.Product(c.N), algebra.Product(lo.k.Cols)
	if len(lo.k.Cols) != 1 || c.Unit != ir.HalfUnit || c.Taps != nil || lo.isWindowed(c) || lo.k.Numerics != ir.Fast {
		return nil
	}
	small := splitShape{m: forecast.SlicedTile, n: forecast.SlicedTile}
	if lo.estimate(columns) < forecast.SlicedColumns || lo.estimate(tilesIn(c, small)) > forecast.SlicedTiles ||
		min(lo.estimate(m), lo.estimate(n)) < forecast.SlicedRows {
		return nil
	}
	t := slicedTile{splitShape: halfSliceShape(lo.estimate(m), lo.estimate(n)), fill: halfSliceFill}
	room := ir.Apply(ir.OpFloorDiv, columns, ir.IntConst(halfSliceColumns))
	slices := ir.Simplify(ir.Apply(ir.OpMax, ir.Apply(ir.OpMin, t.slices(tilesIn(c, t.splitShape)), room), ir.IntConst(1)), ir.Facts{})
	when := algebra.And(algebra.AtLeastSize(columns, forecast.SlicedColumns), algebra.AtMostSize(tilesIn(c, small), forecast.SlicedTiles))
	when = algebra.And(when, algebra.And(algebra.AtLeastSize(m, forecast.SlicedRows), algebra.AtLeastSize(n, forecast.SlicedRows)))
	return []splitCandidate{{splitShape: t.splitShape, splits: 1, slices: slices, fill: t.fill, when: when, bands: true}}
}

// halfSliceShape is the tile of so many rows of both sides.
func halfSliceShape(m, n float64) splitShape {
	upTo := func(rows float64) int {
		n := forecast.SlicedTile
		for n > bandStep && rows <= float64(n/2) {
			n /= 2
		}
		return n
	}
	s := splitShape{m: upTo(m), n: upTo(n), k: halfSliceDepth, blocks: halfSliceFill}
	s.partM, s.partN = min(s.m, halfSlicePart), min(s.n, halfSlicePart)
	s.stages = min(halfSliceStages, halfSliceRing/((s.m+s.n)*s.k*ir.F16.Size()))
	return s
}
