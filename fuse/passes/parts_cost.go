package passes

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// Whether products of matrices take less time in parts than by multiply-adds. All is counted in multiplications, each of which is 0.0135 ps
// faster in parts: many take 0.039 ps each by multiply-adds and 0.0215 in parts (4096 cubed on an H200: 2.66 ms, and 1.48 without the layout), and
// a tenth of the first is a margin. Beside them parts take:
//
//   - 1.3 ps to store a result (4 bytes on an H100), since the next tile may have to wait for it;
//   - 3.5 ps to lay a number out;
//   - 1.8 us for two more launches, which begin before the kernels in front of them end.
//
// These are the figures with which the faster way is chosen for all that were timed both ways (H100, ms in parts and by multiply-adds): 1024x256 by
// 256x2048 0.0315, 0.0361; 32 of 512x1024 by 1024x2048 1.412, 1.480; 64 of 1024x512 by 512x1024 1.392, 1.517; 1280 cubed 0.094, 0.124; 16384x128 by
// 128x32768 1.906, 3.620, and of 192 terms 2.533, 5.024; 1024 of 512x1024 by 1024x512 27.6, 12.1, and of 256 terms 4.93, 3.28.
//
// So sums of 128 terms are worth it where results are many and sums of 64 are not, and no sums are where each number has few partners, as in
// batches of products of 512x512.
const (
	partStored   = 96      // of each result
	partLaid     = 256     // of each number that is laid out
	partLaunches = 1 << 27 // of two launches
)

// partCosts is what multiplying in parts takes beside the multiplications, and what these save.
func partCosts(v *ir.Value, a, b *ir.Expr) (cost, saved *ir.Expr) {
	times := func(x, y *ir.Expr) *ir.Expr { return ir.Apply(ir.OpMul, x, y) }
	numbers := ir.Apply(ir.OpAdd, numbersOf(v, a), numbersOf(v, b))
	cost = ir.Apply(ir.OpAdd, times(numbers, ir.IntConst(partLaid)), ir.IntConst(partLaunches))
	saved = times(algebra.Product(v.Axes), ir.Apply(ir.OpSub, algebra.Product(v.Reduce.Ranges), ir.IntConst(partStored)))
	return ir.Simplify(cost, ir.Facts{}), ir.Simplify(saved, ir.Facts{})
}

// partsPay reports whether parts save more than they take.
func partsPay(cost, saved *ir.Expr, sizes map[string]int64) bool {
	return algebra.Estimate(saved, sizes) >= algebra.Estimate(cost, sizes)
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
