package ir

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// Simplify brings every index expression and every comparison of indices in e
// to its canonical form, and leaves data arithmetic as it is. Indices become
// sums of products in a fixed order, so that equal sums are Equal expressions.
// Conditions that the bounds decide become constants, and a select on one
// becomes its branch. The result equals e at every point of e's ranges; since
// there is no such point where a range is empty, the extents of all ranges in e
// are taken to be at least 1.
func Simplify(e *Expr, f Facts) *Expr {
	if e == nil || plainIndices(e) {
		return e
	}
	return newAlgebra(f, e).simplify(e)
}

// plainIndices reports whether e is obviously canonical: its indices are only ranges and
// constants, and it has no conditions.
func plainIndices(e *Expr) bool {
	plain := true
	Walk(e, func(e *Expr) bool {
		switch {
		case e.Op == OpRange:
			plain = plain && (e.Range.Extent.Op == OpSym || e.Range.Extent.Op == OpConst && e.Range.Extent.Int != 1)
		case e.Op == OpConst:
			plain = plain && e.Int != math.MinInt64
		case e.Type == Index || e.Type == Bool || e.Op == OpSelect || e.Op == OpReduce:
			plain = false
		}
		return plain
	})
	return plain
}

// SimplifyAll is Simplify for several expressions that are evaluated at the same points, such
// as the indices of a load. The ranges of all are known to be not empty for each.
func SimplifyAll(es []*Expr, f Facts) []*Expr {
	a := newAlgebra(f, es...)
	out := make([]*Expr, len(es))
	for i, e := range es {
		out[i] = a.simplify(e)
	}
	return out
}

// algebra holds what is known while expressions over one set of ranges are
// simplified: facts, bounds, and results that were found before.
//
// Inside, a remainder p%d with d > 0 is p - d*(p/d), so that splitting and
// joining of indices cancel by plain addition; foldMods finds the remainders
// again for proofs and for output. A symbol N known to be a multiple of 8 is
// 8*(N/8), with N/8 the atom, so that divisibility is a matter of coefficients.
//
// Planning makes an algebra for each of very many small questions, so its maps
// are made when they get their first entry.
type algebra struct {
	facts     Facts
	about     []*Expr         // whose ranges have points
	ranges    map[*Range]bool // these ranges; nil until they are asked for
	learnt    bool            // what follows from the facts is among what is known
	known     []poly          // polynomials that are not negative
	least     map[*Expr]int64 // lower bounds of symbol atoms above 0
	atoms     map[uint64]*Expr
	polys     exprMap[poly]
	exprs     exprMap[*Expr]
	parts     map[*Expr]division // numerator and divisor of quotient and remainder atoms
	folded    map[uint64][]foldedSum
	signs     map[*Expr]bool // whether an atom is known not to be negative
	heights   map[*Expr]int
	symbolics map[*Expr]bool // whether an atom depends on symbols only
	granted   []*Expr        // conditions that are taken to hold
	samples   samples        // values at some sizes
	overflow  bool           // a coefficient did not fit since the flag was last cleared
	fuel      int            // steps left to the proof under way
	depth     int            // nesting of proofs
}

// division is what a quotient or remainder atom was made of; the divisor is
// known to be positive.
type division struct{ num, den poly }

func newAlgebra(f Facts, es ...*Expr) *algebra { return &algebra{facts: f, about: es} }

func newAlgebraOver(f Facts, ranges map[*Range]bool) *algebra {
	return &algebra{facts: f, ranges: ranges}
}

// scope is the ranges of the expressions that the algebra is about.
func (a *algebra) scope() map[*Range]bool {
	if a.ranges != nil {
		return a.ranges
	}
	a.ranges = map[*Range]bool{}
	for _, r := range a.facts.Within {
		a.ranges[r] = true
	}
	for _, e := range a.about {
		if e != nil {
			maps.Copy(a.ranges, FreeRanges(e))
		}
	}
	return a.ranges
}

