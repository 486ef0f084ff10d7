package parser

import (
	"math/bits"

	"github.com/fusec/fusec/ir"
)

// indexOp applies op to Index expressions, folding what is constant.
func indexOp(op ir.Op, a, b *ir.Expr) *ir.Expr {
	if a.Op == ir.OpConst && b.Op == ir.OpConst && !(op == ir.OpMul && mulOverflows(a.Int, b.Int)) {
		return ir.IntConst(op.Info().Int(a.Int, b.Int, 0))
	}
	switch {
	case op == ir.OpAdd && a.IsConst(0), op == ir.OpMul && a.IsConst(1):
		return b
	case (op == ir.OpAdd || op == ir.OpSub) && b.IsConst(0), (op == ir.OpMul || op == ir.OpFloorDiv) && b.IsConst(1):
		return a
	case op == ir.OpMul && (a.IsConst(0) || b.IsConst(0)), op == ir.OpMod && b.IsConst(1):
		return ir.IntConst(0)
	}
	return ir.Apply(op, a, b)
}

func addIndex(a, b *ir.Expr) *ir.Expr { return indexOp(ir.OpAdd, a, b) }
func subIndex(a, b *ir.Expr) *ir.Expr { return indexOp(ir.OpSub, a, b) }
func mulIndex(a, b *ir.Expr) *ir.Expr { return indexOp(ir.OpMul, a, b) }
func divIndex(a, b *ir.Expr) *ir.Expr { return indexOp(ir.OpFloorDiv, a, b) }
func modIndex(a, b *ir.Expr) *ir.Expr { return indexOp(ir.OpMod, a, b) }

func mulOverflows(a, b int64) bool {
	if a == -1<<63 || b == -1<<63 {
		return a != 0 && b != 0 && a != 1 && b != 1
	}
	hi, lo := bits.Mul64(uint64(max(a, -a)), uint64(max(b, -b)))
	return hi != 0 || lo > 1<<63-1
}

// polynomial is the normal form of an Index expression: a sum of products of
// atoms (ranges, symbols, and divisions and the like taken whole).
type polynomial []monomial

type monomial struct {
	coef  int64
	atoms []*ir.Expr // ordered by hash
}

// polynomialOf expands e; it gives up on big ones by keeping them whole.
func polynomialOf(e *ir.Expr) polynomial {
	switch e.Op {
	case ir.OpConst:
		return polynomial{}.plus(monomial{coef: e.Int}, 1)
	case ir.OpAdd, ir.OpSub:
		sign := int64(1)
		if e.Op == ir.OpSub {
			sign = -1
		}
		return polynomialOf(e.Args[0]).plusAll(polynomialOf(e.Args[1]), sign)
	case ir.OpNeg:
		return polynomial{}.plusAll(polynomialOf(e.Args[0]), -1)
	case ir.OpMul:
		return polynomialOf(e.Args[0]).times(polynomialOf(e.Args[1]), e)
	case ir.OpFloorDiv:
		return dividePolynomial(e)
	}
	return polynomial{{1, []*ir.Expr{e}}}
}

func dividePolynomial(e *ir.Expr) polynomial {
	whole := polynomial{{1, []*ir.Expr{e}}}
	p, by := polynomialOf(e.Args[0]), e.Args[1]
	if by.Op != ir.OpConst || by.Int == 0 {
		return whole
	}
	out := make(polynomial, len(p))
	for i, m := range p {
		if m.coef%by.Int != 0 {
			return whole
		}
		out[i] = monomial{m.coef / by.Int, m.atoms}
	}
	return out
}

func (p polynomial) plusAll(q polynomial, sign int64) polynomial {
	for _, m := range q {
		p = p.plus(m, sign)
	}
	return p
}

func (p polynomial) plus(m monomial, sign int64) polynomial {
	for i, have := range p {
		if !sameAtoms(have.atoms, m.atoms) {
			continue
		}
		out := append(polynomial(nil), p...)
		out[i].coef += sign * m.coef
		if out[i].coef == 0 {
			out = append(out[:i], out[i+1:]...)
		}
		return out
	}
	if m.coef == 0 {
		return p
	}
	return append(append(polynomial(nil), p...), monomial{sign * m.coef, m.atoms})
}

func (p polynomial) times(q polynomial, whole *ir.Expr) polynomial {
	const most = 64 // products of long sums are kept whole
	if len(p)*len(q) > most {
		return polynomial{{1, []*ir.Expr{whole}}}
	}
	var out polynomial
	for _, a := range p {
		for _, b := range q {
			if mulOverflows(a.coef, b.coef) {
				return polynomial{{1, []*ir.Expr{whole}}}
			}
			out = out.plus(monomial{a.coef * b.coef, mergeAtoms(a.atoms, b.atoms)}, 1)
		}
	}
	return out
}

