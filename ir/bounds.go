package ir

import "slices"

// proofFuel bounds the steps of one question, so that no expression, however
// odd, takes long: a question that runs out is answered "not known".
const proofFuel = 1500

// proveNonneg reports whether p >= 0 could be proved at every point.
func (a *algebra) proveNonneg(p poly) bool {
	a.learnFacts()
	if a.depth == 0 {
		if a.refuted(p) {
			return false
		}
		a.fuel = proofFuel
	}
	outer := a.overflow
	a.overflow = false
	a.depth++
	ok := a.nonneg(p) || a.nonnegByKnown(p, a.known, maxKnown)
	a.depth--
	ok = ok && !a.overflow
	a.overflow = outer
	return ok
}

// exhausted reports whether the proof under way has no steps left.
func (a *algebra) exhausted() bool { return a.depth > 0 && a.fuel < 0 }

// maxKnown bounds how many known inequalities one proof adds up.
const maxKnown = 3

// nonnegByKnown proves p >= 0 as p - q >= 0, where q is a sum of polynomials
// that are known not to be negative: the size of a range over several symbols,
// less one, or a condition that is taken to hold.
func (a *algebra) nonnegByKnown(p poly, known []poly, more int) bool {
	for i, q := range known {
		if more == 0 || a.exhausted() {
			return false
		}
		if !helps(p, q) {
			continue
		}
		rest := a.sub(p, q)
		if a.nonneg(rest) || a.nonnegByKnown(rest, slices.Concat(known[:i], known[i+1:]), more-1) {
			return true
		}
	}
	return false
}

// helps reports whether p - q may be easier to prove than p: some atom has terms of the same sign in both, so that its
// terms may cancel. If the signs differ, they add up instead.
func helps(p, q poly) bool {
	for _, t := range p {
		for _, atom := range t.mono {
			for _, u := range q {
				if (t.coef < 0) == (u.coef < 0) && u.mono.contains(atom) {
					return true
				}
			}
		}
	}
	return false
}

// positive reports whether p >= 1 could be proved.
func (a *algebra) positive(p poly) bool {
	return (a.termwise(p) && a.hasPositiveTerm(p)) || a.proveNonneg(a.plus(p, -1))
}

// hasPositiveTerm reports whether some term has only factors known to be at
// least 1.
func (a *algebra) hasPositiveTerm(p poly) bool {
	for _, t := range p {
		ok := t.coef > 0
		for _, atom := range t.mono {
			ok = ok && a.lowerBound(atom) > 0
		}
		if ok {
			return true
		}
	}
	return false
}

// within reports whether 0 <= p < extent could be proved.
func (a *algebra) within(p, extent poly) bool {
	return a.proveNonneg(p) && a.proveNonneg(a.plus(a.sub(extent, p), -1))
}

// nonneg eliminates one atom after another, replacing each by the bound that
// makes p smallest: p is linear in the atom, so its least value is at an end.
// What is left speaks of symbols only, and holds where every coefficient is at
// least 0 once the symbols are counted from their lower bounds.
func (a *algebra) nonneg(p poly) bool {
	if c, ok := p.constant(); ok {
		return c >= 0
	}
	if a.fuel--; a.fuel < 0 || a.overflow {
		return false
	}
	if a.termwise(p) {
		return true
	}
	if !p.hasNegative() && !a.hasSignedAtom(p) {
		return false
	}
	p = a.foldMods(p)
	if a.exhausted() {
		return false
	}
	if a.termwise(p) {
		return true
	}
	v := a.outermost(p, func(atom *Expr) bool { return !a.isSymbol(atom) })
	if (v == nil || a.symbolicAtom(v)) && a.termwise(a.shift(p)) {
		return true
	}
	return v != nil && a.eliminate(p, v)
}

// termwise reports whether no term of p can be negative.
func (a *algebra) termwise(p poly) bool {
	for _, t := range p {
		if t.coef < 0 {
			return false
		}
	}
	for _, t := range p {
		if !a.termNonneg(t) {
			return false
		}
	}
	return true
}

func (a *algebra) termNonneg(t term) bool {
	for _, atom := range t.mono {
		if !a.atomNonneg(atom) {
			return false
		}
	}
	return t.coef >= 0
}

func (a *algebra) hasSignedAtom(p poly) bool {
	for _, t := range p {
		if !a.termNonneg(term{coef: 1, mono: t.mono}) {
			return true
		}
	}
	return false
}

func (a *algebra) atomNonneg(v *Expr) bool {
	a.learnFacts()
	if v.Op == OpRange || a.isSymbol(v) || a.least[v] > 0 {
		return true
	}
	ok, seen := a.signs[v]
	if !seen {
		ok = a.compoundNonneg(v)
		put(&a.signs, v, ok)
	}
	return ok
}

func (a *algebra) compoundNonneg(v *Expr) bool {
	x, isDivision := a.parts[v]
	switch {
	case isDivision && v.Op == OpMod:
		return true
	case isDivision:
		return a.proveNonneg(x.num)
	}
	switch v.Op {
	case OpFloorDiv:
		return a.proveNonneg(a.poly(v.Args[0])) && a.proveNonneg(a.poly(v.Args[1]))
	case OpMod:
		return a.proveNonneg(a.poly(v.Args[1]))
	case OpMin:
		return a.proveNonneg(a.poly(v.Args[0])) && a.proveNonneg(a.poly(v.Args[1]))
	case OpMax:
		return a.proveNonneg(a.poly(v.Args[0])) || a.proveNonneg(a.poly(v.Args[1]))
	case OpSelect:
		return a.proveNonneg(a.poly(v.Args[1])) && a.proveNonneg(a.poly(v.Args[2]))
	case OpCast:
		return neverNegative(v.Args[0].Type)
	}
	return false
}

