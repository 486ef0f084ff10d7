package ir

import "slices"

// Proofs fold the remainders of the same sums again and again: every quotient in a sum is divided by the divisors of the others, which asks for
// bounds, and these are sums of the same quotients. So an algebra keeps what it has folded.

// foldedSum is a sum whose remainders were folded, and the steps of a proof that this takes.
type foldedSum struct {
	sum, out poly
	known    int  // inequalities that were known
	proving  bool // it was within a proof, which has so many steps in all
	steps    int
	more     bool // it takes these steps or more: the proof had no more, and there is no result
}

// foldMods turns x - d*(x/d) back into x%d wherever that makes p shorter. A proof that has not the steps for it is over.
func (a *algebra) foldMods(p poly) poly {
	if !p.hasNegative() || a.overflow {
		return a.foldAll(p)
	}
	key, proving, known, fuel := p.hash(), a.depth > 0, len(a.known), a.fuel
	of := a.folded[key]
	i := slices.IndexFunc(of, func(f foldedSum) bool { return f.known == known && f.proving == proving && f.sum.equal(p) })
	switch {
	case i < 0:
	case proving && fuel < of[i].steps:
		a.fuel = -1
		return p
	case !of[i].more && proving:
		a.fuel -= of[i].steps
		return of[i].out
	case !of[i].more:
		return of[i].out
	}
	f := foldedSum{sum: p, out: a.foldAll(p), known: known, proving: proving, more: a.exhausted()}
	if f.steps = fuel - a.fuel; known != len(a.known) || a.overflow {
		return f.out
	}
	if i < 0 {
		put(&a.folded, key, append(a.folded[key], f))
	} else if i < len(a.folded[key]) {
		a.folded[key][i] = f
	}
	return f.out
}

// foldAll folds remainders one by one.
func (a *algebra) foldAll(p poly) poly {
	for {
		next, ok := a.foldMod(p)
		if !ok {
			return p
		}
		p = next
	}
}

// hash is the same for equal sums.
func (p poly) hash() uint64 {
	h := hashInit
	for _, t := range p {
		h = h.word(uint64(t.coef))
		for _, atom := range t.mono {
			h = h.word(atom.hash)
		}
	}
	return uint64(h)
}
