package grad

import "github.com/fusec/fusec/ir"

// declared adds to the adjoints of the operands of a value with a declared derivative. The
// values of the rule are copied, with the adjoint d in place of its placeholder.
func (p *pass) declared(r *Rule, v *ir.Value, d settled) {
	if len(r.Terms) == 0 {
		return
	}
	to := map[*ir.Value]*ir.Value{r.Upstream: d.from}
	if d.from == nil {
		axes := p.fresh(v.Axes)
		to[r.Upstream] = p.g.Define("d_"+v.Name, axes, ir.Cast(d.at(nil), v.Type), v.Origin)
	}
	p.expand(r, to)
	for _, t := range r.Terms {
		if p.active[t.Of.From] {
			grad := wide(ir.RetargetLoads(t.Grad, to))
			p.contribute(t.Ranges, leaf{t.Of, term{expr: grad}})
		}
	}
}

// expand adds copies of a rule's values to the graph, and records them in to.
func (p *pass) expand(r *Rule, to map[*ir.Value]*ir.Value) {
	for _, old := range r.Values {
		to[old] = p.copied(old, to)
	}
	for _, old := range r.Values { // the rule's own values may have declared derivatives too
		if own := p.opts.Rules[old]; own != nil {
			p.opts.Rules[to[old]] = p.copiedRule(own, to)
		}
	}
}

// copied adds a copy of a value to the graph, with ranges of its own. It reads the values that
// to has in place of others.
func (p *pass) copied(v *ir.Value, to map[*ir.Value]*ir.Value) *ir.Value {
	c := &ir.Value{Name: v.Name, Type: v.Type, Body: v.Body, Origin: v.Origin, Axes: p.fresh(v.Axes)}
	swap := substitution(v.Axes, ir.Indices(c.Axes))
	if v.Reduce != nil {
		r := *v.Reduce
		r.Ranges = p.fresh(r.Ranges)
		for i, old := range v.Reduce.Ranges {
			swap[old] = r.Ranges[i].At()
		}
		c.Reduce = &r
	}
	c.MapExprs(func(e *ir.Expr) *ir.Expr { return ir.Substitute(ir.RetargetLoads(e, to), swap) })
	p.g.Values = append(p.g.Values, p.g.Adopt(c))
	return c
}

// copiedRule is the rule of a copied value. The rule's own values are copied when the rule is
// used.
func (p *pass) copiedRule(r *Rule, to map[*ir.Value]*ir.Value) *Rule {
	out := &Rule{Upstream: r.Upstream}
	for _, v := range r.Values {
		c := *v
		c.MapExprs(func(e *ir.Expr) *ir.Expr { return ir.RetargetLoads(e, to) })
		out.Values = append(out.Values, &c)
	}
	inner := map[*ir.Value]*ir.Value{}
	for i, v := range r.Values {
		inner[v] = out.Values[i]
	}
	for _, v := range out.Values {
		v.MapExprs(func(e *ir.Expr) *ir.Expr { return ir.RetargetLoads(e, inner) })
	}
	for _, v := range r.Values {
		if own := p.opts.Rules[v]; own != nil {
			p.opts.Rules[inner[v]] = p.copiedRule(own, merge(to, inner))
		}
	}
	for _, t := range r.Terms {
		of, grad := ir.RetargetLoads(t.Of, to), ir.RetargetLoads(ir.RetargetLoads(t.Grad, to), inner)
		out.Terms = append(out.Terms, Term{t.Ranges, ir.RetargetLoads(of, inner), grad})
	}
	return out
}

func merge(a, b map[*ir.Value]*ir.Value) map[*ir.Value]*ir.Value {
	out := map[*ir.Value]*ir.Value{}
	for _, m := range []map[*ir.Value]*ir.Value{a, b} {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}
