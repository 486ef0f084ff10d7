package parser

import (
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
	"github.com/fusec/fusec/ir/grad"
)

// build expands one graph declaration; nil where it has mistakes.
func (l *loader) build(n *graphNode, mod *module) *ir.Graph {
	before := len(l.errs)
	var b *builder
	if n.Grad != nil {
		b = l.differentiate(n, mod, nil)
	} else {
		b = l.expand(n, mod, nil)
	}
	if len(l.errs) > before || b == nil {
		return nil
	}
	prune(b.g)
	b.indicesFit()
	if len(l.errs) > before {
		return nil
	}
	if n.Grad == nil {
		b.unused(n, &l.warnings)
	}
	return b.g
}

// expand expands a graph that has a body. With rules it is one to be differentiated, and
// the derivatives that functions declare go into rules.
func (l *loader) expand(n *graphNode, mod *module, rules grad.Rules) *builder {
	b := &builder{limits: l.opts.Limits, g: ir.NewGraph(n.Name.Text), errs: &l.errs, called: l.called, rules: rules}
	if rules == nil {
		b.trace, b.warnings = l.trace, &l.warnings
	}
	b.frame = &frame{mod: mod, scope: newScope(nil), outputs: map[string]*declared{}, states: map[string]*state{}, body: n.Body}
	b.g.Span = n.Name.span()
	b.inputs(n)
	b.declareResults(n)
	b.nameStates(n)
	b.annotations(n)
	b.block(n.Body)
	if !b.full() && !b.failed {
		b.emit(n)
	}
	return b
}

// inputs declares the parameters and the symbols in their shapes.
func (b *builder) inputs(n *graphNode) {
	for _, p := range n.Params {
		for _, d := range paramDims(p) {
			if d.Size != nil {
				eachName(d.Size, func(id *identNode) { b.symbol(id) })
			}
		}
	}
	sizes := []*ir.Expr{}
	for i, p := range n.Params {
		t, shape, ok := b.tensorType(p)
		if p.Default != nil {
			b.errorf(p.Default.span(), "a graph's inputs have no defaults")
		}
		if !ok {
			b.bind(p.Name, val{})
			b.forget(p)
			continue
		}
		sizes = append(sizes, shape...)
		if old := paramNamed(n.Params[:i], p.Name.Text); old != nil {
			b.errorf(p.Name.span(), "input %s is declared twice", p.Name.Text).
				Note(old.span(), "%s is declared here first", p.Name.Text)
			continue
		}
		b.bind(p.Name, arrv(ofValue(b.g.Input(p.Name.Text, t, shape, p.Name.span()), nil)).at(p.span()))
		b.declareState(p, t, shape)
	}
	naming := map[string][]*ir.Expr{} // the sizes that name each symbol
	for _, size := range sizes {
		ir.Walk(size, func(e *ir.Expr) bool {
			if e.Op == ir.OpSym {
				naming[e.Name] = append(naming[e.Name], size)
			}
			return true
		})
	}
	for _, s := range b.g.Symbols {
		if !determined(s.Name, naming[s.Name]) && b.scope.names[s.Name].val.ok() {
			b.errorf(s.Span, "nothing determines %s%s", s.Name, otherName(s.Name, naming))
			b.scope.names[s.Name].val = val{} // what follows from it is no mistake of its own
		}
	}
}

// paramNamed is the name of the parameter that is called so, or nil.
func paramNamed(params []*paramNode, name string) *identNode {
	for _, p := range params {
		if p.Name.Text == name {
			return p.Name
		}
	}
	return nil
}

// forget silences what follows from a parameter that was not understood.
func (b *builder) forget(p *paramNode) {
	for _, d := range paramDims(p) {
		if d.Size != nil {
			eachName(d.Size, func(id *identNode) {
				if old := b.scope.names[id.Text]; old != nil && b.g.Symbol(id.Text) != nil {
					old.val = val{}
				}
			})
		}
	}
}

