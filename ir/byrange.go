package ir

// ByRange writes an index as a sum of ranges times their strides if strides contain differences:
// as o*(H*W - W*2) + q instead of o*H*W - o*W*2 + q. A stride does not depend on the ranges, so it
// is computed once for all points. Other indices stay as they are.
func ByRange(e *Expr) *Expr {
	free := FreeRanges(e)
	if len(free) == 0 || e.Op != OpAdd && e.Op != OpSub || !Has(e, OpSub) {
		return e
	}
	a := newAlgebraOver(Facts{}, free)
	p := a.poly(e)
	var sum *Expr
	for _, r := range sortedByID(free) {
		slope, rest, ok := p.linear(r.At())
		if !ok || len(slope) < 2 || !a.symbolic(slope) {
			continue
		}
		sum, p = addTerm(sum, Apply(OpMul, r.At(), a.expr(slope))), rest
	}
	if sum == nil || a.overflow {
		return e
	}
	if len(p) > 0 {
		sum = addTerm(sum, a.expr(p))
	}
	return sum.At(e.Span)
}

func addTerm(sum, term *Expr) *Expr {
	if sum == nil {
		return term
	}
	return Apply(OpAdd, sum, term)
}
