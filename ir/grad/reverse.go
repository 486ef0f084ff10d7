package grad

import (
	"fmt"
	"slices"

	"github.com/fusec/fusec/ir"
)

// Options say what is differentiated.
type Options struct {
	// Wrt names the inputs whose gradients are wanted, in the order of the results. If it is
	// empty, these are all float inputs on which a result depends in a way that has a derivative.
	Wrt    []string
	Values bool  // the results of the graph stay results, before the gradients
	Rules  Rules // declared derivatives, by value; Reverse adds those of its own values
	// Delta leaves the equations of indices unsolved: every adjoint is then a sum over all
	// points of the reader, with a predicate. Tests compare with this definition.
	Delta bool
}

// Rules are declared derivatives.
type Rules map[*ir.Value]*Rule

// first drops the rules that are only for the first derivative, which has been taken.
func (all Rules) first(values []*ir.Value) {
	for _, v := range values {
		if r := all[v]; r != nil && r.Once {
			delete(all, v)
		}
	}
}

// A Rule is the declared derivative of a value, which replaces the derivative of its
// definition. A rule without terms says that the value counts as a constant.
type Rule struct {
	Upstream *ir.Value   // placeholder for the adjoint of the value, with its type and axes; not a value of the graph
	Values   []*ir.Value // the values that the terms need, in order; they may read Upstream, and are not values of the graph
	Terms    []Term
	Once     bool // the rule is only for the first derivative; after that the value is like any other
}

// A Term is the part of a declared derivative for one operand: at each point of Ranges, Grad is
// added to the adjoint of the element that Of reads.
type Term struct {
	Ranges   []*ir.Range
	Of, Grad *ir.Expr // loads
}

// pass is one run of Reverse.
type pass struct {
	g      *ir.Graph
	opts   Options
	facts  ir.Facts
	active map[*ir.Value]bool // whether a differentiable path leads from a wanted input to the value
	adj    map[*ir.Value]*adjoint
}

// adjoint collects what a value gets from its readers.
type adjoint struct {
	axes []*ir.Range
	sum  []term
}

// Reverse differentiates g in place. Its results become the gradients d_x of the wanted inputs,
// in order. If the graph has one result, and that is a scalar, they are its gradients.
// Otherwise each result y that can be differentiated gets a weight d_y, a new input after the
// others, and the gradients are those of the sum of the results times their weights. An error
// is a *Blocked; g must not be used then.
func Reverse(g *ir.Graph, opts Options) error {
	p := &pass{g: g, opts: opts, facts: g.Facts(), adj: map[*ir.Value]*adjoint{}}
	wanted, err := p.wanted()
	if err != nil {
		return err
	}
	values := slices.Clone(g.Values)
	p.active = p.activeBy(values, wanted)
	p.seed()
	p.backward(values, nil)
	if err := p.results(wanted, values); err != nil {
		return err
	}
	p.opts.Rules.first(g.Values)
	p.prune()
	return nil
}

// backward computes the adjoints of values from the last to the first, and adds to the adjoints
// of what they read.
func (p *pass) backward(values, by []*ir.Value) {
	for _, v := range slices.Backward(values) {
		if a := p.adj[v]; a != nil && !v.IsInput() && !slices.Contains(by, v) {
			p.value(v, p.settle(v, a))
		}
	}
}

// gradient defines the gradient of x from its adjoint a.
func (p *pass) gradient(x *ir.Value, a *adjoint) *ir.Value {
	return p.g.Define("d_"+x.Name, a.axes, ir.Cast(p.total(a, x.Type).value(), x.Type), x.Origin)
}

func (p *pass) wanted() ([]*ir.Value, error) {
	var out []*ir.Value
	if len(p.opts.Wrt) == 0 {
		for _, v := range p.g.Inputs {
			if v.Type.IsFloat() {
				out = append(out, v)
			}
		}
	}
	if len(p.opts.Wrt) == 0 && len(out) == 0 {
		return nil, fmt.Errorf("graph %s has no float input", p.g.Name)
	}
	for _, name := range p.opts.Wrt {
		at := slices.IndexFunc(p.g.Inputs, func(v *ir.Value) bool { return v.Name == name })
		if at < 0 {
			return nil, fmt.Errorf("graph %s has no input %s", p.g.Name, name)
		}
		v := p.g.Inputs[at]
		if !v.Type.IsFloat() {
			return nil, &Blocked{Input: name, Type: v.Type}
		}
		out = append(out, v)
	}
	return out, nil
}