func paramDims(p *paramNode) []*dimNode {
	if p.Type.Dims == nil {
		return nil
	}
	return p.Type.Dims.Dims
}

// symbol declares the name of a size.
func (b *builder) symbol(id *identNode) {
	if _, _, ok := b.lookup(id.Text); ok {
		return
	}
	b.g.Symbols = append(b.g.Symbols, ir.Symbol{Name: id.Text, Span: id.span()})
	b.scope.names[id.Text] = &binding{val: arrv(constant(ir.Sym(id.Text))), span: id.span()}
	b.trace.bound(id.span(), b.scope.names[id.Text].val)
}

// determined reports whether some of the sizes that name a symbol gives it its value.
func determined(name string, sizes []*ir.Expr) bool {
	for _, s := range sizes {
		_, rest, ok := linearIn(s, ir.Sym(name))
		if ok && rest.Op == ir.OpConst {
			return true
		}
	}
	return false
}

// tensorType evaluates the type of a graph's input or result.
func (b *builder) tensorType(p *paramNode) (ir.DType, []*ir.Expr, bool) {
	t, ok := ir.DTypeNamed(p.Type.Name)
	if !ok {
		var names []string
		for _, t := range ir.DTypes() {
			names = append(names, t.String())
		}
		hint := foreignType(p.Type.Name)
		if near := diag.Nearest(p.Type.Name, names); near != "" && hint == "" {
			hint = ": did you mean " + near + "?"
		}
		b.errorf(p.Type.span(), "unknown dtype %s%s", p.Type.Name, hint)
	}
	shape := []*ir.Expr{}
	if n := len(paramDims(p)); n > maxRank {
		b.errorf(p.Name.span(), "%s has %d axes, more than %d", p.Name.Text, n, maxRank)
		return t, nil, false
	}
	for _, d := range paramDims(p) {
		if d.Leading {
			b.errorf(d.span(), "... stands only in the parameters of a fn: give every size of %s", p.Name.Text)
			return t, nil, false
		}
		size := b.dim(d.Size)
		if size == nil {
			return t, nil, false
		}
		shape = append(shape, size)
	}
	if _, fits := product(shape); !fits {
		b.errorf(p.Type.span(), "%s has more than 2^63 elements", p.Name.Text)
		return t, nil, false
	}
	return t, shape, ok
}

// declareResults reads the declared results.
func (b *builder) declareResults(n *graphNode) {
	if len(n.Results) == 0 && len(b.states) == 0 {
		b.errorf(n.Name.span(), "%s has no result and no state: what it computes would be lost", n.Name.Text)
	}
	for _, p := range n.Results {
		b.noState(p)
		if old := b.outputs[p.Name.Text]; old != nil {
			b.errorf(p.Name.span(), "result %s is declared twice", p.Name.Text)
			continue
		}
		if old := b.scope.names[p.Name.Text]; old != nil {
			b.errorf(p.Name.span(), "result %s has the name of an input or a size: choose another name", p.Name.Text).
				Note(old.span, "%s is declared here", p.Name.Text)
			old.val = val{}
			continue
		}
		t, shape, ok := b.tensorType(p)
		if p.Default != nil {
			b.errorf(p.Default.span(), "a graph's results have no defaults")
		}
		b.outputs[p.Name.Text] = &declared{name: p.Name.Text, dtype: t, shape: shape, span: p.span(), bad: !ok}
	}
}

// emit makes the results outputs of the graph.
func (b *builder) emit(n *graphNode) {
	used := map[*ir.Value]bool{}
	for _, p := range n.Results {
		want := b.outputs[p.Name.Text]
		if want == nil || want.bad {
			continue
		}
		found := b.scope.names[p.Name.Text]
		if found == nil {
			b.errorf(p.Name.span(), "result %s is never defined", p.Name.Text)
			continue
		}
		if a := b.result(want, found); a != nil {
			if a.value == nil || len(a.outer) > 0 || a.value.IsInput() || used[a.value] {
				a = b.define(want.name, a, found.span)
			}
			used[a.value] = true
			b.g.Output(want.name, a.value, want.span)
		}
	}
	b.emitStates(n, used)
}

