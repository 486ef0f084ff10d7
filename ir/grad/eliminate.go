package grad

import (
	"slices"

	"github.com/fusec/fusec/ir"
)

// The eliminations of an equation. Each reports whether it has applied.

// determined: there is no range on the left side.
func (s *system) determined(e equation) bool {
	if s.dependsOn(e.left) {
		return false
	}
	s.require(ir.Apply(ir.OpEq, e.left, e.right))
	return true
}

// single: c*r + b == u, with no other range; r is (u - b)/c where c divides that.
func (s *system) single(e equation) bool {
	r := s.only(e.left)
	if r == nil {
		return false
	}
	c, ok := ir.Stride(e.left, r, s.facts())
	if !ok {
		return false
	}
	u := minus(e.right, s.without(e.left, r))
	switch {
	case c.IsConst(1):
		s.replace(r, u)
	case c.IsConst(-1):
		s.replace(r, negated(u))
	case c.Op == ir.OpConst && c.Int < -1:
		return s.divided(r, negated(u), negated(c))
	case c.Op == ir.OpConst && c.Int > 1 || ir.ProveNonNegative(minus(c, ir.IntConst(1)), s.facts()):
		return s.divided(r, u, c)
	default:
		return false
	}
	return true
}

// divided: c*r == u for c > 0.
func (s *system) divided(r *ir.Range, u, c *ir.Expr) bool {
	s.require(ir.Apply(ir.OpEq, rest(u, c), ir.IntConst(0)))
	s.replace(r, over(u, c))
	return true
}

// quotient: a / n == u; a is n*u + t with t a new range over n. Also c*(a/n) == u.
func (s *system) quotient(e equation) bool {
	if c, atom, ok := scaled(e.left); ok && (atom.Op == ir.OpFloorDiv || atom.Op == ir.OpMod) {
		s.require(ir.Apply(ir.OpEq, rest(e.right, c), ir.IntConst(0)))
		s.equal(atom, over(e.right, c))
		return true
	}
	if e.left.Op != ir.OpFloorDiv || s.dependsOn(e.left.Args[1]) || !positive(e.left.Args[1]) {
		return false
	}
	n := e.left.Args[1]
	t := s.add("t", n)
	s.equal(e.left.Args[0], plus(ir.Apply(ir.OpMul, n, e.right), t.At()))
	return true
}

// scaled splits c*atom, for a constant c > 1.
func scaled(e *ir.Expr) (c, atom *ir.Expr, ok bool) {
	if e.Op != ir.OpMul {
		return nil, nil, false
	}
	for i, a := range e.Args {
		if a.Op == ir.OpConst && a.Int > 1 {
			return a, e.Args[1-i], true
		}
	}
	return nil, nil, false
}

// positive reports whether a divisor is a size or a number above 0. A size may be 0, but then
// so is the range that has it.
func positive(n *ir.Expr) bool {
	return n.Op == ir.OpConst && n.Int > 0 || n.Op != ir.OpConst && !ir.Has(n, ir.OpLoad, ir.OpRange)
}

// remainder: a % n == u. Where a is r + b and r runs over n, r is (u - b) % n. Else a is
// n*t + u, with t a new range over the values that a / n has.
func (s *system) remainder(e equation) bool {
	if e.left.Op != ir.OpMod || s.dependsOn(e.left.Args[1]) || !positive(e.left.Args[1]) {
		return false
	}
	a, n := e.left.Args[0], e.left.Args[1]
	inside := ir.Both(ir.Apply(ir.OpLe, ir.IntConst(0), e.right), ir.Apply(ir.OpLt, e.right, n))
	if r := s.only(a); r != nil && ir.SameSize(r.Extent, n) {
		if c, ok := ir.Stride(a, r, s.facts()); ok && (c.IsConst(1) || c.IsConst(-1)) {
			s.require(inside)
			s.replace(r, rest(ir.Apply(ir.OpMul, c, minus(e.right, s.without(a, r))), n))
			return true
		}
	}
	lo, hi := ir.Bounds(a, s.facts())
	if lo == nil || hi == nil {
		return false
	}
	least := over(lo, n)
	t := s.add("t", ir.Apply(ir.OpMax, ir.IntConst(0), plus(minus(over(hi, n), least), ir.IntConst(1))))
	s.require(inside)
	s.equal(a, plus(ir.Apply(ir.OpMul, n, plus(t.At(), least)), e.right))
	return true
}

// digits: q*c + t == u where t runs over c or less; t is u%c and q is u/c.
func (s *system) digits(e equation) bool {
	return s.split(e, func(t *ir.Range, c *ir.Expr) bool {
		if !ir.SameSize(t.Extent, c) && !ir.ProveNonNegative(minus(c, t.Extent), s.facts()) {
			return false
		}
		u := minus(e.right, ir.IntConst(0))
		q := over(s.without(e.left, t), c)
		s.replace(t, rest(u, c))
		s.equal(s.simple(q), over(u, c))
		return true
	})
}

// overlap: q*c + t == u where t runs over T > c points, c a number: t stays, as the tap of a window, and q is (u - t)/c
// where c divides that. Passes sum over the taps of each residue alone. If t is longer than all that q is made of, these are
// the taps, c apart from each other, and t is what an equation of stride 1 determines.
func (s *system) overlap(e equation) bool {
	return s.split(e, func(t *ir.Range, c *ir.Expr) bool {
		if c.Op != ir.OpConst || c.Int < 2 || s.longest(t, s.without(e.left, t)) {
			return false
		}
		q, u := s.simple(over(s.without(e.left, t), c)), minus(e.right, t.At())
		s.require(ir.Apply(ir.OpEq, rest(u, c), ir.IntConst(0)))
		s.equal(q, over(u, c))
		return true
	})
}

