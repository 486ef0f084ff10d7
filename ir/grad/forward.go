package grad

import (
	"slices"

	"github.com/fusec/fusec/ir"
)

// forward is one run of Forward. A tangent of a value is how much the value changes while the
// inputs change along the given direction: a value of the same axes and type.
type forward struct {
	*pass
	tangents map[*ir.Value]*ir.Value // of the values that change; those without one are constant
}

// Forward adds to g the derivatives of its results along a direction. The direction is given by
// new inputs t_x after the others, one for each wanted input x. The results become the tangents
// t_y of the float results y, in order: the sum, over the wanted inputs, of the derivative of y
// with respect to x, times t_x. A result that does not depend on them has the tangent 0. An
// error is a *Blocked, for a wanted input on which no result depends; g must not be used then.
func Forward(g *ir.Graph, opts Options) error {
	f := &forward{&pass{g: g, opts: opts, facts: g.Facts()}, map[*ir.Value]*ir.Value{}}
	wanted, err := f.wanted()
	if err != nil {
		return err
	}
	values := slices.Clone(g.Values)
	f.active = f.activeBy(values, wanted)
	needed := f.neededBy(values)
	if wanted, err = f.reaching(wanted, values, needed); err != nil {
		return err
	}
	for _, w := range wanted {
		f.tangents[w] = g.Input(f.free("t_"+w.Name), w.Type, w.Shape(), w.Origin.Span)
	}
	for _, v := range values {
		if needed[v] && !v.IsInput() {
			f.tangents[v] = f.tangent(v)
		}
	}
	f.results()
	f.opts.Rules.first(g.Values)
	f.prune()
	return nil
}

// neededBy finds the active values to which differentiable paths lead from float results.
func (f *forward) neededBy(values []*ir.Value) map[*ir.Value]bool {
	needed := map[*ir.Value]bool{}
	for _, o := range f.g.Results() {
		needed[o.Value] = f.active[o.Value]
	}
	for _, v := range slices.Backward(values) {
		switch r := f.opts.Rules[v]; {
		case !needed[v] || v.IsInput():
		case r != nil:
			for _, t := range r.Terms {
				needed[t.Of.From] = needed[t.Of.From] || f.active[t.Of.From]
			}
		default:
			for _, e := range ir.ParentsFirst(v.Body, newWalker(f.active).depends) {
				if e.Op == ir.OpLoad {
					needed[e.From] = true
				}
			}
		}
	}
	return needed
}

// reaching are the wanted inputs that a result depends on. It is an error if no result depends
// on an input that the caller named, or on any input at all.
func (f *forward) reaching(wanted, values []*ir.Value, needed map[*ir.Value]bool) (out []*ir.Value, err error) {
	for _, w := range wanted {
		if needed[w] {
			out = append(out, w)
			continue
		}
		err = f.blocked(w, values)
		if len(f.opts.Wrt) > 0 {
			return nil, err
		}
	}
	if len(out) > 0 {
		err = nil
	}
	return out, err
}

// tangent defines the tangent of a value that is not an input.
func (f *forward) tangent(v *ir.Value) *ir.Value {
	if r := f.opts.Rules[v]; r != nil {
		return f.transposed(r, v)
	}
	axes := f.fresh(v.Axes)
	to := substitution(v.Axes, ir.Indices(axes))
	var body *ir.Expr
	if v.Reduce != nil {
		body = f.reduced(v)
	} else {
		var stored *ir.Expr
		if v.Type == computed(v.Type) {
			stored = ir.Load(v, ir.Indices(v.Axes), nil)
		}
		body = f.along(v.Body, stored)
	}
	return f.g.Define("t_"+v.Name, axes, ir.Cast(ir.Substitute(body, to), v.Type), v.Origin)
}

// along is the tangent of an expression. stored reads the expression's value, or is nil.
func (f *forward) along(body, stored *ir.Expr) *ir.Expr {
	w := &walker{active: func(l *ir.Expr) bool { return f.tangents[l.From] != nil }, known: map[*ir.Expr]bool{}}
	tangents := map[*ir.Expr]*ir.Expr{} // a node without a tangent is constant
	for _, e := range slices.Backward(ir.ParentsFirst(body, w.depends)) {
		switch e.Op {
		case ir.OpLoad:
			tangents[e] = wide(f.load(e))
		case ir.OpSelect:
			yes, no := tangents[e.Args[1]], tangents[e.Args[2]]
			zero := ir.Num(computed(e.Type), 0)
			tangents[e] = ir.Where(e.Args[0], or(yes, zero), or(no, zero))
		case ir.OpCast:
			tangents[e] = ir.Cast(tangents[e.Args[0]], computed(e.Type))
		default:
			y := stored
			if e != body {
				y = nil
			}
			tangents[e] = chain(e, y, tangents)
		}
	}
	return tangents[body]
}

// chain is the tangent of an operation: the sum, over its arguments, of the derivative times the
// argument's tangent. A rule multiplies an adjoint by the derivative, so it is called with the
// tangent as the adjoint.
func chain(e, stored *ir.Expr, tangents map[*ir.Expr]*ir.Expr) (sum *ir.Expr) {
	x, y := operands(e, stored)
	for i, a := range e.Args {
		t := tangents[a]
		if t == nil {
			continue
		}
		part := rules[e.Op].by(t, y, x)[i]
		if part.expr == nil {
			continue
		}
		term := whereOr0(part.cond, part.expr)
		if sum == nil {
			sum = term
		} else {
			sum = add(sum, term)
		}
	}
	return or(sum, ir.Num(computed(e.Type), 0))
}

func or(e, other *ir.Expr) *ir.Expr {
	if e == nil {
		return other
	}
	return e
}