// result checks a result against its declaration.
func (b *builder) result(want *declared, found *binding) *array {
	v := found.val
	if !v.ok() {
		return nil
	}
	if v.isStatic() {
		v.span = found.span
		if a := b.convert(v, want.dtype); a != nil {
			v = arrv(a).at(found.span)
		} else {
			return nil
		}
	}
	a := b.element(v)
	if a.dtype != want.dtype {
		b.errorf(found.span, "%s is declared %s, but its value is %s: write %s(...)", want.name,
			typeText(want.dtype, want.shape), a.describe(), want.dtype).
			Note(want.span, "%s is declared here", want.name)
		return nil
	}
	same := len(a.shape) == len(want.shape)
	for d := 0; same && d < len(a.shape); d++ {
		same = b.sameSize(a.shape[d], want.shape[d])
	}
	if !same {
		e := b.errorf(found.span, "%s is declared %s, but its value is %s%s", want.name,
			typeText(want.dtype, want.shape), a.describe(), meantAxis(v)).Note(want.span, "%s is declared here", want.name)
		if len(a.shape) != len(want.shape) {
			b.reducers(e, []val{v})
		}
		return nil
	}
	return a
}

func (b *builder) annotations(n *graphNode) {
	seen := map[string]bool{}
	for _, a := range n.Notes {
		if seen[a.Name] {
			b.errorf(a.span(), "annotation @%s is repeated", a.Name)
		}
		seen[a.Name] = true
		if len(a.Args) > 0 && a.Name != "bench" {
			b.errorf(a.span(), "@%s takes no arguments", a.Name)
		}
		b.annotation(a)
	}
	if seen["strict"] && seen["fast"] {
		b.errorf(n.Name.span(), "a graph is @strict or @fast, not both")
	}
}

func (b *builder) annotation(a *annotationNode) {
	switch a.Name {
	case "onekernel":
		b.g.OneKernel = true
	case "strict":
		b.g.Numerics = ir.Strict
	case "fast":
		b.g.Numerics = ir.Fast
	case "tf32":
		b.g.TF32 = true
	case "bench":
		for _, arg := range a.Args {
			b.benchSize(arg)
		}
	default:
		hint := ""
		if near := diag.Nearest(a.Name, []string{"onekernel", "strict", "fast", "tf32", "bench"}); near != "" {
			hint = ": did you mean @" + near + "?"
		}
		b.errorf(a.span(), "unknown annotation @%s%s", a.Name, hint)
	}
}

func (b *builder) benchSize(a *argNode) {
	name := bareName(a.Value)
	if name == "" || a.Named == nil {
		b.errorf(a.span(), "expected symbol=size")
		return
	}
	s := b.g.Symbol(name)
	if s == nil {
		b.errorf(a.span(), "@bench names %s, which is no symbol of this graph", name)
		return
	}
	if size, ok := b.staticInt(a.Named, "size in @bench"); ok {
		if size < 0 {
			b.errorf(a.span(), "size in @bench must not be negative")
		}
		s.Default = size
	}
}

// prune drops the values that no output needs. Inputs stay.
func prune(g *ir.Graph) {
	needed := map[*ir.Value]bool{}
	for _, o := range g.Outputs {
		needed[o.Value] = true
	}
	for i := len(g.Values) - 1; i >= 0; i-- {
		if v := g.Values[i]; needed[v] {
			for _, l := range v.Loads() {
				needed[l.From] = true
			}
		}
	}
	kept := g.Values[:0]
	for _, v := range g.Values {
		if needed[v] || v.IsInput() {
			kept = append(kept, v)
		}
	}
	g.Values = kept
}
