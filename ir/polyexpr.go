package ir

// expr writes a polynomial as an expression: terms in order, what is subtracted
// after what is added where the first term would be negative.
func (a *algebra) expr(p poly) *Expr {
	outer := a.overflow
	a.overflow = false
	folded := a.foldMods(p)
	if !a.overflow {
		p = folded
	}
	a.overflow = outer
	return a.sum(p)
}

func (a *algebra) sum(p poly) *Expr {
	if len(p) == 0 {
		return IntConst(0)
	}
	lead := leadTerm(p)
	var out *Expr
	if p[lead].coef > 0 {
		out = a.product(p[lead].coef, p[lead].mono)
	} else {
		out = a.negative(p[lead])
	}
	for i, t := range p {
		switch {
		case i == lead:
		case t.coef > 0:
			out = Apply(OpAdd, out, a.product(t.coef, t.mono))
		default:
			out = Apply(OpSub, out, a.product(-t.coef, t.mono))
		}
	}
	return out
}

// leadTerm is the first term with a positive coefficient, else the first.
func leadTerm(p poly) int {
	for i, t := range p {
		if t.coef > 0 {
			return i
		}
	}
	return 0
}

// negative writes a term with a negative coefficient that stands first.
func (a *algebra) negative(t term) *Expr {
	if len(t.mono) == 0 || t.coef != -1 {
		return a.product(t.coef, t.mono)
	}
	return Apply(OpNeg, a.product(1, t.mono))
}

// product writes coef*mono with the coefficient last: i*N*4.
func (a *algebra) product(coef int64, m mono) *Expr {
	var out *Expr
	for _, atom := range m {
		if sym, n, ok := a.reducedSymbol(atom); ok && coef%n == 0 {
			atom, coef = sym, coef/n
		}
		if out == nil {
			out = atom
		} else {
			out = Apply(OpMul, out, atom)
		}
	}
	switch {
	case out == nil:
		return IntConst(coef)
	case coef == 1:
		return out
	}
	return Apply(OpMul, out, IntConst(coef))
}
