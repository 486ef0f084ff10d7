package ir

import "math"

// bound returns a polynomial over symbols that p does not exceed (up) or fall
// below.
func (a *algebra) bound(p poly, up bool) (poly, bool) {
	p = a.foldMods(p)
	for !a.overflow {
		v := a.outermost(p, func(atom *Expr) bool { return !a.symbolicAtom(atom) })
		if v == nil {
			return p, true
		}
		slope, rest, ok := p.linear(v)
		if !ok {
			return nil, false
		}
		side := up
		if !a.proveNonneg(slope) {
			if !a.proveNonneg(a.neg(slope)) {
				return nil, false
			}
			side = !up
		}
		lim, ok := a.limit(v, side)
		if !ok {
			return nil, false
		}
		p = a.add(rest, a.mul(slope, lim))
	}
	return nil, false
}

// limit bounds one atom; the bound may hold atoms of lesser height.
func (a *algebra) limit(v *Expr, up bool) (poly, bool) {
	x, isDivision := a.parts[v]
	switch {
	case v.Op == OpRange && up:
		return a.plus(a.extent(v.Range), -1), true
	case v.Op == OpRange:
		return nil, true
	case isDivision && v.Op == OpFloorDiv:
		return a.limitOfDivision(x, up)
	case isDivision && up:
		return a.plus(x.den, -1), true
	case isDivision:
		return nil, true
	}
	return a.limitOfOther(v, up)
}

func (a *algebra) limitOfDivision(x division, up bool) (poly, bool) {
	if lim, ok := a.limitOfQuotient(x, up); ok {
		return lim, true
	}
	if !a.proveNonneg(x.num) {
		return nil, false
	}
	if up {
		return x.num, true
	}
	return nil, true
}

func (a *algebra) limitOfOther(v *Expr, up bool) (poly, bool) {
	switch v.Op {
	case OpMin, OpMax:
		return a.limitOfPair(v.Op, v.Args[0], v.Args[1], up)
	case OpSelect:
		op := OpMin
		if up {
			op = OpMax
		}
		return a.limitOfPair(op, v.Args[1], v.Args[2], up)
	case OpCast:
		return castLimit(v.Args[0].Type, up)
	case OpMod: // the divisor may be 0, and then so is the remainder
		d := a.poly(v.Args[1])
		if !a.proveNonneg(d) {
			return nil, false
		}
		return pick(up, d, nil), true
	case OpFloorDiv:
		return pick(up, a.poly(v.Args[0]), nil), a.atomNonneg(v)
	}
	return nil, false
}

func (a *algebra) limitOfPair(op Op, x, y *Expr, up bool) (poly, bool) {
	p, ok := a.bound(a.poly(x), up)
	if !ok {
		return nil, false
	}
	q, ok := a.bound(a.poly(y), up)
	if !ok {
		return nil, false
	}
	return a.extremum(op, p, q), true
}

// castLimit bounds stored integers by their type, where that is of any use.
func castLimit(t DType, up bool) (poly, bool) {
	info := t.Info()
	switch {
	case info.Kind == KindFloat || info.Max > math.MaxInt32 && up:
		return nil, false
	case up:
		return constPoly(int64(info.Max)), true
	case info.Signed && t.Size() > 4:
		return nil, false
	case info.Signed:
		return constPoly(-int64(info.Max) - 1), true
	}
	return nil, true
}

var one = poly{{coef: 1}}

// lowers returns lower bounds of an atom as pairs: den*v >= num.
func (a *algebra) lowers(v *Expr) []division {
	var out []division
	if a.atomNonneg(v) {
		out = append(out, division{constPoly(a.lowerBound(v)), one})
	}
	x, ok := a.parts[v]
	if !ok || v.Op != OpFloorDiv {
		return out
	}
	if lo, ok := a.limitOfQuotient(x, false); ok {
		out = append(out, division{lo, one})
	}
	return append(out, division{a.plus(a.sub(x.num, x.den), 1), x.den})
}

