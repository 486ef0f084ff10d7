package passes

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// readInBands reports whether the sums of a product are so short that tiles of its operands are runs of memory, which blocks
// copy as they lie (ir.Band). Such a product takes no longer than its results take to be written, so that copies of operands would
// save nothing.
func readInBands(v *ir.Value, a, b *ir.Expr, sizes map[string]int64) bool {
	columns := algebra.Product(v.Reduce.Ranges)
	rows, others, batch := productAxes(v, form.AxesIn(v, a), form.AxesIn(v, b))
	if v.Reduce.Where != nil || columns.Op != ir.OpConst || columns.Int < forecast.SplitKPoints || columns.Int > forecast.BandDepth ||
		len(batch) > 0 || max(algebra.PointsAt(rows, sizes), algebra.PointsAt(others, sizes)) < forecast.BandLeast {
		return false
	}
	reduced := algebra.RangeSet(v.Reduce.Ranges)
	return isBand(form.WithoutWidening(a), reduced) && isBand(form.WithoutWidening(b), reduced)
}

// isBand reports whether tiles of a tensor are runs of memory, with lines along the sum, or with all rows in a line.
func isBand(load *ir.Expr, reduced map[*ir.Range]bool) bool {
	last := rowAxis(load.From)
	row := load.From.Axes[last].Extent
	if load.Fill != nil || row.Op != ir.OpConst {
		return false
	}
	for d, at := range load.Args[:last] {
		if at.Op != ir.OpRange || !ir.SameSize(at.Range.Extent, load.From.Axes[d].Extent) {
			return false
		}
	}
	return algebra.DependsOnAny(load.Args[last], reduced) || row.Int <= forecast.BandDepth
}