func neverNegative(t DType) bool { return t == Bool || t == U8 || t == U32 }

// isSymbol reports whether the atom is a symbol, or one less its known factor.
func (a *algebra) isSymbol(v *Expr) bool {
	if v.Op == OpSym {
		return true
	}
	_, _, ok := a.reducedSymbol(v)
	return ok
}

// shift counts symbols and other atoms from their lower bounds.
func (a *algebra) shift(p poly) poly {
	for _, v := range p.atoms() {
		if c := a.lowerBound(v); c > 0 {
			p = a.substitute(p, v, a.plus(atomPoly(v), c))
		}
	}
	return p
}

func (a *algebra) lowerBound(v *Expr) int64 {
	a.learnFacts()
	c := a.least[v]
	if a.facts.Positive && a.isSymbol(v) {
		c = max(c, 1)
	}
	return c
}

// atoms lists the atoms of p in order of first appearance.
func (p poly) atoms() []*Expr {
	var out []*Expr
	for _, t := range p {
		for _, atom := range t.mono {
			if !slices.Contains(out, atom) {
				out = append(out, atom)
			}
		}
	}
	return out
}

// substitute replaces the atom v by q.
func (a *algebra) substitute(p poly, v *Expr, q poly) poly {
	var out poly
	for _, t := range p {
		image := constPoly(t.coef)
		var rest mono
		for _, atom := range t.mono {
			if Equal(atom, v) {
				image = a.mul(image, q)
			} else {
				rest = append(rest, atom)
			}
		}
		out = a.addScaled(out, image, term{coef: 1, mono: rest})
	}
	return out
}

// outermost returns the wanted atom to eliminate next: one that depends on
// ranges before one that depends on symbols only, and the most deeply nested
// first, since its bounds may hold the others.
func (a *algebra) outermost(p poly, wanted func(*Expr) bool) *Expr {
	var best *Expr
	for _, t := range p {
		for _, atom := range t.mono {
			if wanted(atom) && (best == nil || a.before(atom, best)) {
				best = atom
			}
		}
	}
	return best
}

func (a *algebra) before(v, w *Expr) bool {
	if s := a.symbolicAtom(v); s != a.symbolicAtom(w) {
		return !s
	}
	return a.height(v) > a.height(w)
}

func (a *algebra) height(e *Expr) int {
	h, ok := a.heights[e]
	if !ok && len(e.Args) > 0 {
		for _, arg := range e.Args {
			h = max(h, 1+a.height(arg))
		}
		put(&a.heights, e, h)
	}
	return h
}

// eliminate proves p >= 0 by bounding v.
func (a *algebra) eliminate(p poly, v *Expr) bool {
	slope, rest, ok := p.linear(v)
	if !ok {
		return a.eliminatePower(p, v)
	}
	switch v.Op {
	case OpMin, OpMax, OpSelect:
		return a.eliminateChoice(v, slope, rest)
	}
	if a.eliminateQuotient(v, slope, rest) {
		return true
	}
	up, down := a.signOf(slope)
	return (down || a.anyBound(a.lowers(v), slope, rest)) && (up || a.anyBound(a.uppers(v), slope, rest))
}

// eliminateQuotient uses that x/d >= k says the same as x >= k*d.
func (a *algebra) eliminateQuotient(v *Expr, slope, rest poly) bool {
	x, ok := a.parts[v]
	c, isConst := slope.constant()
	if !ok || !isConst || v.Op != OpFloorDiv || c*c != 1 {
		return false
	}
	return a.nonneg(a.clearQuotient(x, c, rest))
}

// clearQuotient returns the p for which p >= 0 says the same as
// sign*(num/den) + rest >= 0.
func (a *algebra) clearQuotient(x division, sign int64, rest poly) poly {
	if sign > 0 {
		return a.add(x.num, a.mul(rest, x.den))
	}
	return a.plus(a.sub(a.mul(a.plus(rest, 1), x.den), x.num), -1)
}

// signOf reports whether p is known to be at least 0, and at most 0.
func (a *algebra) signOf(p poly) (up, down bool) {
	if a.termwise(p) {
		return true, false
	}
	minus := a.neg(p)
	if a.termwise(minus) {
		return false, true
	}
	up = a.nonneg(p)
	return up, !up && a.nonneg(minus)
}

// anyBound reports whether slope*v + rest >= 0 follows from one of the bounds:
// each is a num with den*v >= num or <= num, so that den*p is bounded by
// slope*num + den*rest.
func (a *algebra) anyBound(bounds []division, slope, rest poly) bool {
	for _, b := range bounds {
		if a.nonneg(a.add(a.mul(slope, b.num), a.mul(b.den, rest))) {
			return true
		}
	}
	return false
}

// eliminatePower lowers the powers of a range r by v <= v*v <= hi*v.
func (a *algebra) eliminatePower(p poly, v *Expr) bool {
	if v.Op != OpRange {
		return false
	}
	hi := a.plus(a.extent(v.Range), -1)
	var out poly
	for _, t := range p {
		m, powers := t.mono, 0
		for m.contains(v) {
			m, _ = divMono(m, mono{v})
			powers++
		}
		image := poly{t}
		if powers > 1 {
			if !a.termNonneg(term{coef: 1, mono: m}) {
				return false
			}
			image = poly{{t.coef, mulMono(m, mono{v})}}
			for k := 1; k < powers && t.coef < 0; k++ {
				image = a.mul(image, hi)
			}
		}
		out = a.add(out, image)
	}
	return a.nonneg(out)
}
