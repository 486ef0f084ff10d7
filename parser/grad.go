package parser

import (
	"errors"
	"strings"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
	"github.com/fusec/fusec/ir/grad"
)

// gradient is what graph name = grad(of, ...) or jvp(of, ...) asks for.
type gradient struct {
	forward bool         // jvp: along a direction
	wrt     []*identNode // nil: all float inputs
	values  bool
}

// differentiate expands graph n = grad(of, ...) or jvp(of, ...); nil where it has mistakes. base lists the
// declarations that lead to it, for cycles.
func (l *loader) differentiate(n *graphNode, mod *module, base []*graphNode) *builder {
	ask, ok := l.gradArgs(n.Grad)
	of := l.gradOf(n, mod, base)
	if of == nil || !ok {
		return nil
	}
	b := l.differentiable(of, mod, append(base, n))
	if b == nil {
		return nil
	}
	b.g.Name, b.g.Span, b.g.OneKernel = n.Name.Text, n.Name.span(), false
	if !l.derive(b, ask, n.Grad.Of.Text) {
		return nil
	}
	b.annotations(n)
	return b
}

// differentiable expands a graph that is to be differentiated.
func (l *loader) differentiable(of *graphNode, mod *module, base []*graphNode) *builder {
	before := len(l.errs)
	var b *builder
	if of.Grad != nil {
		b = l.differentiate(of, mod, base)
	} else {
		b = l.expand(of, mod, grad.Rules{})
	}
	if len(l.errs) > before {
		return nil
	}
	if b != nil && b.g.HasState() {
		l.errs.Add(base[len(base)-1].Grad.Of.span(), "%s has state, and a gradient is of the results of a run: move what is "+
			"differentiated to a graph without state", of.Name.Text).Note(of.Name.span(), "%s is declared here", of.Name.Text)
		return nil
	}
	return b
}

// gradOf finds the graph that is differentiated.
func (l *loader) gradOf(n *graphNode, mod *module, base []*graphNode) *graphNode {
	if n.Grad.Call.Text != "grad" && n.Grad.Call.Text != "jvp" {
		l.errs.Add(n.Grad.Call.span(), "a graph is a body or the derivative of another graph: expected grad or jvp, found %s", n.Grad.Call.Text)
		return nil
	}
	var names []string
	for _, d := range mod.tree.Decls {
		if d.Graph == nil {
			continue
		}
		if d.Graph.Name.Text == n.Grad.Of.Text {
			for _, seen := range append(base, n) {
				if seen == d.Graph {
					l.errs.Add(n.Grad.Of.span(), "%s is the derivative of itself", n.Grad.Of.Text).
						Note(d.Graph.Name.span(), "%s is declared here", d.Graph.Name.Text)
					return nil
				}
			}
			return d.Graph
		}
		names = append(names, d.Graph.Name.Text)
	}
	hint := ""
	if file := mod.graphs[n.Grad.Of.Text]; file != "" {
		hint = ": it is a graph of " + file + ", and imports bring functions and constants only: derive it there, or make it a function and call that in a graph here"
	} else if near := diag.Nearest(n.Grad.Of.Text, names); near != "" {
		hint = ": did you mean " + near + "?"
	} else if fn, _ := mod.function(n.Grad.Of.Text); fn != nil {
		hint = ": it is a function; call it in a graph, and differentiate that"
	}
	l.errs.Add(n.Grad.Of.span(), "unknown graph %s%s", n.Grad.Of.Text, hint)
	return nil
}

// gradArgs reads the arguments of grad or jvp.
func (l *loader) gradArgs(n *gradNode) (ask gradient, ok bool) {
	before := len(l.errs)
	ask.forward = n.Call.Text == "jvp"
	seen := map[string]bool{}
	for _, a := range n.Args {
		name := a.Name.Text
		if seen[name] {
			l.errs.Add(a.Name.span(), "%s is given twice", name)
		}
		seen[name] = true
		switch {
		case name == "wrt" && a.Value != nil:
			ask.wrt = []*identNode{a.Value}
		case name == "wrt":
			ask.wrt = a.List
		case name == "values" && a.Value != nil && (a.Value.Text == "true" || a.Value.Text == "false"):
			ask.values = a.Value.Text == "true"
		case name == "values":
			l.errs.Add(a.span(), "values is true or false: whether the results of %s stay results", n.Of.Text)
		default:
			l.errs.Add(a.Name.span(), "%s has no parameter %s: it takes wrt=[inputs] and values=true", n.Call.Text, name)
		}
	}
	return ask, len(l.errs) == before
}