// activeBy finds the values to which differentiable paths lead from wanted ones.
func (p *pass) activeBy(values, wanted []*ir.Value) map[*ir.Value]bool {
	active := map[*ir.Value]bool{}
	for _, v := range values {
		switch r := p.opts.Rules[v]; {
		case slices.Contains(wanted, v):
			active[v] = true
		case v.IsInput() || !v.Type.IsFloat():
		case r != nil:
			active[v] = slices.ContainsFunc(r.Terms, func(t Term) bool { return active[t.Of.From] })
		case v.Reduce != nil && v.Reduce.Op.IsArg():
		default:
			active[v] = newWalker(active).depends(v.Body)
		}
	}
	return active
}

// seed gives the results their adjoints.
func (p *pass) seed() {
	results := p.g.Results()
	scalar := len(results) == 1 && len(results[0].Value.Axes) == 0
	for _, o := range results {
		v := o.Value
		if !v.Type.IsFloat() {
			continue
		}
		if scalar {
			p.give(v, term{expr: ir.Num(computed(v.Type), 1)})
			continue
		}
		weight := p.g.Input(p.free("d_"+o.Name), v.Type, v.Shape(), o.Span)
		p.give(v, term{expr: wide(ir.Load(weight, ir.Indices(p.of(v).axes), nil))})
	}
}

// free is a name that no input or result has.
func (p *pass) free(name string) string {
	taken := func(name string) bool {
		return slices.ContainsFunc(p.g.Inputs, func(v *ir.Value) bool { return v.Name == name }) ||
			slices.ContainsFunc(p.g.Outputs, func(o ir.Output) bool { return o.Name == name })
	}
	base := name
	for n := 2; taken(name); n++ {
		name = fmt.Sprintf("%s_%d", base, n)
	}
	return name
}

// of is the adjoint of v, to which terms are added.
func (p *pass) of(v *ir.Value) *adjoint {
	a := p.adj[v]
	if a == nil {
		a = &adjoint{axes: p.fresh(v.Axes)}
		p.adj[v] = a
	}
	return a
}

// give adds a term, over the axes of v's adjoint, to that adjoint.
func (p *pass) give(v *ir.Value, t term) {
	a := p.of(v)
	a.sum = append(a.sum, t)
}

// fresh returns new ranges like the given ones.
func (p *pass) fresh(ranges []*ir.Range) []*ir.Range {
	out := make([]*ir.Range, len(ranges))
	for i, r := range ranges {
		out[i] = p.g.NewRange(r.Name, r.Extent)
		out[i].Span = r.Span
	}
	return out
}

// total is the sum of the terms of an adjoint, in type t: 0 if there are none.
func (p *pass) total(a *adjoint, t ir.DType) term {
	switch {
	case len(a.sum) == 0:
		return term{expr: ir.Num(computed(t), 0)}
	case p.apart(a):
		return chosen(a.sum)
	}
	return merged(a.sum)
}

// mostApart is the most terms for which every pair is compared.
const mostApart = 16

// apart reports whether an adjoint has several terms, no two of which are for the same element. That happens if a
// program cuts a value into parts.
func (p *pass) apart(a *adjoint) bool {
	if len(a.sum) < 2 || len(a.sum) > mostApart {
		return false
	}
	facts := p.facts
	facts.Within = a.axes
	for i, t := range a.sum {
		if t.cond == nil || t.guarded {
			return false
		}
		for _, u := range a.sum[:i] {
			if !ir.SimplifyGiven(u.cond, t.cond, facts).IsConst(0) {
				return false
			}
		}
	}
	return true
}

// A settled adjoint can be read at any index.
type settled struct {
	at   func(index []*ir.Expr) *ir.Expr // in the type that the value is computed in
	cond func(index []*ir.Expr) *ir.Expr // the adjoint is known to be 0 where this fails; nil if nothing is known
	from *ir.Value                       // the value that holds it, in the type of the primal; nil for a constant
}

