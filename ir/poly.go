package ir

import (
	"math"
	"slices"
)

// mono is a product of atoms, in atom order, repeated for powers. The empty
// product is 1.
type mono []*Expr

// term is a monomial with its coefficient, which is never 0 inside a poly.
type term struct {
	coef int64
	mono mono
}

// poly is a sum of terms in descending lexicographic order of their monomials.
// That order is kept by multiplication, which is what makes polynomial long
// division terminate. The empty sum is 0. Polys are immutable.
type poly []term

// maxTerms bounds the size of a polynomial: a product of sums that grows past
// it is not an index anybody writes, and is left as it stands.
const maxTerms = 128

func constPoly(c int64) poly {
	if c == 0 {
		return nil
	}
	return poly{{coef: c}}
}

func atomPoly(atom *Expr) poly {
	p := &struct { // one piece of memory
		terms [1]term
		atoms [1]*Expr
	}{atoms: [1]*Expr{atom}}
	p.terms[0] = term{coef: 1, mono: p.atoms[:]}
	return p.terms[:]
}

// constant returns the value of a polynomial that has no atoms.
func (p poly) constant() (int64, bool) {
	switch {
	case len(p) == 0:
		return 0, true
	case len(p) == 1 && len(p[0].mono) == 0:
		return p[0].coef, true
	}
	return 0, false
}

// split returns the polynomial without its constant term, and that term.
func (p poly) split() (poly, int64) {
	if n := len(p); n > 0 && len(p[n-1].mono) == 0 {
		return p[:n-1], p[n-1].coef
	}
	return p, 0
}

func (p poly) equal(q poly) bool {
	if len(p) != len(q) {
		return false
	}
	for i := range p {
		if p[i].coef != q[i].coef || !sameMono(p[i].mono, q[i].mono) {
			return false
		}
	}
	return true
}

func sameMono(m, n mono) bool {
	if len(m) != len(n) {
		return false
	}
	for i := range m {
		if !Equal(m[i], n[i]) {
			return false
		}
	}
	return true
}

// compareMono orders monomials lexicographically: a product with more of the
// first atom is greater, and 1 is the least.
func compareMono(m, n mono) int {
	for i := range min(len(m), len(n)) {
		if c := compareAtoms(m[i], n[i]); c != 0 {
			return -c
		}
	}
	return len(m) - len(n)
}

func mulMono(m, n mono) mono {
	if len(m) == 0 {
		return n
	}
	if len(n) == 0 {
		return m
	}
	out := make(mono, 0, len(m)+len(n))
	for len(m) > 0 && len(n) > 0 {
		if compareAtoms(m[0], n[0]) <= 0 {
			out, m = append(out, m[0]), m[1:]
		} else {
			out, n = append(out, n[0]), n[1:]
		}
	}
	return append(append(out, m...), n...)
}

// divMono returns m/n where n divides m.
func divMono(m, n mono) (mono, bool) {
	if len(n) == 0 {
		return m, true
	}
	if len(n) > len(m) {
		return nil, false
	}
	var out mono
	for _, atom := range m {
		if len(n) > 0 && Equal(atom, n[0]) {
			n = n[1:]
		} else {
			out = append(out, atom)
		}
	}
	return out, len(n) == 0
}

// commonMono returns the greatest monomial that divides both.
func commonMono(m, n mono) mono {
	var out mono
	for len(m) > 0 && len(n) > 0 {
		switch c := compareAtoms(m[0], n[0]); {
		case c < 0:
			m = m[1:]
		case c > 0:
			n = n[1:]
		default:
			out, m, n = append(out, m[0]), m[1:], n[1:]
		}
	}
	return out
}

// factor returns the greatest term that divides every term of p, with a
// positive coefficient.
func (p poly) factor() term {
	if len(p) == 0 {
		return term{coef: 1}
	}
	f := term{mono: p[0].mono}
	for _, t := range p {
		f = term{coef: gcd(f.coef, t.coef), mono: commonMono(f.mono, t.mono)}
	}
	return f
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	if a < 0 {
		return -a
	}
	return a
}

// contains reports whether the monomial has the atom as a factor.
func (m mono) contains(atom *Expr) bool {
	for _, x := range m {
		if Equal(x, atom) {
			return true
		}
	}
	return false
}

