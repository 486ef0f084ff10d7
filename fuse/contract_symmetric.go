package fuse

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// Symmetric products. If both sides of a product are the same tensor read in the same way, as in transpose(x) @ x, the sums below the
// diagonal are those above it. Blocks then compute the tiles on and above the diagonal, which are little more than half, and store
// each sum twice.

// Most blocks of symmetric tiles that are cut into slices: more fill the device without.
const mostSymmetric = 2 * ir.ReferenceSMs

// isSymmetric reports whether the elements of both sides at the same row are the same.
func (lo splitKernel) isSymmetric(c *ir.Contract) bool {
	a, b := storedRead(c.A.Value, c.Type), storedRead(c.B[0].Value, c.Type)
	if a == nil || b == nil || a.Arg != b.Arg || a.Guard != nil || b.Guard != nil || len(c.M) != len(c.N) || c.Taps != nil {
		return false
	}
	to := map[*ir.Range]*ir.Expr{}
	for i, r := range c.M {
		if !ir.SameSize(r.Extent, c.N[i].Extent) {
			return false
		}
		to[r] = c.N[i].At()
	}
	return ir.SameIndex(ir.Substitute(a.Args[0], to), b.Args[0], lo.inside(ir.FullLevel))
}

// symmetricChoices are the large tiles on and above the diagonal of a symmetric product in f32: in slices where they are few, else as
// they are. They are for products that leave them fuller than small tiles of all results would be.
func (lo splitKernel) symmetricChoices(c *ir.Contract, enough *ir.Expr, wide bool) []splitCandidate {
	if !lo.isSymmetric(c) {
		return nil
	}
	large := slicedTile{splitShape: largeFMA[0], fill: 2, columns: 256}
	if !wide {
		large.splitShape = looseFMA
	}
	rows := algebra.Product(c.M)
	side := algebra.TilesOf(rows, large.m)
	tiles := ir.Apply(ir.OpMul, algebra.Product(c.Batch), ir.Triangle(side))
	const most, of = 4, 5 // the work of the tiles, in that of small ones
	halves := ir.Apply(ir.OpMul, algebra.TilesOf(rows, mediumFMA.m), algebra.TilesOf(rows, mediumFMA.n))
	ours := ir.Apply(ir.OpMul, ir.Triangle(side), ir.IntConst(int64(large.m/mediumFMA.m)))
	suits := ir.Simplify(ir.Apply(ir.OpLe, ir.Apply(ir.OpMul, ours, ir.IntConst(of)), ir.Apply(ir.OpMul, halves, ir.IntConst(most))), ir.Facts{})
	slices, room := large.slices(tiles), ir.Apply(ir.OpFloorDiv, algebra.Product(lo.k.Cols), ir.IntConst(large.columns))
	few := algebra.And(algebra.AtMostSize(tiles, mostSymmetric-1), ir.Simplify(ir.Apply(ir.OpLe, slices, room), ir.Facts{}))
	out := []splitCandidate{{splitShape: large.splitShape, splits: 1, slices: slices, fill: large.fill, when: algebra.And(enough, algebra.And(suits, few)), symmetric: true}}
	for _, choice := range lo.largeChoices(large.splitShape, enough, wide) {
		choice.when, choice.symmetric = algebra.And(choice.when, algebra.And(suits, algebra.AtLeastSize(tiles, mostSymmetric))), true
		out = append(out, choice)
	}
	return out
}