// longest reports whether a range is longer than each in an expression.
func (s *system) longest(t *ir.Range, e *ir.Expr) bool {
	free := ir.FreeRanges(e)
	return !slices.ContainsFunc(s.ranges, func(r *ir.Range) bool { return free[r] && !longer(t, r) })
}

// split tries the ways in which the left side is a multiple of c, plus a range t.
func (s *system) split(e equation, use func(t *ir.Range, c *ir.Expr) bool) bool {
	free := ir.FreeRanges(e.left)
	for _, t := range s.ranges {
		if !free[t] {
			continue
		}
		if c, ok := ir.Stride(e.left, t, s.facts()); !ok || !c.IsConst(1) {
			continue
		}
		q := s.without(e.left, t)
		if !s.dependsOn(q) {
			continue
		}
		for _, c := range s.factors(q, t) {
			if s.simple(rest(q, c)).IsConst(0) && use(t, c) {
				return true
			}
		}
	}
	return false
}

// factors are the candidates for a factor of q: the extent of t, and the strides of other
// ranges.
func (s *system) factors(q *ir.Expr, t *ir.Range) []*ir.Expr {
	out := []*ir.Expr{t.Extent}
	free := ir.FreeRanges(q)
	for _, r := range s.ranges {
		if c, ok := ir.Stride(q, r, s.facts()); free[r] && ok && positive(c) {
			out = append(out, c)
		}
	}
	if c, _, ok := scaled(q); ok {
		out = append(out, c)
	}
	return slices.DeleteFunc(out, func(c *ir.Expr) bool { return c.IsConst(1) || c.IsConst(0) })
}

// beside: ±(a / n) + b == u, where a has a range that is longer than each in b; a is n*q + t with t a new range over n, and q
// what the equation says. The taps of a transposed convolution that are apart come here: (p - 4*i) / 3 is (p - i) / 3 - i.
func (s *system) beside(e equation) bool {
	var quotient *ir.Expr
	ir.Walk(e.left, func(x *ir.Expr) bool {
		if x.Op == ir.OpFloorDiv && quotient == nil && s.dependsOn(x) && !s.dependsOn(x.Args[1]) && positive(x.Args[1]) {
			quotient = x
		}
		return quotient == nil
	})
	if quotient == nil {
		return false
	}
	q := s.p.g.NewRange("q", ir.IntConst(2)) // in place of the quotient
	left := ir.Rewrite(e.left, func(x *ir.Expr) *ir.Expr {
		if ir.Equal(x, quotient) {
			return q.At()
		}
		return x
	})
	c, ok := ir.Stride(left, q, s.facts())
	if !ok || !c.IsConst(1) && !c.IsConst(-1) {
		return false
	}
	b := s.without(left, q)
	free := ir.FreeRanges(quotient)
	if !slices.ContainsFunc(s.ranges, func(r *ir.Range) bool { return free[r] && s.longest(r, b) }) {
		return false
	}
	t := s.add("t", quotient.Args[1])
	by := ir.Apply(ir.OpMul, c, minus(e.right, b))
	s.equal(quotient.Args[0], plus(ir.Apply(ir.OpMul, quotient.Args[1], by), t.At()))
	return true
}

// unit: ±r + b == u, where b has other ranges, which stay.
func (s *system) unit(e equation) bool {
	r, c := s.linearIn(e.left, 1)
	if r == nil {
		return false
	}
	s.replace(r, ir.Apply(ir.OpMul, c, minus(e.right, s.without(e.left, r))))
	return true
}

// divisible: c*r + b == u, where b has other ranges.
func (s *system) divisible(e equation) bool {
	r, c := s.linearIn(e.left, -1)
	if r == nil {
		return false
	}
	u := minus(e.right, s.without(e.left, r))
	if c.Int < 0 {
		u, c = negated(u), ir.IntConst(-c.Int)
	}
	return s.divided(r, u, c)
}

// choice finds a condition that decides a minimum, a maximum or a choice in an index.
func (s *system) choice() (cond *ir.Expr) {
	for _, e := range s.eqs {
		ir.Walk(e.left, func(e *ir.Expr) bool {
			if cond != nil || e.Type != ir.Index || e.Op == ir.OpCast {
				return false
			}
			if !s.dependsOn(e) {
				return false
			}
			switch e.Op {
			case ir.OpMin, ir.OpMax:
				cond = ir.Apply(ir.OpLe, e.Args[0], e.Args[1])
			case ir.OpSelect:
				cond = e.Args[0]
			}
			return cond == nil
		})
	}
	return cond
}

// given is the part of the system in which a condition of its indices holds, or fails.
func (s *system) given(cond *ir.Expr, holds bool) *system {
	c := *s
	c.eqs = slices.Clone(s.eqs)
	truth := cond
	if !holds {
		truth = ir.Apply(ir.OpNot, cond)
	}
	c.require(truth)
	pick := func(e *ir.Expr) *ir.Expr {
		return ir.Rewrite(e, func(e *ir.Expr) *ir.Expr {
			switch {
			case e.Op == ir.OpSelect && ir.Equal(e.Args[0], cond):
				return e.Args[1+truthOf(!holds)]
			case (e.Op == ir.OpMin || e.Op == ir.OpMax) && ir.Equal(ir.Apply(ir.OpLe, e.Args[0], e.Args[1]), cond):
				return e.Args[truthOf(holds == (e.Op == ir.OpMax))]
			}
			return e
		})
	}
	for i, e := range c.eqs {
		c.eqs[i] = equation{pick(e.left), pick(e.right)}
	}
	return &c
}

func truthOf(b bool) int {
	if b {
		return 1
	}
	return 0
}
