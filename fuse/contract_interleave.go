package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// A transposed convolution whose windows do not overlap is one product: each pixel gives a block of results, and the
// places in the block are rows of the weights. In memory the results of neighbouring rows alternate: at stride 2,
// those of one row of the weights are two elements apart, and those of the next row are in the gaps. Stores row by
// row would take twice as many accesses, each using half of a sector. So the threads of such rows exchange their
// results first, and each stores a vector of neighbours.

// mostBetween is the most rows whose results are exchanged: a warp has so many at the same columns.
const mostBetween = 4

// liesBetween reports whether the innermost of rows is a few neighbours in memory that fill the gap between
// neighbours along lines.
func liesBetween(offset *ir.Expr, rows, lines []*ir.Range) bool {
	inner := algebra.Innermost(rows).Extent
	if inner.Op != ir.OpConst || inner.Int < 2 || inner.Int >= operandVector {
		return false
	}
	along, ok := ir.Stride(offset, algebra.Innermost(lines), ir.Facts{Positive: true})
	return ok && algebra.UnitStrideOf(offset, algebra.Innermost(rows)) && ir.Equal(along, inner)
}

// interleave marks the stores of a variant if the results of neighbouring rows of M alternate in memory along N. It
// returns what vectors of such results require of the sizes, together with what is required already; nil if some store
// is of another form.
func (lo warpgroupKernel) interleave(v *ir.Variant, c *ir.Contract, vector int, known *algebra.Needs) *algebra.Needs {
	rows, lane := algebra.Innermost(c.M), algebra.Innermost(c.N)
	between := rows.Extent
	if between.Op != ir.OpConst || between.Int != 2 && between.Int != mostBetween {
		return nil
	}
	needs := algebra.NewNeeds(known.Facts, true)
	needs.Add(known)
	whole := func(f ir.Facts) bool { return ir.Multiple(lane.Extent, int64(vector), f) }
	if !needs.Try(int64(vector), []*ir.Expr{lane.Extent}, whole) {
		return nil
	}
	stores := slices.Concat(v.Sections[0].Stores, v.Sections[1].Stores)
	for _, st := range stores {
		if st.Guard != nil || !lo.vectorsBetween(st.Offset, rows, lane, vector, needs) {
			return nil
		}
	}
	for _, st := range stores {
		st.Wide, st.Between = true, int(between.Int)
	}
	return needs
}

// vectorsBetween reports whether the results of some rows, alternating along a lane, are neighbours in memory and
// begin at a multiple of a vector.
func (lo warpgroupKernel) vectorsBetween(offset *ir.Expr, rows, lane *ir.Range, vector int, needs *algebra.Needs) bool {
	if !liesBetween(offset, []*ir.Range{rows}, []*ir.Range{lane}) || lo.variesThroughLocals(offset, lane) {
		return false
	}
	start := ir.AtZero(offset, rows, lane)
	return needs.Try(int64(vector), []*ir.Expr{lane.Extent}, func(f ir.Facts) bool { return ir.Multiple(start, int64(vector), f) })
}