func (a *algebra) mulInt(x, y int64) int64 {
	if x == 0 || y == 0 {
		return 0
	}
	r := x * y
	if r/y != x || r == math.MinInt64 {
		a.overflow = true
	}
	return r
}

func (a *algebra) addInt(x, y int64) int64 {
	r := x + y
	if (x > 0 && y > 0 && r <= 0) || (x < 0 && y < 0 && r >= 0) || r == math.MinInt64 {
		a.overflow = true
	}
	return r
}

// addScaled returns p + t*q.
func (a *algebra) addScaled(p, q poly, t term) poly {
	if t.coef == 0 || len(q) == 0 {
		return p
	}
	if len(p) == 0 && t.coef == 1 && len(t.mono) == 0 {
		return q
	}
	out := make(poly, 0, len(p)+len(q))
	for _, u := range q {
		u = term{coef: a.mulInt(u.coef, t.coef), mono: mulMono(u.mono, t.mono)}
		for len(p) > 0 && compareMono(p[0].mono, u.mono) > 0 {
			out, p = append(out, p[0]), p[1:]
		}
		if len(p) > 0 && sameMono(p[0].mono, u.mono) {
			u.coef, p = a.addInt(p[0].coef, u.coef), p[1:]
		}
		if u.coef != 0 {
			out = append(out, u)
		}
	}
	out = append(out, p...)
	if len(out) > maxTerms {
		a.overflow = true
		return nil
	}
	return out
}

func (a *algebra) add(p, q poly) poly { return a.addScaled(p, q, term{coef: 1}) }

func (a *algebra) sub(p, q poly) poly { return a.addScaled(p, q, term{coef: -1}) }

func (a *algebra) neg(p poly) poly { return a.sub(nil, p) }

func (a *algebra) plus(p poly, c int64) poly {
	if c == 0 {
		return p
	}
	rest, constant := p.split()
	if c = a.addInt(constant, c); c == 0 {
		return rest
	}
	if len(rest) == maxTerms {
		a.overflow = true
		return nil
	}
	return append(slices.Clip(rest), term{coef: c})
}

func (a *algebra) mul(p, q poly) poly {
	var out poly
	for _, t := range p {
		out = a.addScaled(out, q, t)
	}
	return out
}

// largeCoefficient is where the numbers in an index begin of which the parser asks that the index stay below 2^62. Sizes times
// lesser ones fit in 64 bits.
const largeCoefficient = 1 << 31

// small reports whether no range or size in p is multiplied by a large number. An index fits in 64 bits, but not so its product
// with a divisor, which the program does not compute: a rewriting that multiplies must give what is small.
func (p poly) small() bool {
	return !slices.ContainsFunc(p, func(t term) bool {
		return len(t.mono) > 0 && (t.coef <= -largeCoefficient || t.coef >= largeCoefficient)
	})
}

// divide is polynomial long division: p = q*d + r. No term of r is divisible by
// the leading term of d, up to a coefficient smaller than its coefficient.
func (a *algebra) divide(p, d poly) (q, r poly) {
	if len(d) == 0 {
		return nil, p
	}
	for i := 0; i < len(p) && !a.overflow; {
		m, ok := divMono(p[i].mono, d[0].mono)
		c := p[i].coef / d[0].coef
		if !ok || c == 0 {
			i++
			continue
		}
		t := term{coef: c, mono: m}
		q = append(q, t)
		p = a.addScaled(p, d, term{coef: -c, mono: m})
	}
	return q, p
}

// exact returns p/d where the division leaves nothing.
func (a *algebra) exact(p, d poly) (poly, bool) {
	q, r := a.divide(p, d)
	return q, len(r) == 0 && !a.overflow
}

// linear returns A and B of p = A*v + B, B free of v as a factor; ok is false
// where a power of v occurs.
func (p poly) linear(v *Expr) (slope, rest poly, ok bool) {
	for _, t := range p {
		if !t.mono.contains(v) {
			rest = append(rest, t)
			continue
		}
		m, _ := divMono(t.mono, mono{v})
		if m.contains(v) {
			return nil, nil, false
		}
		slope = append(slope, term{t.coef, m})
	}
	return slope, rest, true
}
