package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// masked writes a chain's weight as where(mask, weight, 0) for each condition on positions without which the weight
// is 0. Tiles in which no mask holds are then skipped.
func (c *chainRewrite) masked(s *form.Stream) *ir.Expr {
	weight := s.Factor
	var masks []*ir.Expr
	ir.Walk(weight, func(e *ir.Expr) bool {
		if e.Op == ir.OpSelect && len(ir.Loads(e.Args[0])) == 0 && algebra.DependsOnAny(e.Args[0], algebra.RangeSet(s.Keys)) &&
			!slices.ContainsFunc(masks, func(m *ir.Expr) bool { return ir.Equal(m, e.Args[0]) }) {
			masks = append(masks, e.Args[0])
		}
		return true
	})
	var kept *ir.Expr
	for _, m := range masks {
		if c.vanishes(assumed(weight, m, 2)) {
			kept, weight = ir.Join(ir.OpAnd, kept, m), assumed(weight, m, 1)
		}
	}
	weight = c.logarithms(s, weight)
	if kept == nil {
		return weight
	}
	return ir.Where(kept, weight, ir.Num(weight.Type, 0))
}

// assumed is e with every choice by cond replaced by the given side.
func assumed(e, cond *ir.Expr, side int) *ir.Expr {
	return ir.Rewrite(e, func(e *ir.Expr) *ir.Expr {
		if e.Op == ir.OpSelect && ir.Equal(e.Args[0], cond) {
			return e.Args[side]
		}
		return e
	})
}

// vanishes reports whether an expression is 0, if its other parts are finite.
func (c *chainRewrite) vanishes(e *ir.Expr) bool {
	switch e.Op {
	case ir.OpConst:
		return e.IsConst(0)
	case ir.OpCast, ir.OpNeg:
		return c.vanishes(e.Args[0])
	case ir.OpMul:
		return c.vanishes(e.Args[0]) || c.vanishes(e.Args[1])
	case ir.OpDiv:
		return c.vanishes(e.Args[0])
	case ir.OpSelect:
		return c.vanishes(e.Args[1]) && c.vanishes(e.Args[2])
	case ir.OpExp, ir.OpExp2:
		x := form.Stripped(e.Args[0])
		return form.IsMinusInfinity(x) || x.Op == ir.OpSub && form.IsMinusInfinity(x.Args[0]) && c.seesSome(x.Args[1])
	}
	return false
}

// seesSome reports whether an expression is a maximum under a mask that leaves at least one element of every
// row: the first, the last, or the one at the row's own position.
func (c *chainRewrite) seesSome(e *ir.Expr) bool {
	e = form.Stripped(e)
	if e.Op != ir.OpLoad || e.Fill != nil || e.From.Reduce == nil || e.From.Reduce.Op != ir.Max || e.From.Reduce.Where != nil || len(e.From.Reduce.Ranges) != 1 {
		return false
	}
	v, facts := e.From, c.graph.Facts()
	over := v.Reduce.Ranges[0]
	places := []*ir.Expr{ir.IntConst(0), lastOf(over.Extent)}
	for _, r := range v.Axes {
		if ir.SameSize(r.Extent, over.Extent) {
			places = append(places, r.At())
		}
	}
	facts.Within, facts.Positive = v.Axes, true
	body := c.Expand(v.Body)
	return slices.ContainsFunc(places, func(at *ir.Expr) bool {
		return unmasked(ir.Simplify(ir.Substitute(body, map[*ir.Range]*ir.Expr{over: at}), facts), facts)
	})
}

// unmasked reports whether a logit is never chosen to be -inf.
func unmasked(e *ir.Expr, facts ir.Facts) bool {
	switch {
	case e.Op == ir.OpSelect && form.IsMinusInfinity(e.Args[2]):
		return decided(e.Args[0], facts) == ir.True && unmasked(e.Args[1], facts)
	case e.Op == ir.OpSelect && form.IsMinusInfinity(e.Args[1]):
		return decided(e.Args[0], facts) == ir.False && unmasked(e.Args[2], facts)
	case e.Op == ir.OpCast || e.Op == ir.OpMul || e.Op == ir.OpAdd || e.Op == ir.OpSub:
		return !slices.ContainsFunc(e.Args, func(x *ir.Expr) bool { return !unmasked(x, facts) })
	}
	return !form.IsMinusInfinity(e)
}

// decided says whether a condition always or never holds. Integers that are casts of positions are compared as
// positions.
func decided(cond *ir.Expr, facts ir.Facts) ir.Truth {
	return ir.Decide(ir.Rewrite(cond, func(e *ir.Expr) *ir.Expr {
		switch {
		case e.Op == ir.OpCast && e.Type == ir.I64 && e.Args[0].Type == ir.Index:
			return e.Args[0]
		case e.Op == ir.OpConst && e.Type == ir.I64:
			return ir.IntConst(e.Int)
		case e.Type == ir.I64 && (e.Op == ir.OpAdd || e.Op == ir.OpSub):
			return ir.Apply(e.Op, e.Args...)
		}
		return e
	}), facts)
}
