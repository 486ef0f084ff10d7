package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/ir"
)

// Indices reach further than tensors: i * 1000 of a read that is outside for most i, i + 5 at the end
// of a row. A condition that wraps would hold there. So what a kernel compares, divides or takes for
// a number, and makes of ranges and sizes alone, has to fit the type that its indices have. Sums and
// products of a place itself may wrap, which is inside where its condition holds.

// reach lists the largest magnitudes of such indices, over symbols.
func (lo *kernel) reach() []*ir.Expr {
	var out []*ir.Expr
	seen := map[*ir.Expr]bool{}
	for _, root := range lo.roots() {
		facts := lo.inside(root.level)
		ir.Walk(*root.expr, func(e *ir.Expr) bool {
			if !seen[e] && algebra.NeedsWhole(e) {
				for _, a := range e.Args {
					out = append(out, algebra.ReachOf(a, facts)...)
				}
			}
			seen[e] = true
			return true
		})
	}
	return out
}

// below reports whether one of the sizes is at least as large as a magnitude.
func (lo *kernel) below(magnitude *ir.Expr, sizes []*ir.Expr) bool {
	facts := lo.positive()
	if !ir.Has(magnitude, ir.OpSym) {
		return ir.ProveLess(magnitude, ir.IntConst(forecast.Largest32), facts)
	}
	return slices.ContainsFunc(sizes, func(size *ir.Expr) bool {
		return ir.ProveNonNegative(ir.Apply(ir.OpSub, size, magnitude), facts)
	})
}
