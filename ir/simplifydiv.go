package ir

import (
	"cmp"
	"slices"
)

// floorDiv is p/d, rounded down. Where d may be 0 or negative it is an atom.
func (a *algebra) floorDiv(p, d poly) poly {
	c, isConst := d.constant()
	switch {
	case len(p) == 0 || (isConst && c == 0):
		return nil
	case isConst && c < 0:
		return a.div(a.neg(p), a.neg(d))
	case !a.positive(d):
		return a.atom(Apply(OpFloorDiv, a.expr(p), a.expr(d)))
	}
	return a.div(p, d)
}

// mod is the remainder that goes with floorDiv.
func (a *algebra) mod(p, d poly) poly {
	c, isConst := d.constant()
	switch {
	case len(p) == 0 || (isConst && c == 0):
		return nil
	case isConst && c < 0:
		return a.neg(a.mod(a.neg(p), a.neg(d)))
	case !a.positive(d):
		return a.atom(Apply(OpMod, a.expr(p), a.expr(d)))
	}
	return a.sub(p, a.mul(d, a.div(p, d)))
}

// div is p/d for a positive d: the part of p that d divides, then the rest.
func (a *algebra) div(p, d poly) poly {
	q, r := a.divide(p, d)
	return a.add(q, a.divRest(r, d))
}

func (a *algebra) divRest(r, d poly) poly {
	if k, ok := a.constantQuotient(r, d); ok {
		return constPoly(k)
	}
	if r1, d1, ok := a.cancel(r, d); ok {
		return a.div(r1, d1)
	}
	if r1, d1, ok := a.unnest(r, d); ok {
		return a.div(r1, d1)
	}
	return a.quotientAtom(r, d)
}

// constantQuotient finds r/d where the bounds of r leave one value.
func (a *algebra) constantQuotient(r, d poly) (int64, bool) {
	n, isConst := d.constant()
	if isConst {
		if n == 1 && len(r) == 0 {
			return 0, true
		}
		if lo, hi, ok := a.interval(r); ok && FloorDiv(lo, n) == FloorDiv(hi, n) {
			return FloorDiv(lo, n), true
		}
	}
	switch {
	case a.proveNonneg(r) && a.proveNonneg(a.plus(a.sub(d, r), -1)):
		return 0, true
	case a.proveNonneg(a.plus(a.neg(r), -1)) && a.proveNonneg(a.add(d, r)):
		return -1, true
	}
	return 0, false
}

// cancel finds g > 1 with r = g*r1 + r0, d = g*d1 and 0 <= r0 < g: then r/d is
// r1/d1.
func (a *algebra) cancel(r, d poly) (r1, d1 poly, ok bool) {
	f := d.factor()
	for i, t := range r {
		g := term{coef: gcd(t.coef, f.coef), mono: commonMono(t.mono, f.mono)}
		if len(t.mono) == 0 || (g.coef == 1 && len(g.mono) == 0) || seenFactor(r[:i], f, g) {
			continue
		}
		if !a.termNonneg(term{coef: 1, mono: g.mono}) {
			continue
		}
		r1, r0 := a.splitBy(r, g)
		if len(r0) > 0 && !a.within(r0, poly{g}) {
			continue
		}
		d1, _ = a.divide(d, poly{g})
		return r1, d1, true
	}
	return nil, nil, false
}

// seenFactor reports whether an earlier term has led to the same candidate.
func seenFactor(earlier poly, f, g term) bool {
	for _, t := range earlier {
		if gcd(t.coef, f.coef) == g.coef && sameMono(commonMono(t.mono, f.mono), g.mono) {
			return true
		}
	}
	return false
}

// splitBy returns the terms that g divides, divided by it, and the others. Of a
// constant, the multiple of g goes to the first and the remainder to the second.
func (a *algebra) splitBy(r poly, g term) (r1, r0 poly) {
	for _, t := range r {
		m, ok := divMono(t.mono, g.mono)
		switch {
		case ok && t.coef%g.coef == 0:
			r1 = append(r1, term{t.coef / g.coef, m})
		case len(t.mono) == 0 && len(g.mono) == 0:
			r1 = a.plus(r1, FloorDiv(t.coef, g.coef))
			r0 = a.plus(r0, FloorMod(t.coef, g.coef))
		default:
			r0 = append(r0, t)
		}
	}
	return r1, r0
}

// unnest uses (x/b + y)/d = (x + b*y)/(b*d), true for every integer y.
func (a *algebra) unnest(r, d poly) (poly, poly, bool) {
	for i, t := range r {
		if t.coef != 1 || len(t.mono) != 1 || t.mono[0].Op != OpFloorDiv {
			continue
		}
		inner, ok := a.parts[t.mono[0]]
		if !ok {
			continue
		}
		rest := slices.Concat(r[:i], r[i+1:])
		num, den := a.add(inner.num, a.mul(inner.den, rest)), a.mul(inner.den, d)
		return num, den, num.small() && den.small()
	}
	return nil, nil, false
}

