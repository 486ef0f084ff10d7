package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// A transposed convolution whose windows do not overlap is one product: each pixel gives a block of results, and the
// places in the block are rows of the weights. In memory the results of a line of pixels lie between each other:
// at stride 2, those of one row of the weights are two apart, and those of the next row are in the gaps. Stored row
// by row that takes twice as many accesses, of half a sector each. So the threads of such rows exchange their results
// first, and each stores a vector of neighbours.

// mostBetween is the most rows whose results are exchanged: those that a warp has at the same columns.
const mostBetween = 4

// liesBetween reports whether the innermost of some rows are a few neighbours in memory, as many as lie between
// neighbours along some lines.
func liesBetween(offset *ir.Expr, rows, lines []*ir.Range) bool {
	inner := algebra.Innermost(rows).Extent
	if inner.Op != ir.OpConst || inner.Int < 2 || inner.Int >= operandVector {
		return false
	}
	along, ok := ir.Stride(offset, algebra.Innermost(lines), ir.Facts{Positive: true})
	return ok && algebra.UnitStrideOf(offset, algebra.Innermost(rows)) && ir.Equal(along, inner)
}

// interleave marks the stores of a variant whose results of neighbouring rows of M lie between each other along N, and
// returns what vectors of them need beside what is known to be needed; nil where some store is no such one.
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

// vectorsBetween reports whether the results of some rows, taken in turns along a lane, are neighbours in memory that
// begin at whole vectors.
func (lo warpgroupKernel) vectorsBetween(offset *ir.Expr, rows, lane *ir.Range, vector int, needs *algebra.Needs) bool {
	if !liesBetween(offset, []*ir.Range{rows}, []*ir.Range{lane}) || lo.variesThroughLocals(offset, lane) {
		return false
	}
	start := ir.AtZero(offset, rows, lane)
	return needs.Try(int64(vector), []*ir.Expr{lane.Extent}, func(f ir.Facts) bool { return ir.Multiple(start, int64(vector), f) })
}
