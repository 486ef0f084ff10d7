package passes

import (
	"math"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// readInBands reports whether blocks copy tiles of both operands of a product as they lie in memory (ir.Band): where sums are so short
// that the product takes no longer than its results take to be written, or so long, with so few results, that it takes as long as
// its operands take to be read. Then copies of operands would save nothing.
func readInBands(v *ir.Value, a, b *ir.Expr, sizes map[string]int64) bool {
	columns := algebra.Product(v.Reduce.Ranges)
	rows, others, batch := productAxes(v, form.AxesIn(v, a), form.AxesIn(v, b))
	if v.Reduce.Where != nil || len(batch) > 0 {
		return false
	}
	m, n := algebra.PointsAt(rows, sizes), algebra.PointsAt(others, sizes)
	reduced := algebra.RangeSet(v.Reduce.Ranges)
	loads := [2]*ir.Expr{form.WithoutWidening(a), form.WithoutWidening(b)}
	if inSlices(v, a, b, sizes) {
		return true
	}
	return columns.Op == ir.OpConst && columns.Int >= forecast.SplitKPoints && columns.Int <= forecast.BandDepth(min(m, n)) &&
		max(m, n) >= forecast.BandLeast && isBand(loads[0], reduced, true, sizes) && isBand(loads[1], reduced, true, sizes)
}

// inSlices reports whether the sum of a product of two 16-bit tensors is so long, at the usual sizes, and has so few tiles, that it
// is cut into slices which pass through memory.
func inSlices(v *ir.Value, a, b *ir.Expr, sizes map[string]int64) bool {
	rows, others, batch := productAxes(v, form.AxesIn(v, a), form.AxesIn(v, b))
	m, n, reduced := algebra.PointsAt(rows, sizes), algebra.PointsAt(others, sizes), algebra.RangeSet(v.Reduce.Ranges)
	tiles := algebra.PointsAt(batch, sizes) * math.Ceil(m/forecast.SlicedTile) * math.Ceil(n/forecast.SlicedTile)
	return len(v.Reduce.Ranges) == 1 && halfLoad(a) && halfLoad(b) && min(m, n) >= forecast.SlicedRows && tiles <= forecast.SlicedTiles &&
		algebra.PointsAt(v.Reduce.Ranges, sizes) >= forecast.SlicedColumns &&
		isBand(form.WithoutWidening(a), reduced, false, sizes) && isBand(form.WithoutWidening(b), reduced, false, sizes)
}

// isBand reports whether tiles of a tensor are runs of memory, with lines along a short sum, or with all rows in a line; or lines are
// whole accesses at the usual sizes.
func isBand(load *ir.Expr, reduced map[*ir.Range]bool, short bool, sizes map[string]int64) bool {
	last := rowAxis(load.From)
	if load.Fill != nil {
		return false
	}
	for d, at := range load.Args[:last] {
		if at.Op != ir.OpRange || !ir.SameSize(at.Range.Extent, load.From.Axes[d].Extent) {
			return false
		}
	}
	row, access := load.From.Axes[last].Extent, int64(forecast.CopyAlign/load.Type.Size())
	if load.Args[last].Op == ir.OpRange && wholeAt(row, access, sizes, ir.Facts{}) {
		return true
	}
	if algebra.DependsOnAny(load.Args[last], reduced) {
		return short && row.Op == ir.OpConst
	}
	return row.Op == ir.OpConst && row.Int <= forecast.BandWidth
}
