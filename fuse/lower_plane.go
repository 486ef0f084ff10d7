package fuse

import (
	"slices"

	"github.com/fusec/fusec/ir"
)

// planeWaste is how many points tiles may have along a range for each point of the range, before the range is joined with the
// one around it.
const planeWaste = 1.25

// joinPlane joins the two ranges of a plane that tiles are to turn, where rows of the plane fill tiles badly: those of 7 or 14
// pixels that a convolution with a stride reads of planes which lie one behind the other. What is stored runs through the
// plane anyway; what is read starts anew with each row of it, so places are divided by the length of a row.
func (lo *lowering) joinPlane() {
	n := len(lo.k.Rows)
	if n < 3 || len(lo.k.Cols) > 0 || len(lo.parts) > 0 || len(lo.k.Accumulated) > 0 || lo.paired {
		return
	}
	outer, inner, lane := lo.k.Rows[n-3], lo.k.Rows[n-2], lo.k.Rows[n-1]
	if inner.Extent.Op != ir.OpConst || !wastesTiles(inner.Extent.Int) || !lo.turnsAlong(inner, lane) {
		return
	}
	stored := map[*ir.Expr]bool{}
	for _, s := range lo.stores {
		stored[s.Offset] = true
	}
	t := lo.join(outer, inner, func(e *ir.Expr) bool { return !stored[e] })
	if t == nil {
		return
	}
	lo.plane = &plane{t, inner.Extent}
	lo.k.Rows = append(slices.Clone(lo.k.Rows[:n-3]), t, lane)
}

// wastesTiles reports whether tiles along a range of so many points have many more.
func wastesTiles(points int64) bool {
	return float64((points+tileSide-1)/tileSide*tileSide) > planeWaste*float64(points)
}

// turnsAlong reports whether the kernel reads a tensor in which memory runs along a range, in small steps, and the lanes lie
// further apart than those that one run of memory holds (see column_interleaved.go).
func (lo *lowering) turnsAlong(inner, lane *ir.Range) bool {
	column := columnKernel{kernel: lo.kernel}
	for _, root := range lo.roots() {
		found := false
		ir.Walk(*root.expr, func(e *ir.Expr) bool {
			if e.Op == ir.OpRead && ir.DependsOn(e.Args[0], lane) && !ir.Has(e.Args[0], ir.OpRead, ir.OpLocal) {
				along, _ := column.walkedRow(e)
				apart, ok := ir.Stride(e.Args[0], lane, lo.positive())
				found = found || along == inner && ok && (apart.Op != ir.OpConst || apart.Int > interleavedMost)
			}
			return !found
		})
		if found {
			return true
		}
	}
	return false
}
