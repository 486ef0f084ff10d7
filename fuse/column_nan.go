package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// A product whose factors are guarded is computed again where it is NaN (passes/guards.go), which no point is as a rule. So such
// a kernel is one of points: each thread has a vector of them, and goes through the columns only where a point is NaN.

// reducesForNaN reports whether a kernel's columns are reduced only at points where a number is NaN.
func (lo *kernel) reducesForNaN() bool {
	return len(lo.k.Cols) > 0 && len(lo.k.Rows) > 0 && len(lo.folds) > 0 && !lo.hasScan() && lo.order == nil && len(lo.parts) == 0 &&
		!slices.ContainsFunc(lo.folds, func(f *ir.Fold) bool { return !form.OnlyForNaN(f.Where, lo.k.Cols) })
}

// nanVariants are the variants of such a kernel.
func (lo columnKernel) nanVariants() []*ir.Variant {
	a := along{sections: lo.passes(true), lane: algebra.Innermost(lo.k.Rows), vector: lo.vector(), halves: true}
	return lo.aligned(a, false, func(vector int) (ir.Schedule, *ir.Expr) {
		return ir.Schedule{Mapping: ir.FlatMapping, Threads: flatThreads, Vector: vector}, nil
	})
}