// uppers returns upper bounds of an atom as pairs: den*v <= num.
func (a *algebra) uppers(v *Expr) []division {
	x, isDivision := a.parts[v]
	switch {
	case v.Op == OpRange:
		return []division{{a.plus(a.extent(v.Range), -1), one}}
	case isDivision && v.Op == OpMod:
		return []division{{a.plus(x.den, -1), one}}
	case isDivision:
		out := []division{x}
		if hi, ok := a.limitOfQuotient(x, true); ok {
			out = append(out, division{hi, one})
		}
		return out
	}
	if hi, ok := a.limit(v, true); ok {
		return []division{{hi, one}}
	}
	return nil
}

// limitOfQuotient bounds num/den by the bounds of num, where that says anything new.
func (a *algebra) limitOfQuotient(x division, up bool) (poly, bool) {
	if a.symbolic(x.num) || !a.symbolic(x.den) {
		return nil, false
	}
	b, ok := a.bound(x.num, up)
	if !ok {
		return nil, false
	}
	return a.div(b, x.den), true
}

// symbolicAtom reports whether the atom depends on symbols only.
func (a *algebra) symbolicAtom(v *Expr) bool {
	switch v.Op {
	case OpSym, OpConst:
		return true
	case OpRange, OpLoad, OpReduce, OpLocal, OpRead, OpRandom, OpRandom16:
		return false
	}
	ok, seen := a.symbolics[v]
	if !seen {
		ok = true
		for _, arg := range v.Args {
			ok = ok && a.symbolicAtom(arg)
		}
		put(&a.symbolics, v, ok)
	}
	return ok
}

// symbolic reports whether p depends on symbols only.
func (a *algebra) symbolic(p poly) bool {
	for _, t := range p {
		for _, atom := range t.mono {
			if !a.symbolicAtom(atom) {
				return false
			}
		}
	}
	return true
}

// learn takes note that p >= 0.
func (a *algebra) learn(p poly) {
	terms, c := p.split()
	if len(terms) == 0 || a.overflow {
		return
	}
	if len(terms) > 1 || terms[0].coef < 0 {
		a.known = append(a.known, p)
		return
	}
	a.learnAtLeast(terms[0].mono, -FloorDiv(c, terms[0].coef))
}

// learnAtLeast takes note that the product m is at least c.
func (a *algebra) learnAtLeast(m mono, c int64) {
	if c == 0 && len(m) == 1 {
		put(&a.signs, m[0], true)
	}
	if c <= 0 {
		return
	}
	if len(m) > 1 {
		if c = 1; !a.termNonneg(term{coef: 1, mono: m}) {
			return
		}
	}
	for _, atom := range m {
		put(&a.least, atom, max(a.least[atom], c))
		if x, ok := a.parts[atom]; ok && atom.Op == OpFloorDiv {
			a.learn(a.sub(x.num, a.mul(constPoly(c), x.den)))
		}
	}
}

// interval bounds p by numbers, without regard to what its terms share.
func (a *algebra) interval(p poly) (lo, hi int64, ok bool) {
	p = a.foldMods(p)
	for _, t := range p {
		tlo, thi := t.coef, t.coef
		for _, atom := range t.mono {
			l, h, ok := a.atomInterval(atom)
			if !ok {
				return 0, 0, false
			}
			tlo, thi = a.mulInterval(tlo, thi, l, h)
		}
		lo, hi = a.addInt(lo, tlo), a.addInt(hi, thi)
	}
	return lo, hi, !a.overflow
}

func (a *algebra) mulInterval(lo, hi, l, h int64) (int64, int64) {
	w, x, y, z := a.mulInt(lo, l), a.mulInt(lo, h), a.mulInt(hi, l), a.mulInt(hi, h)
	return min(w, x, y, z), max(w, x, y, z)
}

func (a *algebra) atomInterval(v *Expr) (lo, hi int64, ok bool) {
	x, isDivision := a.parts[v]
	switch {
	case v.Op == OpRange:
		n, ok := a.extent(v.Range).constant()
		return 0, n - 1, ok && n > 0
	case isDivision && v.Op == OpMod:
		n, ok := x.den.constant()
		return 0, n - 1, ok
	case isDivision:
		n, ok := x.den.constant()
		if !ok {
			return 0, 0, false
		}
		lo, hi, ok = a.interval(x.num)
		return FloorDiv(lo, n), FloorDiv(hi, n), ok
	}
	return 0, 0, false
}
