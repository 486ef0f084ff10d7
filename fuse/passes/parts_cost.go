package passes

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// Whether products of matrices in parts take less time than by multiply-adds, counted in multiplications, each of which is 0.0135 ps faster:
// multiply-adds take 0.039 ps each where there are many, and parts 0.0215 (4096 cubed: 2.66 and 1.48 ms without the layout; H200), and a tenth
// of the first is left as a margin. Parts take longer for what does not shrink with the length of a sum. Storing a result takes 1.3 ps on an
// H100, during which parts may have nothing to multiply, while multiply-adds go on for as long; laying a number out takes 4 to 10 ps, as was measured
// (4096 cubed; 64 products of 1024x512 by 512x1024, which are even); and two more launches 5 us. So sums of 128 terms are worth it where results are many, sums of
// 64 are not, and sums of any length are not where each number has few partners, as in batches of products of 512x512.
const (
	partStored   = 96      // of each result
	partLaid     = 384     // of each number that is laid out
	partLaunches = 3 << 27 // of two launches
)

// partCosts is what multiplying in parts takes beside the multiplications, and what these save.
func partCosts(v *ir.Value, a, b *ir.Expr) (cost, saved *ir.Expr) {
	times := func(x, y *ir.Expr) *ir.Expr { return ir.Apply(ir.OpMul, x, y) }
	numbers := ir.Apply(ir.OpAdd, numbersOf(v, a), numbersOf(v, b))
	cost = ir.Apply(ir.OpAdd, times(numbers, ir.IntConst(partLaid)), ir.IntConst(partLaunches))
	saved = times(algebra.Product(v.Axes), ir.Apply(ir.OpSub, algebra.Product(v.Reduce.Ranges), ir.IntConst(partStored)))
	return ir.Simplify(cost, ir.Facts{}), ir.Simplify(saved, ir.Facts{})
}

// numbersOf is how many numbers a side of a product has.
func numbersOf(v *ir.Value, side *ir.Expr) *ir.Expr {
	free, own := ir.FreeRanges(side), []*ir.Range(nil)
	for _, r := range algebra.AllRanges(v) {
		if free[r] {
			own = append(own, r)
		}
	}
	return algebra.Product(own)
}