// settle makes a value of an adjoint: the sum of all of its terms, rounded once.
func (p *pass) settle(v *ir.Value, a *adjoint) settled {
	total := p.total(a, v.Type)
	axes := a.axes
	out := settled{cond: func(index []*ir.Expr) *ir.Expr {
		if total.cond == nil {
			return nil
		}
		return ir.Substitute(total.cond, substitution(axes, index))
	}}
	if total.cond == nil && total.expr.Op == ir.OpConst {
		out.at = func([]*ir.Expr) *ir.Expr { return total.expr }
		return out
	}
	body := ir.Cast(total.value(), v.Type)
	d := p.g.Define("d_"+v.Name, axes, body, v.Origin)
	a.axes = p.fresh(axes) // the old axes belong to d now
	out.from = d
	out.at = func(index []*ir.Expr) *ir.Expr { return wide(ir.Load(d, index, nil)) }
	return out
}

func substitution(from []*ir.Range, to []*ir.Expr) map[*ir.Range]*ir.Expr {
	out := map[*ir.Range]*ir.Expr{}
	for i, r := range from {
		out[r] = to[i]
	}
	return out
}

// value adds to the adjoints of the values that v reads.
func (p *pass) value(v *ir.Value, d settled) {
	if r := p.opts.Rules[v]; r != nil {
		p.declared(r, v, d)
		return
	}
	if !p.active[v] {
		return
	}
	at := ir.Indices(v.Axes)
	seed := term{expr: d.at(at)}
	if v.Reduce != nil {
		p.reduction(v, d.cond(at), seed)
		return
	}
	var stored *ir.Expr
	if v.Type == computed(v.Type) {
		stored = ir.Load(v, at, nil)
	}
	p.spread(v.Axes, p.leaves(v.Body, stored, seed), d.cond(at))
}

// spread adds the adjoints of reads, at the points of ranges, to those of the elements that
// they read. The adjoint of the reader is known to be 0 where cond fails, so cond guards
// singular terms.
func (p *pass) spread(ranges []*ir.Range, leaves []leaf, cond *ir.Expr) {
	for _, l := range leaves {
		switch {
		case !l.singular || cond == nil:
		case l.guarded:
			l.cond, l.guarded = cond, false
		default:
			l.cond = ir.Both(cond, l.cond)
		}
		p.contribute(ranges, l)
	}
}

// results makes the gradients the results of the graph.
func (p *pass) results(wanted, values []*ir.Value) error {
	if !p.opts.Values {
		p.g.Outputs = nil
	}
	var blocked error
	given := 0
	for _, w := range wanted {
		a := p.adj[w]
		if a == nil {
			blocked = p.blocked(w, values)
			if len(p.opts.Wrt) > 0 {
				break
			}
			continue
		}
		p.g.Output(p.free("d_"+w.Name), p.gradient(w, a), w.Origin.Span)
		given++
	}
	if len(p.opts.Wrt) > 0 || given == 0 {
		return blocked
	}
	return nil
}

// prune drops the values that are needed neither by a result nor by a declared derivative of a
// needed value, because that may be differentiated again. Inputs stay.
func (p *pass) prune() {
	needed := map[*ir.Value]bool{}
	for _, o := range p.g.Outputs {
		needed[o.Value] = true
	}
	for _, v := range slices.Backward(p.g.Values) {
		if !needed[v] {
			continue
		}
		read := v.Loads()
		if r := p.opts.Rules[v]; r != nil {
			read = append(read, r.reads()...)
		}
		for _, l := range read {
			needed[l.From] = true
		}
	}
	p.g.Values = slices.DeleteFunc(p.g.Values, func(v *ir.Value) bool { return !needed[v] && !v.IsInput() })
}

// reads are the loads of a rule's values and terms.
func (r *Rule) reads() []*ir.Expr {
	var out []*ir.Expr
	for _, v := range r.Values {
		out = append(out, v.Loads()...)
	}
	for _, t := range r.Terms {
		out = append(out, t.Of, t.Grad)
	}
	return out
}
