package algebra

import (
	"github.com/fusec/fusec/ir"
)

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