func mergeAtoms(a, b []*ir.Expr) []*ir.Expr {
	out := make([]*ir.Expr, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if a[0].Hash() <= b[0].Hash() {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
}

func sameAtoms(a, b []*ir.Expr) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !ir.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

// constant returns the value of p where it has no atoms.
func (p polynomial) constant() (int64, bool) {
	switch {
	case len(p) == 0:
		return 0, true
	case len(p) == 1 && len(p[0].atoms) == 0:
		return p[0].coef, true
	}
	return 0, false
}

// expr builds the expression that p stands for.
func (p polynomial) expr() *ir.Expr {
	var sum *ir.Expr
	rest := int64(0)
	for _, m := range p {
		if len(m.atoms) == 0 {
			rest = m.coef
			continue
		}
		t := m.atoms[0]
		for _, a := range m.atoms[1:] {
			t = mulIndex(t, a)
		}
		switch {
		case sum == nil:
			sum = mulIndex(ir.IntConst(m.coef), t)
		case m.coef < 0:
			sum = subIndex(sum, mulIndex(ir.IntConst(-m.coef), t))
		default:
			sum = addIndex(sum, mulIndex(ir.IntConst(m.coef), t))
		}
	}
	switch {
	case sum == nil:
		return ir.IntConst(rest)
	case rest < 0:
		return subIndex(sum, ir.IntConst(-rest))
	}
	return addIndex(sum, ir.IntConst(rest))
}

// normal returns e in the form that equal sizes share.
func normal(e *ir.Expr) *ir.Expr {
	if e.Op == ir.OpConst || e.Op == ir.OpSym || e.Op == ir.OpRange {
		return e
	}
	return polynomialOf(e).expr()
}

// sameSize reports whether a and b are equal whatever the symbols are.
func sameSize(a, b *ir.Expr) bool {
	if a.Op == ir.OpConst && b.Op == ir.OpConst {
		return a.Int == b.Int
	}
	if ir.Equal(a, b) {
		return true
	}
	d, ok := polynomialOf(subIndex(a, b)).constant()
	return ok && d == 0
}

// atLeast0 reports whether e >= 0 is plain: every coefficient is positive and
// symbols and ranges are never negative.
func atLeast0(e *ir.Expr) bool {
	for _, m := range polynomialOf(e) {
		if m.coef < 0 {
			return false
		}
		for _, a := range m.atoms {
			if a.Op != ir.OpSym && a.Op != ir.OpRange && !(a.Op == ir.OpMod && a.Args[1].Op == ir.OpConst) {
				return false
			}
		}
	}
	return true
}

// inside reports whether 0 <= e < extent is plain, for all values of the ranges
// in e. It may say no for an index that is inside.
func inside(e, extent *ir.Expr) bool {
	if e.Op == ir.OpRange {
		return sameSize(e.Range.Extent, extent)
	}
	if e.Op == ir.OpMod && sameSize(e.Args[1], extent) {
		return extent.Op == ir.OpConst && extent.Int > 0
	}
	p := polynomialOf(e)
	low, high := p, p
	for _, m := range p {
		if len(m.atoms) == 1 && m.atoms[0].Op == ir.OpRange && m.atoms[0].Range.Extent != nil {
			last := polynomialOf(subIndex(m.atoms[0].Range.Extent, ir.IntConst(1)))
			to := polynomial{}
			for _, t := range last {
				if mulOverflows(t.coef, m.coef) {
					return false
				}
				to = to.plus(monomial{t.coef * m.coef, t.atoms}, 1)
			}
			if m.coef > 0 {
				low, high = low.plus(m, -1), high.plus(m, -1).plusAll(to, 1)
			} else {
				low, high = low.plus(m, -1).plusAll(to, 1), high.plus(m, -1)
			}
		}
	}
	gap := polynomialOf(extent).plusAll(high, -1).plus(monomial{coef: 1}, -1)
	return atLeast0(low.expr()) && atLeast0(gap.expr())
}

// product multiplies sizes; ok is false where it does not fit in 64 bits.
func product(sizes []*ir.Expr) (p *ir.Expr, ok bool) {
	p, fixed := ir.IntConst(1), int64(1)
	for _, s := range sizes {
		if s.Op == ir.OpConst {
			if mulOverflows(fixed, s.Int) {
				return ir.IntConst(0), false
			}
			fixed *= s.Int
			continue
		}
		p = mulIndex(p, s)
	}
	return mulIndex(ir.IntConst(fixed), p), true
}
