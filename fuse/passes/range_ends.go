package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// endRanges shortens reduced ranges that the predicate bounds: sum[i: 8 where i < 7] is sum[i: 7], and sum[i: 96 where i >= 32] x[i] is
// sum[i: 64] x[i + 32]. Adaptive pooling is written with ranges as long as the longest possible window, and with
// predicates for the length of each. If all windows are equally long, they become plain windows. Bounds that depend on a row
// stay predicates. It reports whether it has changed the value.
func endRanges(g *ir.Graph, v *ir.Value, facts ir.Facts) bool {
	if v.Reduce == nil || v.Reduce.Where == nil || v.Reduce.Rank != nil || v.Reduce.Op.IsArg() {
		return false // the result of an argmax is a place among all points of its ranges
	}
	facts.Within = v.Axes // only the axes: a bound has to be a size
	var left *ir.Expr
	at, ranges := map[*ir.Range]*ir.Expr{}, slices.Clone(v.Reduce.Ranges)
	for _, c := range ir.Conjuncts(v.Reduce.Where) {
		b := boundOf(c)
		i := slices.Index(ranges, b.of)
		if i < 0 || !b.exact {
			left = algebra.And(left, c)
		}
		if i < 0 || b.size.IsConst(0) {
			continue
		}
		extent, first := b.cut(facts)
		r := g.NewRange(b.of.Name, extent)
		ranges[i], at[b.of] = r, ir.Apply(ir.OpAdd, r.At(), first)
	}
	if len(at) == 0 {
		return false
	}
	r := *v.Reduce
	r.Ranges, r.Where = ranges, left
	v.Reduce = &r
	v.MapExprs(func(e *ir.Expr) *ir.Expr { return ir.Substitute(e, at) })
	return true
}

// A rangeBound is a condition that a range has to be below a size, or from one on.
type rangeBound struct {
	of    *ir.Range // nil for other conditions
	size  *ir.Expr
	from  bool
	exact bool // whether the condition says no more
}

// alignedStart is what a number is rounded down to that a range begins at, so that vectors of elements stay whole.
const alignedStart = 16

// boundOf reads a condition as the index algebra writes it.
func boundOf(cond *ir.Expr) rangeBound {
	if cond.Op != ir.OpLt && cond.Op != ir.OpLe {
		return rangeBound{}
	}
	b := rangeBound{of: cond.Args[0].Range, size: cond.Args[1], exact: true}
	if cond.Args[0].Op != ir.OpRange {
		b.of, b.size, b.from = cond.Args[1].Range, cond.Args[0], true
	}
	if b.of == nil || len(ir.FreeRanges(b.size)) > 0 || ir.Has(b.size, ir.OpLoad) {
		return rangeBound{}
	}
	if b.from == (cond.Op == ir.OpLt) {
		b.size = ir.Apply(ir.OpAdd, b.size, ir.IntConst(1)) // i > n is i >= n + 1, i <= n is i < n + 1
	}
	if b.from && b.size.Op == ir.OpConst {
		n := max(b.size.Int, 0)
		b.size, b.exact = ir.IntConst(n-n%alignedStart), n%alignedStart == 0
	}
	return b
}

// cut is how many points of the range are inside the bound, and the first of them.
func (b rangeBound) cut(facts ir.Facts) (extent, first *ir.Expr) {
	at := ir.Simplify(ir.Apply(ir.OpMax, ir.Apply(ir.OpMin, b.size, b.of.Extent), ir.IntConst(0)), facts) // the bound, brought into the range
	if b.from {
		return ir.Simplify(ir.Apply(ir.OpSub, b.of.Extent, at), facts), at
	}
	return at, ir.IntConst(0)
}
