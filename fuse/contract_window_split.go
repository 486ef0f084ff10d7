package fuse

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/ir"
)

// Tiles of split-K for products one side of which is read through windows.

// windowPart is the rows of N that a warp of a large tile computes where an operand is a window. It is
// small, because what belongs to rows of a window takes registers of which threads then have fewer.
const windowPart = 32

// largeShape is the shape of the large tiles of a product.
func (lo productKernel) largeShape(c *ir.Contract, s splitShape) splitShape {
	if c.Unit.TensorCores() && lo.isWindowed(c) {
		s.partN, s.blocks = windowPart, 1
	}
	return s
}

// groupChoices are tiles of all channels of a small group, for windows in f32: of enough tiles to fill a device, or
// of too few columns to be split.
func (lo productKernel) groupChoices(c *ir.Contract, enough *ir.Expr) (out []splitCandidate) {
	if c.Unit != ir.FMAUnit || !lo.isWindowed(c) {
		return nil
	}
	for _, s := range []splitShape{eightFMA, sixteenFMA} {
		short := algebra.AtMostSize(algebra.Product(lo.k.Cols), int64(forecast.MostSplits/2*splitColumns*skinnyFMA.k-1))
		whole := ir.Apply(ir.OpOr, short, algebra.AtLeastSize(tilesIn(c, s), fmaBlocks))
		few := algebra.And(algebra.AtMostSize(algebra.Product(c.M), int64(s.m)), whole)
		out = append(out, splitCandidate{splitShape: s, splits: 1, when: algebra.And(enough, few)})
	}
	return out
}
