package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// A few dozen columns across memory, as classes or channels ahead of pixels: groups of threads that share them read
// vectors well. Where rows are no whole number of vectors, each of these threads reads single elements, two or three of
// them, and the exchange of the groups' sums takes longer than that. If there are rows enough, a thread has all columns of
// its own.

// rowsAlone is how many rows fill the device with a thread each.
const rowsAlone = ir.ReferenceSMs * forecast.ThreadsSM / 2

// alone puts threads that have all columns of a row, where these are few and rows are many, ahead of the last variant of a
// kernel, if that is of single elements that threads share.
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

// aloneColumns is how many columns a thread folds alone where rows fill the device by themselves, and neighbouring threads
// read neighbours of each column; 0 elsewhere. What several passes read should stay in the first-level cache.
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

// readsBesideRows reports whether neighbouring rows read neighbours in memory at each column, or the same.
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