// derive differentiates the graph of b, whose name in the program is of.
func (l *loader) derive(b *builder, ask gradient, of string) bool {
	before := len(l.errs)
	opts := grad.Options{Values: ask.values, Rules: b.rules, Delta: l.delta}
	places := map[string]diag.Span{}
	var inputs []string
	floats := false
	for _, v := range b.g.Inputs {
		inputs = append(inputs, v.Name)
		floats = floats || v.Type.IsFloat()
	}
	for _, id := range ask.wrt {
		switch _, twice := places[id.Text]; {
		case twice:
			l.errs.Add(id.span(), "%s stands twice in wrt", id.Text)
		case !contains(inputs, id.Text):
			hint := ": its inputs are " + strings.Join(inputs, ", ")
			if near := diag.Nearest(id.Text, append([]string(nil), inputs...)); near != "" {
				hint = ": did you mean " + near + "?"
			}
			l.errs.Add(id.span(), "%s has no input %s%s", of, id.Text, hint)
		}
		opts.Wrt = append(opts.Wrt, id.Text)
		places[id.Text] = id.span()
	}
	if !floats {
		l.errs.Add(b.g.Span, "%s has no float input: there is nothing to differentiate by", of)
	}
	if len(l.errs) > before {
		return false
	}
	pass := grad.Reverse
	if ask.forward {
		pass = grad.Forward
	}
	err := pass(b.g, opts)
	var blocked *grad.Blocked
	if errors.As(err, &blocked) {
		at, named := places[blocked.Input]
		if !named {
			at = b.g.Span
		}
		e := l.errs.Add(at, "cannot differentiate %s: %s", of, blocked)
		if blocked.At != nil && !blocked.Span.IsZero() {
			e.Note(blocked.Span, "this has no derivative: the path from %s ends here", blocked.Input)
		}
	} else if err != nil {
		l.errs.Add(b.g.Span, "%s", err)
	}
	return len(l.errs) == before
}

func contains(list []string, name string) bool {
	for _, s := range list {
		if s == name {
			return true
		}
	}
	return false
}

// GradOptions say what a derivative of a graph is taken by, and how.
type GradOptions struct {
	Wrt     []string // float inputs; none means all on which a result depends
	Values  bool     // the results of the graph are results, too, ahead of the derivatives
	Forward bool     // the derivative along a direction, in place of the gradients
	Delta   bool     // equations of indices are left unsolved: see grad.Options
}

// Grad returns the file with one more graph, its last: the gradient of a graph, as graph
// NAME_grad = grad(NAME, wrt=[...], values=...) would be, or its derivative along a direction, as
// graph NAME_jvp = jvp(NAME, ...) would be. The results are the gradients d_x, or the tangents
// t_y. Mistakes are a diag.List.
func (f *File) Grad(name string, ask GradOptions) (*File, error) {
	g, err := f.Graph(name)
	if err != nil {
		return nil, err
	}
	std, err := library()
	if err != nil {
		return nil, err
	}
	l := &loader{opts: f.opts, delta: ask.Delta, std: std, done: map[string]*module{}, called: map[*fnNode]bool{}}
	n := gradDecl(g, ask)
	out, mod, tree := *f, *f.module, *f.module.tree
	tree.Decls = append(tree.Decls[:len(tree.Decls):len(tree.Decls)], &declNode{node: n.node, Graph: n})
	mod.tree = &tree
	out.module = &mod
	gradient := l.build(n, out.module)
	if err := l.errs.Err(); err != nil {
		return nil, err
	}
	out.Graphs = append(f.Graphs[:len(f.Graphs):len(f.Graphs)], gradient)
	return &out, nil
}

// gradDecl is the declaration of the derivative of g, at g's place.
func gradDecl(g *ir.Graph, ask GradOptions) *graphNode {
	at := node{Pos: g.Span.Start, EndPos: g.Span.End}
	id := func(name string) *identNode { return &identNode{at, name} }
	way := "grad"
	if ask.Forward {
		way = "jvp"
	}
	call := &gradNode{node: at, Call: id(way), Of: id(g.Name)}
	if len(ask.Wrt) > 0 {
		arg := &gradArgNode{node: at, Name: id("wrt")}
		for _, w := range ask.Wrt {
			arg.List = append(arg.List, id(w))
		}
		call.Args = append(call.Args, arg)
	}
	if ask.Values {
		call.Args = append(call.Args, &gradArgNode{node: at, Name: id("values"), Value: id("true")})
	}
	return &graphNode{node: at, Name: id(g.Name + "_" + way), Grad: call}
}

// stopGradient is x itself; where the graph is to be differentiated, a value of its own with
// a derivative of 0.
func stopGradient(b *builder, args []val, span diag.Span) val {
	return b.constant(args[0], &grad.Rule{}, span)
}

// stationary is x itself; the gradient, which is as if x were constant, has the derivatives of
// an expression in which it is not.
func stationary(b *builder, args []val, span diag.Span) val {
	return b.constant(args[0], &grad.Rule{Once: true}, span)
}

func (b *builder) constant(v val, rule *grad.Rule, span diag.Span) val {
	if b.rules == nil || v.kind != arrayVal || !v.arr.dtype.IsFloat() {
		return v
	}
	name := b.hint
	if name == "" {
		name = "constant"
	}
	y := b.define(name, v.arr, span)
	b.rules[y.value] = rule
	return arrv(y)
}

