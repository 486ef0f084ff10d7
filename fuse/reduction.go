package fuse

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// mapping chooses how a kernel with columns is spread over threads: along the
// range in which its reads are contiguous. Each read is charged the share of a
// 128-byte line that one element of it costs.
func (lo *kernel) mapping() ir.Mapping {
	if len(lo.k.Rows) == 0 {
		return ir.RowMapping
	}
	if n := algebra.Product(lo.k.Cols); n.Op == ir.OpConst && (n.Int <= threadColumns || n.Int <= smallColumns && len(lo.k.Cols) > 1) {
		return ir.FlatMapping // a loop in each thread, or windows, whose neighbours share lines of memory
	}
	if lo.loopsWindow() {
		return ir.FlatMapping
	}
	row, col := 0.0, 0.0
	for _, root := range lo.roots() {
		ir.Walk(*root.expr, func(e *ir.Expr) bool {
			if e.Op == ir.OpRead {
				row += algebra.LineShare(e.Args[0], algebra.Innermost(lo.k.Rows))
				col += algebra.LineShare(e.Args[0], algebra.Innermost(lo.k.Cols))
			}
			return true
		})
	}
	if row < col {
		return ir.FlatMapping
	}
	return ir.RowMapping
}

// reductionVariants makes the variants of the mappings of reductions; cached is what some of them read that the
// L2 cache holds.
func (lo *kernel) reductionVariants() (out []*ir.Variant, cached []*ir.Local) {
	if len(lo.k.Cols) == 0 || lo.mapping() == ir.FlatMapping {
		return columnKernel{lo}.flatVariants(), nil
	}
	return rowKernel{lo}.rowVariants()
}
