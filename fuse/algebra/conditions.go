package algebra

import (
	"slices"

	"github.com/fusec/fusec/ir"
)

// Includes reports whether every part of a condition is one of another's, or a lower bound
// that one of another's is above: then that implies it.
func Includes(e, condition *ir.Expr) bool {
	parts := Conjuncts(OrTrue(e))
	return condition == nil || !slices.ContainsFunc(Conjuncts(condition), func(c *ir.Expr) bool {
		return !slices.ContainsFunc(parts, func(part *ir.Expr) bool { return ir.Equal(part, c) || above(part, c) })
	})
}

// above reports whether two conditions are lower bounds of one size, the first no lower one.
func above(a, b *ir.Expr) bool {
	bound := func(e *ir.Expr) bool { return e.Op == ir.OpLe && e.Args[0].Op == ir.OpConst }
	return bound(a) && bound(b) && a.Args[0].Int >= b.Args[0].Int && ir.Equal(a.Args[1], b.Args[1])
}

// OrTrue is a condition, in which nil stands for true.
func OrTrue(e *ir.Expr) *ir.Expr {
	if e == nil {
		return ir.IntNum(ir.Bool, 1)
	}
	return e
}

// And joins two conditions, either of which may be nil for true.
func And(a, b *ir.Expr) *ir.Expr {
	return ir.Join(ir.OpAnd, orNil(a), orNil(b))
}

// orNil is a condition, or nil where it always holds.
func orNil(e *ir.Expr) *ir.Expr {
	if e != nil && always(e) {
		return nil
	}
	return e
}

// always reports whether a condition always holds. A conjunction does where its parts do; most have a
// first part that does not, which saves deciding the others.
func always(e *ir.Expr) bool {
	if e.Op == ir.OpAnd {
		return always(e.Args[0]) && always(e.Args[1])
	}
	return ir.Decide(e, ir.Facts{}) == ir.True
}

// WithoutTerm undoes And(term, rest).
func WithoutTerm(e, term *ir.Expr) *ir.Expr {
	switch {
	case e == nil || e == term:
		return nil
	case e.Op == ir.OpAnd && e.Args[0] == term:
		return e.Args[1]
	}
	return e
}

// Conjuncts flattens a conjunction.
func Conjuncts(e *ir.Expr) []*ir.Expr {
	if e.Op != ir.OpAnd && (e.Op != ir.OpBitAnd || e.Type != ir.Bool) {
		return []*ir.Expr{e}
	}
	return append(Conjuncts(e.Args[0]), Conjuncts(e.Args[1])...)
}

// Both is And for conditions that may be the same one.
func Both(a, b *ir.Expr) *ir.Expr {
	if a == b {
		return a
	}
	return And(a, b)
}
