package ir

// eliminateChoice proves slope*v + rest >= 0 for an atom v that equals one of
// two expressions.
func (a *algebra) eliminateChoice(v *Expr, slope, rest poly) bool {
	n := len(v.Args)
	x := a.add(a.mul(slope, a.poly(v.Args[n-2])), rest)
	y := a.add(a.mul(slope, a.poly(v.Args[n-1])), rest)
	if v.Op == OpSelect {
		return a.nonnegGiven(x, v.Args[0]) && a.nonnegGiven(y, a.negation(v.Args[0]))
	}
	up, down := a.signOf(slope)
	if (v.Op == OpMin && down) || (v.Op == OpMax && up) {
		return a.nonneg(x) || a.nonneg(y)
	}
	return a.nonneg(x) && a.nonneg(y)
}

// nonnegGiven proves p >= 0 where a simplified condition holds. What follows
// from the condition stays in an algebra of its own.
func (a *algebra) nonnegGiven(p poly, cond *Expr) bool {
	if a.nonneg(p) {
		return true
	}
	if a.fuel < proofFuel/8 || a.overflow {
		return false
	}
	inner := newAlgebraOver(a.facts, a.scope())
	for _, part := range Operands(OpAnd, cond) {
		inner.assume(part)
	}
	inner.depth, inner.fuel = 1, a.fuel/2
	ok := inner.proveNonneg(inner.poly(a.expr(p)))
	a.fuel -= a.fuel/2 - inner.fuel
	return ok
}
