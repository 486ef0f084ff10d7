package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Some kernels reduce a few dozen columns that do not lie along memory, such as classes or channels in front of pixels.
// Groups of threads share these columns where they read vectors of rows. Where rows are no whole number of vectors, each
// thread of a group reads only two or three single elements, and the exchange of the groups' sums takes longer than the
// reads. If there are enough rows, a thread then takes all columns of its row.

// rowsAlone is the number of rows that fill the device if each has one thread.
const rowsAlone = ir.ReferenceSMs * forecast.ThreadsSM / 2

// alone inserts a variant in which a thread has all columns of a row, where columns are few and rows are many. It stands
// before the last variant, if that one has threads share columns of single elements.
func (lo columnKernel) alone(flat []*ir.Variant, sections []*ir.Section, lane *ir.Range) []*ir.Variant {
	n, last := algebra.Product(lo.k.Cols), len(flat)-1
	if most := lo.aloneColumns(); n.Op != ir.OpConst && float64(most) >= algebra.PointsAt(lo.k.Cols, lo.sizes) && flat[last].Schedule.ColThreads > 0 {
		when := algebra.And(algebra.AtMostSize(n, most), algebra.AtLeastSize(algebra.Product(lo.k.Rows), rowsAlone))
		return slices.Insert(slices.Clone(flat), last, lo.aligned(along{sections: sections, lane: lane, vector: 1}, false, func(int) (ir.Schedule, *ir.Expr) {
			return ir.Schedule{Mapping: ir.FlatMapping, Threads: flatThreads, Vector: 1, Unroll: aloneUnroll}, when
		})...)
	}
	return flat
}

// aloneColumns is the most columns that a thread folds alone: 0 unless neighbouring threads read neighbours in memory.
// If several passes read the columns, these have to stay in the L1 cache.
func (lo columnKernel) aloneColumns() int64 {
	if len(lo.k.Rows) == 0 || lo.hasScan() || lo.paired || lo.r.stream != nil || slices.ContainsFunc(lo.r.members, form.Crosses) ||
		algebra.PointsAt(lo.k.Rows, lo.sizes) < rowsAlone || !lo.readsBesideRows() {
		return 0
	}
	if passesOf(lo.passes(true)) > 1 {
		return cachedColumns
	}
	return smallColumns
}

// readsBesideRows reports whether at each column neighbouring rows read neighbours in memory, or the same element.
func (lo columnKernel) readsBesideRows() bool {
	lane, beside := algebra.Innermost(lo.k.Rows), true
	for _, root := range lo.roots() {
		ir.Walk(*root.expr, func(e *ir.Expr) bool {
			if e.Op == ir.OpRead && slices.ContainsFunc(lo.k.Cols, func(c *ir.Range) bool { return ir.DependsOn(e, c) }) {
				stride, ok := ir.Stride(e.Args[0], lane, ir.Facts{Positive: true})
				beside = beside && ok && (stride.IsConst(0) || stride.IsConst(1))
			}
			return beside
		})
	}
	return beside
}
