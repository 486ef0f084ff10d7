package grad

import "github.com/fusec/fusec/ir"

// reduction gives what the terms of a reduction read their parts of its adjoint d, which is 0
// for sure where cond fails (nil: nothing is known).
func (p *pass) reduction(v *ir.Value, cond *ir.Expr, d term) {
	r := v.Reduce
	space := append(append([]*ir.Range(nil), v.Axes...), r.Ranges...)
	d.cond = r.Where
	seeds := []term{d}
	switch r.Op {
	case ir.Sum:
	case ir.Prod:
		seeds = p.product(v, d)
	case ir.Max, ir.Min:
		d.cond = ir.Both(d.cond, p.chosen(v))
		seeds = []term{d}
	default:
		return
	}
	p.spread(space, p.leaves(v.Body, nil, seeds...), cond)
}

// chosen is the condition under which a point is the one that a maximum, a minimum or an
// element at a rank is taken from: the first of equals.
func (p *pass) chosen(v *ir.Value) *ir.Expr {
	r := v.Reduce
	op := ir.ArgMax
	if r.Op == ir.Min {
		op = ir.ArgMin
	}
	arg := p.alike(v, "at", op, v.Body)
	point := ir.FlatOffset(extents(r.Ranges), ir.Indices(r.Ranges))
	at := ir.Cast(ir.Load(arg, ir.Indices(v.Axes), nil), ir.Index)
	cond := ir.Apply(ir.OpEq, point, at)
	if r.Rank == nil {
		return cond
	}
	low := ir.Apply(ir.OpLe, ir.IntConst(0), r.Rank)
	return ir.Both(cond, ir.Both(low, ir.Apply(ir.OpLt, r.Rank, r.Ranges[0].Extent)))
}

// product returns the adjoints of the factors of a product, without a division by a factor
// that is 0: with no zero among them, the product over the factor; with one zero, that one
// gets the product of the others; with more, none gets anything.
func (p *pass) product(v *ir.Value, d term) []term {
	b, at := wide(v.Body), ir.Indices(v.Axes)
	zero := ir.Apply(ir.OpEq, b, num(b, 0))
	zeros := ir.Load(p.alike(v, "zeros", ir.Sum, ir.Cast(zero, ir.I64)), at, nil)
	others := ir.Load(p.alike(v, "others", ir.Prod, ir.Where(zero, num(b, 1), b)), at, nil)
	all := mul(d.expr, others)
	is := func(n int64) *ir.Expr { return ir.Apply(ir.OpEq, zeros, ir.IntNum(ir.I64, n)) }
	return []term{
		{cond: ir.Both(d.cond, is(0)), expr: div(all, b), singular: true},
		{cond: ir.Both(d.cond, ir.Both(is(1), zero)), expr: all, singular: d.singular},
	}
}

// alike defines another reduction over the points of v's.
func (p *pass) alike(v *ir.Value, name string, op ir.Monoid, body *ir.Expr) *ir.Value {
	axes, ranges := p.fresh(v.Axes), p.fresh(v.Reduce.Ranges)
	to := substitution(v.Axes, ir.Indices(axes))
	for i, r := range v.Reduce.Ranges {
		to[r] = ranges[i].At()
	}
	r := ir.Reduction{Op: op, Ranges: ranges}
	if v.Reduce.Where != nil {
		r.Where = ir.Substitute(v.Reduce.Where, to)
	}
	if v.Reduce.Rank != nil {
		r.Rank = ir.Substitute(v.Reduce.Rank, to)
	}
	return p.g.Define(v.Name+"_"+name, axes, ir.Reduce(&r, ir.Substitute(body, to)), v.Origin)
}

func extents(ranges []*ir.Range) []*ir.Expr {
	out := make([]*ir.Expr, len(ranges))
	for i, r := range ranges {
		out[i] = r.Extent
	}
	return out
}
