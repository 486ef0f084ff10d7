package fuse

import (
	"slices"

	"github.com/fusec/fusec/ir"
)

// Indices reach further than tensors: i * 1000 of a read that is outside for most i, i + 5 at the end
// of a row. A condition that wraps would hold there. So what a kernel compares, divides or takes for
// a number, and makes of ranges and sizes alone, has to fit the type that its indices have. Sums and
// products of a place itself may wrap, which is inside where its condition holds.

// reach lists the largest magnitudes of such indices, over symbols.
func (lo *lowering) reach() []*ir.Expr {
	var out []*ir.Expr
	seen := map[*ir.Expr]bool{}
	for _, root := range lo.roots() {
		facts := lo.inside(root.level)
		ir.Walk(*root.expr, func(e *ir.Expr) bool {
			if !seen[e] && needsWhole(e) {
				for _, a := range e.Args {
					out = append(out, reachOf(a, facts)...)
				}
			}
			seen[e] = true
			return true
		})
	}
	return out
}

// needsWhole reports whether an operation takes its indices for what they are, and not for what is
// left of them in some bits.
func needsWhole(e *ir.Expr) bool {
	if len(e.Args) == 0 || e.Args[0].Type != ir.Index {
		return false
	}
	switch e.Op {
	case ir.OpFloorDiv, ir.OpMod, ir.OpMin, ir.OpMax, ir.OpCast:
		return true
	}
	return e.Op.Info().Result == ir.ToBool
}

// reachOf is the magnitudes of an index and of what it is computed from; elements of tensors in it are
// left to the kernel's text.
func reachOf(e *ir.Expr, facts ir.Facts) []*ir.Expr {
	if e.Type != ir.Index {
		return nil
	}
	if ir.OfData(e) {
		var out []*ir.Expr
		for _, a := range e.Args {
			out = append(out, reachOf(a, facts)...)
		}
		return out
	}
	if e.Op == ir.OpRange {
		return nil // whose extents are listed
	}
	low, high := ir.Bounds(e, facts)
	if low == nil || high == nil {
		return []*ir.Expr{magnitude(e)}
	}
	return []*ir.Expr{high, ir.Simplify(ir.Apply(ir.OpNeg, low), facts)}
}

// magnitude bounds an index by what its parts amount to.
func magnitude(e *ir.Expr) *ir.Expr {
	switch e.Op {
	case ir.OpConst:
		return ir.IntConst(max(e.Int, -e.Int))
	case ir.OpRange:
		return e.Range.Extent
	case ir.OpSym:
		return e
	case ir.OpMul:
		return ir.Apply(ir.OpMul, magnitude(e.Args[0]), magnitude(e.Args[1]))
	case ir.OpFloorDiv:
		return magnitude(e.Args[0])
	}
	out := ir.IntConst(0)
	for _, a := range e.Args {
		if a.Type == ir.Index {
			out = ir.Apply(ir.OpAdd, out, magnitude(a))
		}
	}
	return out
}

// below reports whether one of the sizes is at least as large as a magnitude.
func (lo *lowering) below(magnitude *ir.Expr, sizes []*ir.Expr) bool {
	facts := lo.positive()
	if !ir.Has(magnitude, ir.OpSym) {
		return ir.ProveLess(magnitude, ir.IntConst(largest32), facts)
	}
	return slices.ContainsFunc(sizes, func(size *ir.Expr) bool {
		return ir.ProveNonNegative(ir.Apply(ir.OpSub, size, magnitude), facts)
	})
}
