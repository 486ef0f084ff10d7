package parser

import (
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// staticTypes are the parameter types that take compile-time values.
var staticTypes = map[string]string{
	"int": "an integer", "float": "a number", "bool": "true or false", "string": "a text in quotes",
	"ints": "an integer or a list of integers",
}

func isStaticParam(p *paramNode) bool { return p.Type.Dims == nil && staticTypes[p.Type.Name] != "" }

// bindParams binds fn's parameters to the arguments: dtype variables and sizes first,
// so that their order does not matter.
func (b *builder) bindParams(fn *fnNode, args []argument, span diag.Span) bool {
	given, ok := b.matchArgs(fn.Name.Text, paramNames(fn.Params), args, span)
	if !ok {
		return false
	}
	vals := make([]val, len(fn.Params))
	for i, p := range fn.Params {
		switch {
		case given[i] != nil:
			vals[i] = *given[i]
		case p.Default == nil:
			e := b.errorf(span, "%s needs the argument %s", fn.Name.Text, p.Name.Text)
			if !b.mod.library {
				e.Note(p.span(), "%s is declared here", p.Name.Text)
			}
			return false
		default:
			vals[i] = b.expr(p.Default)
			if vals[i].ok() {
				vals[i].span = span
			}
		}
		ok = vals[i].ok() && ok
	}
	if !ok {
		return false
	}
	for i, p := range fn.Params {
		ok = b.bindDType(p, vals[i]) && ok
	}
	for i, p := range fn.Params {
		if ok {
			ok = b.bindParam(p, vals[i])
		}
	}
	return ok && b.bindSizes(fn.Params, vals)
}

func paramNames(params []*paramNode) []string {
	out := make([]string, len(params))
	for i, p := range params {
		out[i] = p.Name.Text
	}
	return out
}

// matchArgs pairs arguments with parameters; nil where none was given.
func (b *builder) matchArgs(fn string, names []string, args []argument, span diag.Span) ([]*val, bool) {
	out := make([]*val, len(names))
	for i := range args {
		at := i
		if args[i].name != "" {
			at = -1
			for j, n := range names {
				if n == args[i].name {
					at = j
				}
			}
		}
		switch {
		case at < 0:
			hint := ""
			if near := nearest(args[i].name, append([]string(nil), names...)); near != "" {
				hint = ": did you mean " + near + "?"
			}
			b.errorf(args[i].span, "%s has no parameter %s%s", fn, args[i].name, hint)
			return nil, false
		case at >= len(names):
			b.errorf(args[i].span, "%s takes at most %s, found %d", fn, plural(len(names), "argument"), len(args))
			return nil, false
		case out[at] != nil:
			b.errorf(args[i].span, "parameter %s of %s is given twice", names[at], fn)
			return nil, false
		}
		args[i].val.span = args[i].val.span.Join(diag.Span{})
		out[at] = &args[i].val
	}
	return out, true
}

// bindDType unifies the dtype of a tensor argument with the parameter's.
func (b *builder) bindDType(p *paramNode, v val) bool {
	if isStaticParam(p) || v.kind != arrayVal {
		return true
	}
	have := v.arr.dtype
	if have == ir.Index {
		have = ir.I64
	}
	name := p.Type.Name
	if t, ok := ir.DTypeNamed(name); ok {
		if t != have {
			b.errorf(v.span, "argument %s must be %s, not %s: cast it with %s(...)", p.Name.Text, t, v.describe(), t)
		}
		return t == have
	}
	if old, ok := b.dtypes[name]; ok && old.dtype != have {
		b.errorf(v.span, "argument %s is %s, but %s is %s: cast one of them",
			p.Name.Text, have, old.what, old.dtype).
			Note(b.shownIn(b.parent, old.span), "%s is %s here", old.what, old.dtype)
		return false
	}
	b.dtypes[name] = dtypeBinding{have, v.span, p.Name.Text}
	return true
}

// bindParam gives one parameter its value.
func (b *builder) bindParam(p *paramNode, v val) bool {
	span := v.span
	switch {
	case v.kind == noneVal && p.Default != nil:
	case isStaticParam(p):
		if !staticFits(p.Type.Name, v) {
			b.errorf(span, "argument %s must be %s, not %s", p.Name.Text, staticTypes[p.Type.Name], v.describe())
			return false
		}
		if p.Type.Name == "float" && v.kind == intVal {
			v = floatv(float64(v.int)).at(span)
		}
	default:
		a := b.tensorArg(p, v)
		if a == nil {
			return false
		}
		v = arrv(b.settle(p.Name.Text, a, span)).at(span)
	}
	b.bind(p.Name, v)
	b.scope.names[p.Name.Text].val.bound = span
	return true
}

func staticFits(typ string, v val) bool {
	switch typ {
	case "int":
		return v.isSize()
	case "float":
		return v.kind == intVal || v.kind == floatVal
	case "bool":
		return v.kind == boolVal
	case "string":
		return v.kind == textVal
	}
	if v.kind == intVal || v.kind == noneVal {
		return true
	}
	for _, item := range v.list {
		if !item.isSize() {
			return false
		}
	}
	return v.kind == listVal
}

// tensorArg converts an argument to a tensor of the parameter's dtype.
func (b *builder) tensorArg(p *paramNode, v val) *array {
	if v.kind == arrayVal {
		return b.element(v)
	}
	t, ok := b.dtype(p.Type.Name)
	if !ok {
		t = literalType([]val{v})
	}
	a := b.convert(v, t)
	if a != nil && !ok {
		b.dtypes[p.Type.Name] = dtypeBinding{t, v.span, p.Name.Text}
	}
	return a
}

// bindSizes unifies the shapes of the tensor arguments with the declared ones:
// plain symbols first, then sizes computed from them.
func (b *builder) bindSizes(params []*paramNode, vals []val) bool {
	for _, plain := range []bool{true, false} {
		for i, p := range params {
			if isStaticParam(p) || vals[i].kind == noneVal {
				continue
			}
			v := b.scope.names[p.Name.Text].val
			what := "argument " + p.Name.Text + " of " + b.fn.Name.Text
			if !b.matchShape(what, p.Type.Dims, v.arr.shape, vals[i].span, plain) {
				return false
			}
		}
	}
	return true
}

// matchShape unifies one shape with its declaration.
func (b *builder) matchShape(name string, dims *dimsNode, shape []*ir.Expr, span diag.Span, plain bool) bool {
	var want []*dimNode
	if dims != nil {
		want = dims.Dims
	}
	have := shape
	if len(want) > 0 && want[0].Leading {
		if len(shape) < len(want)-1 {
			b.errorf(span, "%s needs at least %s, found shape %s", name, plural(len(want)-1, "axis"), shapeText(shape))
			return false
		}
		lead := shape[:len(shape)-len(want)+1]
		if plain && want[0].Name != "" && !b.matchLeading(name, want[0], lead, span) {
			return false
		}
		want, have = want[1:], shape[len(lead):]
	}
	if len(want) != len(have) {
		b.errorf(span, "%s must have %s, found shape %s", name, plural(len(want), "axis"), shapeText(shape))
		return false
	}
	for d, w := range want {
		if (bareName(w.Size) != "") == plain && !b.matchSize(name, w, have[d], shape, span) {
			return false
		}
	}
	return true
}

// matchLeading unifies named leading dims.
func (b *builder) matchLeading(name string, w *dimNode, lead []*ir.Expr, span diag.Span) bool {
	old := b.scope.names[w.Name]
	if old == nil {
		v := val{kind: listVal}
		for _, s := range lead {
			v.list = append(v.list, sizeVal(s))
		}
		b.scope.names[w.Name] = &binding{val: v, span: span}
		return true
	}
	same := len(old.val.list) == len(lead)
	for d := 0; same && d < len(lead); d++ {
		same = sameSize(old.val.list[d].indexExpr(), lead[d])
	}
	if !same {
		b.errorf(span, "leading axes of %s are %s, which differ from the %s of another argument", name,
			shapeText(lead), w.Name).Note(b.shownIn(b.parent, old.span), "%s comes from here", w.Name)
	}
	return same
}

// matchSize unifies one axis.
func (b *builder) matchSize(name string, w *dimNode, have *ir.Expr, shape []*ir.Expr, span diag.Span) bool {
	if w.Size == nil {
		b.errorf(w.span(), "... may stand only before the other sizes")
		return false
	}
	if open := b.openSymbol(w.Size); open != "" {
		return b.solve(open, w, have, name, shape, span)
	}
	want := b.dim(w.Size)
	if want == nil {
		return false
	}
	if !sameSize(want, have) {
		e := b.errorf(span, "%s has shape %s: expected size %s where it has %s", name, shapeText(shape),
			sizeText(want), sizeText(have))
		if old := b.scope.find(bareName(w.Size)); old != nil && b.muted == 0 {
			e.Note(b.shownIn(b.parent, old.span), "this argument gives %s the size %s",
				bareName(w.Size), sizeText(want))
		}
		return false
	}
	return true
}

// openSymbol returns a name in a declared size that has no value yet.
func (b *builder) openSymbol(e *exprNode) string {
	open := ""
	eachName(e, func(id *identNode) {
		if _, _, ok := b.lookup(id.Text); !ok {
			open = id.Text
		}
	})
	return open
}

// solve binds the open symbol of a declared size a*S + c.
func (b *builder) solve(symbol string, w *dimNode, have *ir.Expr, name string, shape []*ir.Expr,
	span diag.Span) bool {
	unknown := ir.Sym(symbol)
	b.scope.names[symbol] = &binding{val: arrv(constant(unknown)), span: span}
	want := b.dim(w.Size)
	if want == nil {
		return false
	}
	factor, rest, ok := linearIn(want, unknown)
	if !ok {
		b.errorf(w.span(), "cannot find %s from the size %s: expected the form a*%s + b",
			symbol, sizeText(want), symbol)
		return false
	}
	n := normal(subIndex(have, rest))
	if !b.requireDivides(n, ir.IntConst(factor), name, span) {
		return false
	}
	found := normal(divIndex(n, ir.IntConst(factor)))
	if found.Op == ir.OpConst && found.Int < 0 {
		b.errorf(span, "%s has shape %s: %s would be negative", name, shapeText(shape), symbol)
		return false
	}
	b.scope.names[symbol].val = sizeVal(found)
	return true
}

// linearIn splits e into factor*x + rest with a positive factor, x a symbol.
func linearIn(e, x *ir.Expr) (factor int64, rest *ir.Expr, ok bool) {
	at := func(v int64) *ir.Expr {
		return ir.Rewrite(e, func(e *ir.Expr) *ir.Expr {
			if ir.Equal(e, x) {
				return ir.IntConst(v)
			}
			return e
		})
	}
	rest = normal(at(0))
	step := normal(subIndex(at(1), rest))
	if step.Op != ir.OpConst || step.Int <= 0 || mentions(rest, x) {
		return 0, nil, false
	}
	return step.Int, rest, sameSize(e, addIndex(mulIndex(step, x), rest))
}

func mentions(e, x *ir.Expr) bool {
	found := false
	ir.Walk(e, func(e *ir.Expr) bool {
		found = found || ir.Equal(e, x)
		return !found
	})
	return found
}

// checkResults compares what fn returned with its declaration.
func (b *builder) checkResults(fn *fnNode, span diag.Span) []val {
	if fn.Results == nil {
		for i := range b.results {
			b.results[i] = b.results[i].at(span)
		}
		return b.results
	}
	if len(fn.Results) != len(b.results) {
		b.errorf(fn.Name.span(), "%s declares %s and returns %d",
			fn.Name.Text, plural(len(fn.Results), "result"), len(b.results))
		return b.poison(fn.Name.Text, span)
	}
	out := make([]val, len(b.results))
	for i, v := range b.results {
		out[i] = b.checkResult(fn, fn.Results[i], v).at(span)
	}
	return out
}

func (b *builder) checkResult(fn *fnNode, t *typeNode, v val) val {
	if !v.ok() || t.Dims == nil && staticTypes[t.Name] != "" && v.isStatic() {
		return v
	}
	want, known := b.dtype(t.Name)
	if !known {
		return b.fail(t.span(), "unknown dtype %s in the result of %s", t.Name, fn.Name.Text)
	}
	if v.isStatic() {
		a := b.convert(v, want)
		if a == nil {
			return val{}
		}
		v = arrv(a).at(v.span)
	}
	a := b.element(v)
	if a.dtype != want {
		return b.fail(v.span, "%s returns %s, but its result is declared %s: cast with %s(...)", fn.Name.Text,
			a.dtype, want, t.Name)
	}
	what := "result of " + fn.Name.Text
	for _, plain := range []bool{true, false} {
		if !b.matchShape(what, t.Dims, a.shape, v.span, plain) {
			return val{}
		}
	}
	v.arr = a
	return v
}
