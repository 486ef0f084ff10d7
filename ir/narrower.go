package ir

// Narrower reports whether given implies condition; nil is a condition that always holds. It says so only
// if every part of condition is a part of given, or is a bound that a bound in given implies.
func Narrower(given, condition *Expr) bool {
	if condition == nil {
		return true
	}
	if given == nil {
		return false
	}
	return everyConjunct(condition, func(c *Expr) bool {
		return !everyConjunct(given, func(part *Expr) bool { return !Equal(part, c) && !within(part, c) })
	})
}

// within reports whether two conditions bound one size from the same side, and the first implies the
// second.
func within(a, b *Expr) bool {
	if a.Op != OpLe || b.Op != OpLe {
		return false
	}
	if a.Args[0].Op == OpConst && b.Args[0].Op == OpConst { // from below
		return a.Args[0].Int >= b.Args[0].Int && Equal(a.Args[1], b.Args[1])
	}
	return a.Args[1].Op == OpConst && b.Args[1].Op == OpConst && a.Args[1].Int <= b.Args[1].Int && Equal(a.Args[0], b.Args[0])
}

// Conjuncts flattens a conjunction.
func Conjuncts(e *Expr) (out []*Expr) {
	everyConjunct(e, func(c *Expr) bool {
		out = append(out, c)
		return true
	})
	return out
}

// everyConjunct reports whether f is true for all parts of a conjunction. It stops at the first
// for which it is not.
func everyConjunct(e *Expr, f func(*Expr) bool) bool {
	if e.Op != OpAnd && (e.Op != OpBitAnd || e.Type != Bool) {
		return f(e)
	}
	return everyConjunct(e.Args[0], f) && everyConjunct(e.Args[1], f)
}