// extentsKnown reports whether values can be made of the arguments of a call now: the extents of the
// index names that they depend on are known.
func (b *builder) extentsKnown(args []argument) bool {
	for _, a := range args {
		if a.val.kind != arrayVal {
			continue
		}
		axes := b.g.NewAxes(a.val.arr.shape)
		for r := range ir.FreeRanges(a.val.arr.elem(ir.Indices(axes))) {
			if r.Extent == nil {
				return false
			}
		}
	}
	return true
}

// callDeclared expands a function with a declared derivative. Its float arguments and its
// result become values of the graph, and the derivative is expanded beside it, with a value
// that stands for the adjoint of the result.
func (b *builder) callDeclared(fn *fnNode, mod *module, args []argument, span diag.Span) []val {
	for i, a := range args {
		if a.val.kind == arrayVal && a.val.arr.dtype.IsFloat() {
			args[i].val.arr = b.stored(a.val.arr, span)
		}
	}
	hint := b.hint
	out := b.expandFn(fn, mod, args, span)
	if len(out) != 1 || out[0].kind != arrayVal || !out[0].arr.dtype.IsFloat() {
		if len(out) != 1 {
			b.errorf(fn.Grad.span(), "%s has several results: a derivative is declared for one", fn.Name.Text)
		}
		return out
	}
	if hint == "" {
		hint = fn.Name.Text
	}
	y := b.define(hint, out[0].arr, span)
	if rule := b.declaredRule(fn, mod, args, y, span); rule != nil {
		b.rules[y.value] = rule
	}
	return []val{arrv(y).at(span)}
}

// declaredRule expands the derivative that fn declares; nil where that has mistakes.
func (b *builder) declaredRule(fn *fnNode, mod *module, args []argument, y *array, span diag.Span) *grad.Rule {
	by, in := mod.function(fn.Grad.By.Text)
	if fn.Grad.Name.Text != "grad" || by == nil {
		b.errorf(fn.Grad.span(), "expected @grad(f), with a function f that is the derivative of %s", fn.Name.Text)
		return nil
	}
	upstream := b.g.Adopt(&ir.Value{Name: "d_" + y.value.Name, Type: y.dtype, Axes: b.g.NewAxes(y.value.Shape())})
	call := append([]argument(nil), args...)
	for i := range call {
		if call[i].name == "" {
			call[i].name = fn.Params[i].Name.Text
		}
	}
	for _, p := range by.Params {
		switch p.Name.Text {
		case "dy":
			call = append(call, argument{name: "dy", val: arrv(ofValue(upstream, y.outer)).at(span), span: span})
		case "y":
			call = append(call, argument{name: "y", val: arrv(y).at(span), span: span})
		}
	}
	start := len(b.g.Values)
	if b.deriving == nil {
		b.deriving = map[*fnNode]bool{}
	}
	b.deriving[fn] = true
	results := b.expandFn(by, in, call, span)
	delete(b.deriving, fn)
	rule := &grad.Rule{Upstream: upstream}
	for _, a := range args {
		if a.val.kind != arrayVal || !a.val.arr.dtype.IsFloat() {
			continue
		}
		if len(results) == 0 || results[0].kind != arrayVal {
			if len(*b.errs) == 0 {
				b.errorf(fn.Grad.span(), "%s gives fewer gradients than %s has float tensors", by.Name.Text, fn.Name.Text)
			}
			return nil
		}
		if t, ok := b.ruleTerm(by, a.val.arr, results[0].arr, span); ok {
			rule.Terms = append(rule.Terms, t)
		}
		results = results[1:]
	}
	if len(results) > 0 {
		b.errorf(fn.Grad.span(), "%s gives more gradients than %s has float tensors", by.Name.Text, fn.Name.Text)
	}
	rule.Values = append(rule.Values, b.g.Values[start:]...)
	b.g.Values = b.g.Values[:start]
	return rule
}

// ruleTerm gives an operand x the gradient dx.
func (b *builder) ruleTerm(by *fnNode, x, dx *array, span diag.Span) (t grad.Term, ok bool) {
	same := len(x.shape) == len(dx.shape) && dx.dtype.IsFloat()
	for d := 0; same && d < len(x.shape); d++ {
		same = b.sameSize(x.shape[d], dx.shape[d])
	}
	if !same {
		b.errorf(span, "%s gives %s as the gradient of %s", by.Name.Text, dx.describe(), x.describe())
		return t, false
	}
	dx = b.stored(dx, span)
	axes := b.g.NewAxes(x.shape)
	t.Of, t.Grad = x.elem(ir.Indices(axes)), dx.elem(ir.Indices(axes))
	t.Ranges = append(freeRanges(ir.Where(ir.IntNum(ir.Bool, 1), ir.Cast(t.Of, ir.F64), ir.Cast(t.Grad, ir.F64)), axes), axes...)
	return t, true
}
