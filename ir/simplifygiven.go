package ir

// SimplifyGiven simplifies e where a condition is known to hold: the result equals e at every
// point at which cond is true, and may differ elsewhere. It is used for guarded expressions:
// the branches of a select, and the body of a reduction with a predicate.
func SimplifyGiven(e, cond *Expr, f Facts) *Expr {
	a := newAlgebra(f, e, cond)
	return a.given(a.simplify(cond), e)
}

// given simplifies e where the simplified condition holds. A disjunction helps
// where it leads to one result either way.
func (a *algebra) given(cond, e *Expr) *Expr {
	if cond.Op == OpOr {
		x, y := a.given(cond.Args[0], e), a.given(cond.Args[1], e)
		if Equal(x, y) {
			return x
		}
		return a.simplify(e)
	}
	inner := newAlgebraOver(a.facts, a.scope())
	for _, part := range Operands(OpAnd, cond) {
		inner.assume(part)
	}
	return inner.simplify(e)
}

// assume adds a simplified condition to what is known. Results that were found before stay
// right, but may be weaker than they could be now.
func (a *algebra) assume(c *Expr) {
	a.learnFacts()
	a.granted = append(a.granted, c)
	if p, ok := a.margin(c); ok {
		a.learn(p)
	}
	if (c.Op == OpEq || c.Op == OpNe) && c.Args[0].Type == Index {
		a.assumeEquation(c.Op, a.sub(a.poly(c.Args[0]), a.poly(c.Args[1])))
	}
}

// assumeEquation adds p == 0 or p != 0 to what is known. The latter makes p >= 0 strict.
func (a *algebra) assumeEquation(op Op, p poly) {
	minus := a.neg(p)
	switch {
	case op == OpEq:
		a.learn(p)
		a.learn(minus)
	case a.proveNonneg(p):
		a.learn(a.plus(p, -1))
	case a.proveNonneg(minus):
		a.learn(a.plus(minus, -1))
	}
}

// isGranted reports whether a simplified condition has been assumed.
func (a *algebra) isGranted(c *Expr) bool {
	for _, g := range a.granted {
		if Equal(g, c) {
			return true
		}
	}
	return false
}