// quotientAtom is r/d as an atom. r is shifted by a multiple of d so that it is not negative,
// if possible: that gives one spelling, and a cheaper division.
func (a *algebra) quotientAtom(r, d poly) poly {
	whole := a.shiftOf(r, d)
	r = a.sub(r, a.mul(constPoly(whole), d))
	e := a.intern(Apply(OpFloorDiv, a.expr(r), a.expr(d)))
	put(&a.parts, e, division{r, d})
	return a.plus(atomPoly(e), whole)
}

// shiftOf returns how many times d is to be subtracted from r; the number may be negative. For
// a constant d, the constant term of r is first reduced to [0, d).
func (a *algebra) shiftOf(r, d poly) int64 {
	var whole int64
	n, isConst := d.constant()
	if isConst {
		_, c := r.split()
		whole = FloorDiv(c, n)
		r = a.plus(r, -whole*n)
	}
	if a.proveNonneg(r) {
		return whole
	}
	if lo, _, ok := a.interval(r); ok && isConst {
		return whole + FloorDiv(lo, n)
	}
	if a.proveNonneg(a.add(r, d)) {
		return whole - 1
	}
	return whole
}

// remainderAtom is r%d as an atom, for a positive d.
func (a *algebra) remainderAtom(r, d poly) *Expr {
	e := a.intern(Apply(OpMod, a.expr(r), a.expr(d)))
	put(&a.parts, e, division{r, d})
	return e
}

// foldMod folds one remainder; false where none is left.
func (a *algebra) foldMod(p poly) (poly, bool) {
	if !p.hasNegative() {
		return nil, false
	}
	quotients := a.quotientsIn(p)
	for _, v := range quotients {
		slope, rest, ok := p.linear(v)
		if !ok {
			continue
		}
		for _, inner := range a.dividends(v, quotients) {
			if a.exhausted() {
				return nil, false
			}
			if next, ok := a.foldOne(v, inner, slope, rest); ok && weight(next) < weight(p) {
				return next, true
			}
		}
	}
	return nil, false
}

// dividends lists the ways to see x/d as (x/b)/(d/b): as x itself, and with b
// the divisor of another quotient in the same sum.
func (a *algebra) dividends(v *Expr, quotients []*Expr) []division {
	x := a.parts[v]
	out := []division{x}
	for _, w := range quotients {
		b := a.parts[w].den
		if w == v || b.equal(x.den) || a.exhausted() {
			continue
		}
		if left, ok := a.exact(x.den, b); ok {
			out = append(out, division{a.div(x.num, b), left})
		}
	}
	return out
}

// foldOne rewrites slope*v + rest, v = num/den, with c*(num%den) for the c that
// makes most of it cancel.
func (a *algebra) foldOne(v *Expr, x division, slope, rest poly) (poly, bool) {
	c, _ := a.divide(a.neg(slope), x.den)
	if len(c) == 0 || !a.covers(rest, a.mul(c, x.num)) {
		if c, _ = a.divide(rest, x.num); len(c) == 0 {
			return nil, false
		}
	}
	out := a.sub(rest, a.mul(c, x.num))
	out = a.add(out, a.mul(a.add(slope, a.mul(c, x.den)), atomPoly(v)))
	out = a.add(out, a.mul(c, atomPoly(a.remainderAtom(x.num, x.den))))
	return out, !a.overflow
}

// covers reports whether p - q has fewer terms than p.
func (a *algebra) covers(p, q poly) bool { return len(a.sub(p, q)) < len(p) }

// quotientsIn lists the quotient atoms in p, the most deeply nested first: their
// numerators have to be found in p before what these hold is folded itself.
func (a *algebra) quotientsIn(p poly) []*Expr {
	var out []*Expr
	for _, t := range p {
		for _, atom := range t.mono {
			if _, ok := a.parts[atom]; ok && atom.Op == OpFloorDiv && !slices.Contains(out, atom) {
				out = append(out, atom)
			}
		}
	}
	slices.SortStableFunc(out, func(v, w *Expr) int { return cmp.Compare(a.height(w), a.height(v)) })
	return out
}

func (p poly) hasNegative() bool {
	for _, t := range p {
		if t.coef < 0 {
			return true
		}
	}
	return false
}

// weight is the length of a sum: the number of its terms, where a subtracted term counts twice.
func weight(p poly) int {
	n := len(p)
	for _, t := range p {
		if t.coef < 0 {
			n++
		}
	}
	return n
}