// learnFacts makes polynomials of the facts. It comes before the first question that depends on them: many an algebra is made
// for one that does not.
func (a *algebra) learnFacts() {
	if a.learnt {
		return
	}
	a.learnt = true
	overflow, fuel, depth := a.overflow, a.fuel, a.depth
	a.overflow, a.fuel, a.depth = false, 0, 0
	polys, exprs := a.polys, a.exprs
	a.polys, a.exprs = exprMap[poly]{}, exprMap[*Expr]{}
	sorted := sortedByID(a.scope())
	for _, r := range sorted {
		a.learn(a.plus(a.extent(r), -1))
	}
	for _, e := range a.facts.AtLeast0 {
		a.learnSize(a.poly(e), sorted)
	}
	a.overflow, a.fuel, a.depth = a.overflow || overflow, fuel, depth
	a.polys, a.exprs = polys, exprs // sizes may have another form now that all facts are known
}

// learnSize records that a size is not negative. The size is at least 1 if it is a factor of the extent of
// one of the ranges, because these are not empty.
func (a *algebra) learnSize(size poly, ranges []*Range) {
	for _, r := range ranges {
		if _, whole := a.exact(a.extent(r), size); whole {
			a.learn(a.plus(size, -1))
			return
		}
	}
	a.learn(size)
}

// put makes an entry of a map, which it makes where there is none.
func put[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[k] = v
}

func sortedByID(ranges map[*Range]bool) []*Range {
	return slices.SortedFunc(maps.Keys(ranges), func(r, s *Range) int { return cmp.Compare(r.ID, s.ID) })
}

func (a *algebra) extent(r *Range) poly { return a.poly(r.Extent) }

// intern returns one representative of equal atoms, so that comparing them is
// comparing pointers nearly always.
func (a *algebra) intern(e *Expr) *Expr {
	old, ok := a.atoms[e.hash]
	if !ok {
		put(&a.atoms, e.hash, e)
		return e
	}
	if Equal(old, e) {
		return old
	}
	return e
}

func (a *algebra) simplify(e *Expr) *Expr {
	if e == nil {
		return nil
	}
	out, ok := a.exprs.get(e)
	if !ok {
		out = a.simplifyNode(e)
		switch {
		case len(a.granted) > 0 && a.isGranted(out):
			out = truthExpr(true)
		case Equal(out, e):
			out = e
		}
		if !e.Span.IsZero() {
			out = out.At(e.Span)
		}
		a.exprs.set(e, out)
	}
	return out
}

func (a *algebra) simplifyNode(e *Expr) *Expr {
	switch {
	case e.Type == Index:
		return a.expr(a.poly(e))
	case isComparison(e.Op) && e.Args[0].Type == Index:
		return a.comparison(e)
	case e.Op == OpAnd || e.Op == OpOr:
		return a.junction(e.Op, a.simplify(e.Args[0]), a.simplify(e.Args[1]))
	case e.Op == OpNot:
		return a.negation(a.simplify(e.Args[0]))
	case e.Op == OpSelect:
		return a.selection(e)
	case e.Op == OpReduce:
		return a.reduction(e)
	}
	return e.WithParts(a.simplify)
}

func (a *algebra) selection(e *Expr) *Expr {
	c := a.simplify(e.Args[0])
	if c.Op == OpConst {
		return a.simplify(e.Args[2-c.Int])
	}
	return e.WithParts(a.simplify)
}

// reduction simplifies a nested reduction with its ranges in scope.
func (a *algebra) reduction(e *Expr) *Expr {
	ranges := maps.Clone(a.scope())
	for _, r := range e.Reduce.Ranges {
		ranges[r] = true
	}
	inner := newAlgebraOver(a.facts, ranges)
	out := e.WithParts(inner.simplify)
	if w := out.Reduce.Where; w != nil && w.IsConst(1) {
		r := *out.Reduce
		r.Where = nil
		return Reduce(&r, out.Args[0])
	}
	return out
}

// poly returns the canonical polynomial of an index expression. Where a
// coefficient overflows, the expression is an atom.
func (a *algebra) poly(e *Expr) poly {
	if p, ok := a.polys.get(e); ok {
		return p
	}
	outer := a.overflow
	a.overflow = false
	p := a.convert(e)
	if a.overflow {
		p = a.opaque(e)
	}
	a.overflow = outer
	a.polys.set(e, p)
	return p
}

// opaque makes e an atom with canonical arguments.
func (a *algebra) opaque(e *Expr) poly { return atomPoly(a.intern(e.WithParts(a.simplify))) }

