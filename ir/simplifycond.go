package ir

import "slices"

func isComparison(op Op) bool { return op >= OpLt && op <= OpNe }

func truthExpr(t bool) *Expr { return IntNum(Bool, truthInt(t)) }

// comparison decides a comparison of indices, or writes it canonically. Indices made of data stay on their sides, where their
// difference, which may need more than 64 bits, need not be computed.
func (a *algebra) comparison(e *Expr) *Expr {
	outer := a.overflow
	a.overflow = false
	out := a.compare(e.Op, a.poly(e.Args[0]), a.poly(e.Args[1]))
	onBothSides := func(e *Expr) bool { return isComparison(e.Op) && OfData(e.Args[0]) && OfData(e.Args[1]) }
	if a.overflow || out.Op != OpConst && (onBothSides(e) || onBothSides(out)) {
		out = e.WithParts(a.simplify)
	}
	a.overflow = outer
	return out
}

func (a *algebra) compare(op Op, p, q poly) *Expr {
	switch op {
	case OpLt:
		return a.inequality(a.plus(a.sub(q, p), -1))
	case OpLe:
		return a.inequality(a.sub(q, p))
	case OpGt:
		return a.inequality(a.plus(a.sub(p, q), -1))
	case OpGe:
		return a.inequality(a.sub(p, q))
	}
	return a.equation(op, a.sub(p, q))
}

// inequality is the condition p >= 0.
func (a *algebra) inequality(p poly) *Expr {
	switch {
	case a.proveNonneg(p):
		return truthExpr(true)
	case a.proveNonneg(a.plus(a.neg(p), -1)):
		return truthExpr(false)
	}
	if q, ok := a.withoutQuotient(p); ok {
		return a.inequality(q)
	}
	return a.writeInequality(p)
}

// withoutQuotient states p >= 0 without one of its quotients, where it can. What p is multiplied by then must not take it
// beyond 64 bits.
func (a *algebra) withoutQuotient(p poly) (poly, bool) {
	terms, c := p.split()
	g := contentOf(terms)
	p = a.plus(reduce(terms, g), FloorDiv(c, g))
	for i, t := range p {
		if len(t.mono) != 1 || t.mono[0].Op != OpFloorDiv || t.coef*t.coef != 1 {
			continue
		}
		if x, ok := a.parts[t.mono[0]]; ok {
			rest := slices.Concat(p[:i], p[i+1:])
			q := a.clearQuotient(x, t.coef, rest)
			return q, q.small()
		}
	}
	return nil, false
}

// writeInequality writes p >= 0 with the subtracted terms on the left side.
func (a *algebra) writeInequality(p poly) *Expr {
	terms, c := p.split()
	g := contentOf(terms)
	left, right := signSplit(a.foldMods(reduce(terms, g)))
	c = FloorDiv(c, g)
	switch {
	case len(left) == 0:
		return Apply(OpLe, IntConst(-c), a.sum(right))
	case c < 0:
		left = a.plus(left, -1-c)
	case c > 0 || len(right) == 0:
		right = a.plus(right, a.addInt(c, 1))
	default:
		return Apply(OpLe, a.sum(left), a.sum(right))
	}
	return Apply(OpLt, a.sum(left), a.sum(right))
}

// contentOf is the greatest common divisor of the coefficients.
func contentOf(p poly) int64 {
	var g int64
	for _, t := range p {
		g = gcd(g, t.coef)
	}
	return max(g, 1)
}

// reduce divides every coefficient by g, which divides them all.
func reduce(p poly, g int64) poly {
	out := make(poly, len(p))
	for i, t := range p {
		out[i] = term{t.coef / g, t.mono}
	}
	return out
}

// signSplit returns the terms that are subtracted and those that are added, all
// with positive coefficients: p = right - left.
func signSplit(p poly) (left, right poly) {
	for _, t := range p {
		if t.coef < 0 {
			left = append(left, term{-t.coef, t.mono})
		} else {
			right = append(right, t)
		}
	}
	return left, right
}

// equation is the condition p == 0, or p != 0.
func (a *algebra) equation(op Op, p poly) *Expr {
	if len(p) == 0 {
		return truthExpr(op == OpEq)
	}
	terms, c := p.split()
	g := contentOf(terms)
	if c%g != 0 || a.proveNonneg(a.plus(p, -1)) || a.proveNonneg(a.plus(a.neg(p), -1)) {
		return truthExpr(op == OpNe)
	}
	p = a.plus(reduce(terms, g), c/g)
	if len(p) > 0 && p[0].coef < 0 {
		p = a.neg(p)
	}
	right, left := signSplit(a.foldMods(p))
	return Apply(op, a.sum(left), a.sum(right))
}

