package grad

import "github.com/fusec/fusec/ir"

// contribute adds the adjoint of a read, at each point of ranges, to the adjoint of the element
// that is read.
func (p *pass) contribute(ranges []*ir.Range, l leaf) {
	a := p.of(l.load.From)
	own := p.fresh(ranges)
	to := substitution(ranges, ir.Indices(own))
	s := &system{p: p, within: append(append([]*ir.Range(nil), own...), a.axes...), ranges: own,
		body: ir.Substitute(l.expr, to), singular: l.singular || hasInfinite(l.expr)}
	for d, index := range l.load.Args {
		s.eqs = append(s.eqs, equation{plain(ir.Substitute(index, to)), a.axes[d].At()})
	}
	if l.cond != nil && !l.guarded {
		s.conds = ir.Conjuncts(ir.Substitute(l.cond, to))
	}
	s.original = s.body
	systems := []*system{s}
	if p.opts.Delta {
		s.leaveAll()
	} else {
		systems = s.solve(maxPieces)
	}
	for _, s := range systems {
		if t, ok := s.term(); ok {
			a.sum = append(a.sum, t)
		}
	}
}

// hasInfinite reports whether an expression contains a constant that is infinite or NaN. Times 0 such a
// number is not 0.
func hasInfinite(e *ir.Expr) (found bool) {
	ir.Walk(e, func(e *ir.Expr) bool {
		found = found || e.Op == ir.OpConst && e.Type.IsFloat() && e.Val-e.Val != 0
		return !found
	})
	return found
}

// term is the result of one solved system: a sum over the ranges that remain, with all factors
// that do not depend on them outside. ok is false if the conditions never hold.
func (s *system) term() (t term, ok bool) {
	s.rebind()
	facts := s.p.facts
	inside, outside := []*ir.Expr(nil), []*ir.Expr(nil)
	for _, c := range s.allConds() {
		c = s.p.filled(ir.Simplify(c, facts))
		switch {
		case c.IsConst(1):
		case c.IsConst(0):
			return term{}, false
		case s.dependsOn(c):
			inside = append(inside, c)
		default:
			outside = append(outside, c)
		}
	}
	body := s.p.filled(simplifyIndices(s.body, facts))
	if len(s.ranges) > 0 {
		body = s.sum(body, all(inside))
	}
	return term{cond: all(outside), expr: body, singular: s.singular}, true
}

// rebind replaces the ranges that remain by new ones for this system alone, because the pieces
// of a system share ranges.
func (s *system) rebind() {
	own := s.p.fresh(s.ranges)
	with := substitution(s.ranges, ir.Indices(own))
	s.substitute(with)
	s.ranges = own
}

// sum is the sum of body over the ranges that remain, where cond holds.
func (s *system) sum(body, cond *ir.Expr) *ir.Expr {
	in, out := body, (*ir.Expr)(nil)
	if cond == nil { // with a condition the sum may have no terms, and then an infinite factor must not be outside
		in, out = s.separate(body)
	}
	if in == nil { // the same term for every point
		for _, r := range s.ranges {
			out = mul(out, ir.Cast(ir.Cast(r.Extent, ir.I64), body.Type))
		}
		return out
	}
	sum := ir.Reduce(&ir.Reduction{Op: ir.Sum, Ranges: s.ranges, Where: cond}, in)
	if out == nil {
		return sum
	}
	return mul(out, sum)
}

// separate splits a product into the factors that depend on the ranges that remain and those
// that do not; nil for none.
func (s *system) separate(e *ir.Expr) (in, out *ir.Expr) {
	switch {
	case !s.dependsOn(e):
		return nil, e
	case e.Op == ir.OpMul:
		in, out = s.separate(e.Args[0])
		in2, out2 := s.separate(e.Args[1])
		return times(in, in2), times(out, out2)
	case e.Op == ir.OpNeg:
		in, out = s.separate(e.Args[0])
		if out == nil {
			return neg(in), nil
		}
		return in, neg(out)
	case e.Op == ir.OpDiv && !s.dependsOn(e.Args[1]):
		in, out = s.separate(e.Args[0])
		if out == nil {
			out = num(e, 1)
		}
		return in, div(out, e.Args[1])
	}
	return e, nil
}

// times is a product of which either factor may be absent, which is 1.
func times(a, b *ir.Expr) *ir.Expr {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return mul(a, b)
}

func (s *system) dependsOn(e *ir.Expr) bool {
	free := ir.FreeRanges(e)
	for _, r := range s.ranges {
		if free[r] {
			return true
		}
	}
	return false
}

// filled gives a fill of 0 to the reads of e that may now be outside, and replaces reads that always are
// outside by their fill.
func (p *pass) filled(e *ir.Expr) *ir.Expr {
	return ir.Rewrite(e, func(e *ir.Expr) *ir.Expr {
		if e.Op != ir.OpLoad {
			return e
		}
		fill := ir.IntNum(e.Type, 0)
		if e.Fill != nil && !e.NoElse {
			fill = e.Fill
		}
		switch inside := ir.Inside(e.From.Shape(), e.Args, p.facts); {
		case inside != nil && inside.IsConst(0):
			return fill
		case e.Fill != nil && !e.NoElse:
			return e
		case inside == nil:
			return ir.Load(e.From, e.Args, e.Fill).At(e.Span)
		}
		return ir.Load(e.From, e.Args, fill).At(e.Span)
	})
}

// simplifyIndices brings the indices of the reads of e to their canonical form.
func simplifyIndices(e *ir.Expr, facts ir.Facts) *ir.Expr {
	return ir.Rewrite(e, func(e *ir.Expr) *ir.Expr {
		if e.Op != ir.OpLoad || len(e.Args) == 0 {
			return e
		}
		next := ir.SimplifyAll(e.Args, facts)
		for d := range next {
			if next[d] != e.Args[d] {
				out := ir.Load(e.From, next, e.Fill).At(e.Span)
				if e.NoElse {
					out = out.Bare()
				}
				return out
			}
		}
		return e
	})
}

// all is the condition that all of several hold; nil for none.
func all(conds []*ir.Expr) (out *ir.Expr) {
	for _, c := range conds {
		out = ir.Both(out, c)
	}
	return out
}