func (a *algebra) convert(e *Expr) poly {
	switch e.Op {
	case OpConst:
		if e.Int == math.MinInt64 {
			return a.opaque(e) // coefficients can always be negated
		}
		return constPoly(e.Int)
	case OpRange:
		return a.rangePoly(e)
	case OpSym:
		return a.symbol(e)
	case OpAdd:
		return a.add(a.poly(e.Args[0]), a.poly(e.Args[1]))
	case OpSub:
		return a.sub(a.poly(e.Args[0]), a.poly(e.Args[1]))
	case OpNeg:
		return a.neg(a.poly(e.Args[0]))
	case OpMul:
		return a.multiplied(e)
	case OpFloorDiv:
		return a.floorDiv(a.poly(e.Args[0]), a.poly(e.Args[1]))
	case OpMod:
		return a.mod(a.poly(e.Args[0]), a.poly(e.Args[1]))
	case OpMin, OpMax:
		return a.extremum(e.Op, a.poly(e.Args[0]), a.poly(e.Args[1]))
	case OpSelect:
		return a.choice(e)
	case OpCast:
		return a.cast(e)
	}
	return a.opaque(e)
}

// multiplied is the polynomial of a product. One that would have several terms made of data is not multiplied out: one product of
// numbers that may need more than 64 bits is cheaper than several, and their sum.
func (a *algebra) multiplied(e *Expr) poly {
	p, q := a.poly(e.Args[0]), a.poly(e.Args[1])
	out := a.mul(p, q)
	if len(p) < 2 && len(q) < 2 || !OfData(e) {
		return out
	}
	ofData := 0
	for _, t := range out {
		if slices.ContainsFunc(t.mono, OfData) {
			ofData++
		}
	}
	if ofData > 1 {
		return a.opaque(e)
	}
	return out
}

// rangePoly is the polynomial of a range: 0 if 0 is its only index.
func (a *algebra) rangePoly(e *Expr) poly {
	if c, ok := a.extent(e.Range).constant(); ok && c == 1 {
		return nil
	}
	return atomPoly(a.intern(e))
}

func (a *algebra) symbol(e *Expr) poly {
	n := a.facts.Divisible[e.Name]
	if n <= 1 {
		return atomPoly(a.intern(e))
	}
	return poly{{coef: n, mono: mono{a.intern(Apply(OpFloorDiv, Sym(e.Name), IntConst(n)))}}}
}

// reducedSymbol recognises the atom N/8 that stands for a symbol known to be a
// multiple of 8, and returns N and 8.
func (a *algebra) reducedSymbol(e *Expr) (sym *Expr, n int64, ok bool) {
	if e.Op != OpFloorDiv || e.Args[0].Op != OpSym || e.Args[1].Op != OpConst {
		return nil, 0, false
	}
	n = a.facts.Divisible[e.Args[0].Name]
	return e.Args[0], n, n > 1 && n == e.Args[1].Int
}

// extremum is the minimum or maximum of two polynomials.
func (a *algebra) extremum(op Op, p, q poly) poly {
	small, large := p, q
	if op == OpMax {
		small, large = q, p
	}
	switch {
	case a.proveNonneg(a.sub(large, small)):
		return p
	case a.proveNonneg(a.sub(small, large)):
		return q
	}
	shared := a.shared(p, q)
	x, y := a.expr(a.sub(p, shared)), a.expr(a.sub(q, shared))
	if compareAtoms(x, y) > 0 {
		x, y = y, x
	}
	return a.add(shared, a.atom(Apply(op, x, y)))
}

// shared returns the terms that p and q have in common.
func (a *algebra) shared(p, q poly) poly {
	var out poly
	for _, t := range p {
		for _, u := range q {
			if t.coef == u.coef && sameMono(t.mono, u.mono) {
				out = append(out, t)
			}
		}
	}
	return out
}

// atom returns the polynomial of an expression whose parts are canonical.
func (a *algebra) atom(e *Expr) poly { return atomPoly(a.intern(e)) }

func (a *algebra) choice(e *Expr) poly {
	c, x, y := a.simplify(e.Args[0]), a.poly(e.Args[1]), a.poly(e.Args[2])
	switch {
	case c.IsConst(1) || x.equal(y):
		return x
	case c.IsConst(0):
		return y
	}
	return a.atom(Where(c, a.expr(x), a.expr(y)))
}

// cast sees through an index stored as i64, which holds every index.
func (a *algebra) cast(e *Expr) poly {
	inner := e.Args[0]
	if inner.Op == OpCast && inner.Type == I64 && inner.Args[0].Type == Index {
		return a.poly(inner.Args[0])
	}
	return a.opaque(e)
}