// load reads the tangent of the element that l reads, 0 outside.
func (f *forward) load(l *ir.Expr) *ir.Expr {
	t := f.tangents[l.From]
	if l.Fill == nil {
		return ir.Load(t, l.Args, nil).At(l.Span)
	}
	out := ir.Load(t, l.Args, ir.IntNum(l.Type, 0)).At(l.Span)
	if l.NoElse {
		out = out.Bare()
	}
	return out
}

// reduced is the tangent of a reduction, over its own axes and ranges.
func (f *forward) reduced(v *ir.Value) *ir.Expr {
	body := f.along(v.Body, nil)
	switch v.Reduce.Op {
	case ir.Prod:
		return f.ofProduct(v, body)
	case ir.Max, ir.Min:
		return f.ofChosen(v, body)
	}
	return f.summed(v, body)
}

// summed is the sum of an expression over the points of a reduction.
func (f *forward) summed(v *ir.Value, body *ir.Expr) *ir.Expr {
	r := &ir.Reduction{Op: ir.Sum, Ranges: f.fresh(v.Reduce.Ranges)}
	own := substitution(v.Reduce.Ranges, ir.Indices(r.Ranges))
	if v.Reduce.Where != nil {
		r.Where = ir.Substitute(v.Reduce.Where, own)
	}
	return ir.Reduce(r, ir.Substitute(body, own))
}

// ofProduct is the tangent of a product whose factors b have the tangents t. Without a zero
// among the factors it is the product times the sum of t/b; with one zero, the product of the
// others times the tangent of that factor; with more, 0. Each sum is over the factors of one
// product, so those of a running product are running sums.
func (f *forward) ofProduct(v *ir.Value, t *ir.Expr) *ir.Expr {
	b := wide(v.Body)
	zero := isZero(b)
	is, others := f.factors(v)
	ratio := f.summed(v, ir.Where(zero, num(b, 0), div(t, b)))
	single := f.summed(v, whereOr0(zero, t))
	return ir.Where(is(0), mul(others, ratio), whereOr0(is(1), mul(others, single)))
}

// ofChosen is the tangent of a maximum, a minimum or an element at a rank: that of the chosen
// element, or 0 if there is none.
func (f *forward) ofChosen(v *ir.Value, t *ir.Expr) *ir.Expr {
	r := v.Reduce
	place := f.place(v)
	to := map[*ir.Range]*ir.Expr{}
	for d, stride := len(r.Ranges)-1, ir.IntConst(1); d >= 0; d-- {
		e := over(place, stride)
		if d > 0 {
			e = rest(e, r.Ranges[d].Extent)
		}
		to[r.Ranges[d]] = ir.Simplify(e, f.facts)
		stride = ir.Apply(ir.OpMul, stride, r.Ranges[d].Extent)
	}
	taken := ir.Both(ranked(r), f.nonEmpty(r.Ranges))
	if r.Where != nil {
		taken = ir.Both(taken, ir.Substitute(r.Where, to))
	}
	return whereOr0(f.filledOrNil(taken), f.filled(ir.Substitute(t, to)))
}

// nonEmpty is the condition that ranges have a point; nil if they always have.
func (f *forward) nonEmpty(ranges []*ir.Range) (cond *ir.Expr) {
	for _, r := range ranges {
		if c := ir.Simplify(ir.Apply(ir.OpLt, ir.IntConst(0), r.Extent), f.facts); !c.IsConst(1) {
			cond = ir.Both(cond, c)
		}
	}
	return cond
}

func (f *forward) filledOrNil(e *ir.Expr) *ir.Expr {
	if e == nil {
		return nil
	}
	return f.filled(e)
}

// transposed is the tangent of a value with a declared derivative. The declared derivative is a
// function from an adjoint of the value to adjoints of the operands, and is linear. Its
// transpose takes tangents of the operands to the tangent of the value. So the tangent is the
// gradient of that function with respect to the adjoint, with the operands' tangents as
// weights.
func (f *forward) transposed(r *Rule, v *ir.Value) *ir.Value {
	start := len(f.g.Values)
	up := f.g.Define("d_"+v.Name, f.fresh(v.Axes), ir.Num(v.Type, 1), v.Origin) // any value will do: a linear function has the same derivative everywhere
	to := map[*ir.Value]*ir.Value{r.Upstream: up}
	f.expand(r, to)
	own := slices.Clone(f.g.Values[start:])
	back := &pass{g: f.g, opts: f.opts, facts: f.facts, adj: map[*ir.Value]*adjoint{}}
	back.opts.Delta = false
	back.active = back.activeBy(own, []*ir.Value{up})
	for _, t := range r.Terms {
		of, given := t.Of, ir.RetargetLoads(t.Grad, to)
		if f.tangents[of.From] != nil && back.active[given.From] {
			back.contribute(t.Ranges, leaf{given, term{expr: wide(f.load(of))}})
		}
	}
	back.backward(own, []*ir.Value{up})
	a := back.of(up)
	return f.g.Define("t_"+v.Name, a.axes, ir.Cast(f.total(a, v.Type).value(), v.Type), v.Origin)
}

// results makes the tangents the results of the graph.
func (f *forward) results() {
	results := f.g.Results()
	if !f.opts.Values {
		f.g.Outputs = nil
	}
	for _, o := range results {
		v := o.Value
		if !v.Type.IsFloat() {
			continue
		}
		t := f.tangents[v]
		if t == nil {
			t = f.g.Define("t_"+v.Name, f.fresh(v.Axes), ir.Num(v.Type, 0), v.Origin)
		}
		f.g.Output(f.free("t_"+o.Name), t, o.Span)
	}
}
