package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// endRanges shortens reduced ranges that the predicate bounds: sum[i: 8 where i < 7] is sum[i: 7]. Adaptive pooling is
// written with ranges as long as the longest possible window, and with predicates for the length of each. If all
// windows are equally long, they become plain windows. Bounds that depend on a row stay predicates. It reports whether
// it has changed the value.
func endRanges(g *ir.Graph, v *ir.Value, facts ir.Facts) bool {
	if v.Reduce == nil || v.Reduce.Where == nil || v.Reduce.Rank != nil || v.Reduce.Op.IsArg() {
		return false // the result of an argmax is a place among all points of its ranges
	}
	facts.Within = v.Axes // only the axes: a bound has to be a size
	var left *ir.Expr
	shorter, ranges := map[*ir.Range]*ir.Expr{}, slices.Clone(v.Reduce.Ranges)
	for _, c := range ir.Conjuncts(v.Reduce.Where) {
		if i := endedBy(c, ranges, facts); i >= 0 {
			r := g.NewRange(ranges[i].Name, c.Args[1])
			shorter[ranges[i]], ranges[i] = r.At(), r
		} else {
			left = algebra.And(left, c)
		}
	}
	if len(shorter) == 0 {
		return false
	}
	r := *v.Reduce
	r.Ranges, r.Where = ranges, left
	v.Reduce = &r
	v.MapExprs(func(e *ir.Expr) *ir.Expr { return ir.Substitute(e, shorter) })
	return true
}

// endedBy is the position of the range that a condition bounds by a size; -1 if it bounds none.
func endedBy(cond *ir.Expr, ranges []*ir.Range, facts ir.Facts) int {
	if cond.Op != ir.OpLt || cond.Args[0].Op != ir.OpRange || len(ir.FreeRanges(cond.Args[1])) > 0 || ir.Has(cond.Args[1], ir.OpLoad) {
		return -1
	}
	i, end := slices.Index(ranges, cond.Args[0].Range), cond.Args[1]
	if i < 0 || ir.Decide(ir.Apply(ir.OpLe, end, ranges[i].Extent), facts) != ir.True ||
		ir.Decide(ir.Apply(ir.OpGe, end, ir.IntConst(0)), facts) != ir.True {
		return -1
	}
	return i
}