// junction is the conjunction or disjunction of simplified conditions, less the
// parts that others imply.
func (a *algebra) junction(op Op, x, y *Expr) *Expr {
	neutral := truthInt(op == OpAnd)
	var parts []*Expr
	for _, part := range append(Operands(op, x), Operands(op, y)...) {
		switch {
		case part.Op != OpConst:
			parts = a.absorb(op, parts, part)
		case part.Int != neutral:
			return part
		}
		if len(parts) > 0 && parts[0].Op == OpConst {
			return parts[0]
		}
	}
	if len(parts) == 0 {
		return truthExpr(op == OpAnd)
	}
	out := parts[0]
	for _, part := range parts[1:] {
		out = Apply(op, out, part)
	}
	return out
}

// Operands flattens a nested operation of two arguments, such as a sum or a product: it lists, in order, the
// arguments that are not the same operation themselves.
func Operands(op Op, e *Expr) []*Expr {
	return Flattened(e, func(e *Expr) []*Expr {
		if e.Op != op {
			return nil
		}
		return e.Args
	})
}

// SumParts is what a sum, a difference or a negated number is made of; nil for other expressions.
func SumParts(e *Expr) []*Expr {
	switch e.Op {
	case OpAdd, OpSub, OpNeg:
		return e.Args
	}
	return nil
}

// MostOperands is the most parts into which an expression is flattened. One that has more stays whole: parts are
// shared, so that there are twice as many after each step of x = x * x.
const MostOperands = 128

// Flattened lists, in order, the expressions that e is made of, where parts opens one; nil where it is whole. e itself is
// all of the list if there are more than MostOperands.
func Flattened(e *Expr, parts func(*Expr) []*Expr) []*Expr {
	var out []*Expr
	var fits func(e *Expr) bool
	fits = func(e *Expr) bool {
		inside := parts(e)
		if inside == nil {
			out = append(out, e)
			return len(out) <= MostOperands
		}
		return !slices.ContainsFunc(inside, func(part *Expr) bool { return !fits(part) })
	}
	if !fits(e) {
		return []*Expr{e}
	}
	return out
}

// absorb adds a condition to the parts of a junction, dropping what has become
// redundant. It returns a single constant where two parts decide the junction.
func (a *algebra) absorb(op Op, parts []*Expr, next *Expr) []*Expr {
	var out []*Expr
	for i, part := range parts {
		strong, weak := part, next
		if op == OpOr {
			strong, weak = next, part
		}
		switch {
		case Equal(part, next) || a.implies(strong, weak):
			return append(out, parts[i:]...)
		case a.implies(weak, strong):
			continue
		case a.clash(op, part, next):
			return []*Expr{truthExpr(op == OpOr)}
		}
		out = append(out, part)
	}
	return append(out, next)
}

// margin returns p for a condition p >= 0 on indices.
func (a *algebra) margin(c *Expr) (poly, bool) {
	if len(c.Args) != 2 || c.Args[0].Type != Index {
		return nil, false
	}
	switch c.Op {
	case OpLt:
		return a.plus(a.sub(a.poly(c.Args[1]), a.poly(c.Args[0])), -1), true
	case OpLe:
		return a.sub(a.poly(c.Args[1]), a.poly(c.Args[0])), true
	}
	return nil, false
}

// implies reports whether one canonical condition is known to imply another.
func (a *algebra) implies(x, y *Expr) bool {
	p, ok := a.margin(x)
	if !ok {
		return false
	}
	q, ok := a.margin(y)
	return ok && a.proveNonneg(a.sub(q, p))
}

// clash reports whether two conditions cannot both hold (and), or cannot both
// fail (or).
func (a *algebra) clash(op Op, x, y *Expr) bool {
	p, ok := a.margin(x)
	if !ok {
		return false
	}
	q, ok := a.margin(y)
	if !ok {
		return false
	}
	if op == OpAnd {
		return a.proveNonneg(a.plus(a.neg(a.add(p, q)), -1))
	}
	return a.proveNonneg(a.plus(a.add(p, q), 1))
}

// negation is the opposite of a simplified condition.
func (a *algebra) negation(c *Expr) *Expr {
	switch {
	case c.Op == OpConst:
		return truthExpr(c.Int == 0)
	case c.Op == OpNot:
		return c.Args[0]
	case isComparison(c.Op) && c.Args[0].Type == Index:
		return a.comparison(Apply(opposite(c.Op), c.Args...))
	}
	return Apply(OpNot, c)
}

// opposite returns the comparison that holds where op does not.
func opposite(op Op) Op {
	switch op {
	case OpLt:
		return OpGe
	case OpLe:
		return OpGt
	case OpGt:
		return OpLe
	case OpGe:
		return OpLt
	case OpEq:
		return OpNe
	}
	return OpEq
}
