package grad

import "github.com/fusec/fusec/ir"

// reduction adds to the adjoints of the values that the terms of a reduction read. d is the
// adjoint of the reduction; it is known to be 0 where cond fails (nil: nothing is known).
func (p *pass) reduction(v *ir.Value, cond *ir.Expr, d term) {
	r := v.Reduce
	space := append(append([]*ir.Range(nil), v.Axes...), r.Ranges...)
	d.cond = r.Where
	seeds := []term{d}
	switch r.Op {
	case ir.Sum:
	case ir.Prod:
		if points := dependsOn(v.Body, space); len(points) < len(space) {
			p.shared(v, points, cond, d)
			return
		}
		seeds = p.product(v, d)
	case ir.Max, ir.Min:
		d.cond = ir.Both(d.cond, p.chosen(v))
		seeds = []term{d}
	default:
		return
	}
	p.spread(space, p.leaves(v.Body, nil, seeds...), cond)
}

// chosen is the condition that a point is the one chosen by a maximum, a minimum or a rank.
func (p *pass) chosen(v *ir.Value) *ir.Expr {
	r := v.Reduce
	point := ir.FlatOffset(extents(r.Ranges), ir.Indices(r.Ranges))
	return ir.Both(ir.Apply(ir.OpEq, point, p.place(v)), ranked(r))
}

// place is the number of the point chosen by a maximum, a minimum or a rank, the first of
// equals; 0 if there is none.
func (p *pass) place(v *ir.Value) *ir.Expr {
	op := ir.ArgMax
	if v.Reduce.Op == ir.Min {
		op = ir.ArgMin
	}
	arg := p.alike(v, "at", op, v.Body)
	return ir.Cast(ir.Load(arg, ir.Indices(v.Axes), nil), ir.Index)
}

// ranked is the condition that there is an element at the rank of a reduction; nil where it has
// no rank.
func ranked(r *ir.Reduction) *ir.Expr {
	if r.Rank == nil {
		return nil
	}
	low := ir.Apply(ir.OpLe, ir.IntConst(0), r.Rank)
	return ir.Both(low, ir.Apply(ir.OpLt, r.Rank, r.Ranges[0].Extent))
}

// product returns the adjoints of the factors of a product, without dividing by a factor that
// is 0. Without zeros, a factor gets the product divided by the factor. With one zero, that
// factor gets the product of the others. With more, all get 0.
func (p *pass) product(v *ir.Value, d term) []term {
	b := wide(v.Body)
	zero := isZero(b)
	is, others := p.factors(v)
	all := mul(d.expr, others)
	return []term{
		{cond: ir.Both(d.cond, is(0)), expr: div(all, b), singular: true},
		{cond: ir.Both(d.cond, ir.Both(is(1), zero)), expr: all, singular: d.singular},
	}
}

// shared computes the adjoints of factors that belong to several products, as in a running
// product; a factor depends only on points. The contributions of all products are summed before
// they are divided by the factor. So the sum is over products alone, and the adjoint of a running
// product is a running sum.
func (p *pass) shared(v *ir.Value, points []*ir.Range, cond *ir.Expr, d term) {
	b := wide(v.Body)
	is, others := p.factors(v)
	all := mul(d.expr, others)
	space := append(append([]*ir.Range(nil), v.Axes...), v.Reduce.Ranges...)
	collect := func(name string, zeros int64) *ir.Expr {
		share := p.share(v, name, whereOr0(ir.Both(cond, is(zeros)), all))
		factor := p.g.Adopt(&ir.Value{Name: v.Name + "_" + name, Type: b.Type, Axes: p.fresh(points), Origin: v.Origin})
		got := term{cond: d.cond, expr: ir.Load(share, ir.Indices(v.Axes), nil)}
		p.contribute(space, leaf{ir.Load(factor, ir.Indices(points), nil), got})
		return p.settle(factor, p.of(factor)).at(ir.Indices(points))
	}
	zero := isZero(b)
	p.spread(points, p.leaves(v.Body, nil,
		term{cond: ir.Apply(ir.OpNot, zero), expr: div(collect("ratios", 0), b), singular: true},
		term{cond: zero, expr: collect("single", 1), singular: d.singular}), nil)
}

// share defines a value over the axes of v.
func (p *pass) share(v *ir.Value, name string, body *ir.Expr) *ir.Value {
	axes := p.fresh(v.Axes)
	return p.g.Define(v.Name+"_"+name, axes, ir.Substitute(body, substitution(v.Axes, ir.Indices(axes))), v.Origin)
}

// dependsOn lists those of ranges on which e depends.
func dependsOn(e *ir.Expr, ranges []*ir.Range) (out []*ir.Range) {
	free := ir.FreeRanges(e)
	for _, r := range ranges {
		if free[r] {
			out = append(out, r)
		}
	}
	return out
}

// factors defines the facts about the factors of a product that its derivative needs: is(n) is
// the condition that n of them are zeros, and others is the product of the factors that are not.
func (p *pass) factors(v *ir.Value) (is func(n int64) *ir.Expr, others *ir.Expr) {
	b, at := wide(v.Body), ir.Indices(v.Axes)
	zero := isZero(b)
	zeros := ir.Load(p.alike(v, "zeros", ir.Sum, ir.Cast(zero, ir.I64)), at, nil)
	others = ir.Load(p.alike(v, "others", ir.Prod, ir.Where(zero, num(b, 1), b)), at, nil)
	return func(n int64) *ir.Expr { return ir.Apply(ir.OpEq, zeros, ir.IntNum(ir.I64, n)) }, others
}

func isZero(e *ir.Expr) *ir.Expr { return ir.Apply(ir.OpEq, e, num(e, 0)) }

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
