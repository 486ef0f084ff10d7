package fuse

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// mapping chooses whether the threads of a kernel with columns are neighbours along the columns
// or along the rows: whichever range its reads are contiguous in. The cost of a read is the
// part of a 128-byte line that each of its elements takes.
func (lo *kernel) mapping() ir.Mapping {
	if len(lo.k.Rows) == 0 {
		return ir.RowMapping
	}
	n := algebra.Product(lo.k.Cols)
	few := n.Op == ir.OpConst && (n.Int <= threadColumns || n.Int <= smallColumns && len(lo.k.Cols) > 1)
	if few && !(n.Int > threadRow && lo.readsRows(n.Int)) && !lo.readsApart(n.Int) {
		return ir.FlatMapping // each thread loops over its columns, or its window; neighbouring windows share lines
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

// threadRow is the most columns of a contiguous row that one thread reads alone. With longer rows, each read of
// neighbouring threads touches many lines: rows of 8 to 64 columns took 2 to 14 times as long, as measured.
const threadRow = 3

// readsApart reports whether rows are windows side by side, of so many columns that they are too large for one thread.
// In the flat mapping, groups of threads would read a few bytes of many lines, which their neighbours read too: means
// of 8x8 in f32 took 2.7 times as long as a copy, as measured. In the row mapping the threads of a row read vectors.
func (lo *kernel) readsApart(columns int64) bool {
	return columns*int64(lo.smallest()) > adjoinWindow && columns > threadColumns && !lo.columnKernel().overlaps(overlapLeast)
}

// readsRows reports whether everything that depends on a row is contiguous in memory: so many columns side by side, and
// apart from the columns of other rows.
func (lo *kernel) readsRows(columns int64) bool {
	row, col, rows := algebra.Innermost(lo.k.Rows), algebra.Innermost(lo.k.Cols), false
	for _, root := range lo.roots() {
		apart := true
		ir.Walk(*root.expr, func(e *ir.Expr) bool {
			if e.Op != ir.OpRead {
				return apart
			}
			step, ok := ir.Stride(e.Args[0], row, ir.Facts{Positive: true})
			if ok && step.IsConst(0) {
				return apart
			}
			along := algebra.UnitStrideOf(e.Args[0], col)
			rows = rows || along
			apart = apart && ok && (along && (step.Op != ir.OpConst || step.Int >= columns) || !ir.DependsOn(e.Args[0], col))
			return apart
		})
		if !apart {
			return false
		}
	}
	return rows
}

// reductionVariants makes the variants of the mappings of reductions; cached is the reads that some of them
// find in the L2 cache.
func (lo *kernel) reductionVariants() (out []*ir.Variant, cached []*ir.Local) {
	if len(lo.k.Cols) == 0 || lo.mapping() == ir.FlatMapping {
		return lo.columnKernel().flatVariants(), nil
	}
	return rowKernel{lo}.rowVariants()
}

// columnKernel is the kernel as one whose threads own neighbouring rows.
func (lo *kernel) columnKernel() columnKernel { return columnKernel{lo, lo.loopsWindow()} }
