package parser

import (
	"slices"
	"strconv"
	"strings"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// staticTypes are the parameter types that take compile-time values.
var staticTypes = map[string]string{
	"int": "an integer", "float": "a number", "bool": "true or false", "string": "a text in quotes",
	"ints": "an integer or a list of integers", "edges": "an integer, a list of integers or of pairs of them, or a text",
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
		if ok && paramNamed(fn.Params[:i], p.Name.Text) == nil { // which checkParams tells
			ok = b.bindParam(p, vals[i])
		}
	}
	if b.mod.library && !b.parent.mod.library {
		ok = ok && b.fitLibrary(fn)
	}
	return ok && b.bindSizes(fn.Params, vals)
}

// fitLibrary checks what the arguments of a function of the library mean by their names: an axis is one of the first tensor, and
// dtypes I, J and K are of integers. What its body finds wrong would be said of values that the caller does not see.
func (b *builder) fitLibrary(fn *fnNode) bool {
	rank := -1
	for _, p := range fn.Params {
		v := b.scope.find(p.Name.Text).val
		if v.kind == arrayVal && rank < 0 {
			rank = len(v.arr.shape)
		}
		if p.Name.Text == "axis" && v.kind == intVal && rank >= 0 {
			if _, ok := b.axis(v, rank, fn.Name.Text); !ok {
				return false
			}
		}
		if v.kind == arrayVal && isIntegerName(p.Type) && !v.arr.dtype.IsInt() {
			hint := argumentHint(fn.Name.Text, p.Name.Text)
			if hint == "" {
				hint = ": cast it with i64(...)"
			}
			b.errorf(v.span, "argument %s of %s must be of integers, not %s%s", p.Name.Text, fn.Name.Text, v.describe(), hint)
			return false
		}
	}
	return true
}

func isIntegerName(t *typeNode) bool {
	return t != nil && (t.Name == "I" || t.Name == "J" || t.Name == "K")
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
			b.errorf(args[i].span, "%s has no parameter %s%s", fn, args[i].name, parameterHint(fn, args[i].name, names))
			return nil, false
		case at >= len(names):
			b.errorf(args[i].span, "%s takes at most %s, found %d%s", fn, plural(len(names), "argument"), len(args), argumentHint(fn, surplus))
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

// parameterNames lists the parameters of a function in order: who comes from a library that has them in another, sees that.
func parameterNames(fn *fnNode) string {
	var names []string
	for _, p := range fn.Params {
		names = append(names, p.Name.Text)
	}
	return strings.Join(names, ", ")
}

// bindParam gives one parameter its value.
func (b *builder) bindParam(p *paramNode, v val) bool {
	span := v.span
	switch {
	case v.kind == noneVal && p.Default != nil:
	case isStaticParam(p):
		if !staticFits(p.Type.Name, v) {
			hint := "the parameters are (" + parameterNames(b.fn) + ")"
			if form := foreignArguments[[2]string{b.fn.Name.Text, p.Name.Text}]; form != "" {
				hint = form
			}
			b.errorf(span, "argument %s must be %s, not %s: %s", p.Name.Text, staticTypes[p.Type.Name], v.describe(), hint)
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
	pairs := typ == "edges"
	if v.isSize() || v.kind == noneVal || pairs && v.kind == textVal {
		return true
	}
	return v.kind == listVal && !slices.ContainsFunc(v.list, func(item val) bool {
		return !item.isSize() && !(pairs && item.kind == listVal && len(item.list) == 2 && staticFits("ints", item))
	})
}

// tensorArg converts an argument to a tensor of the parameter's dtype.
func (b *builder) tensorArg(p *paramNode, v val) *array {
	if v.kind == arrayVal {
		return b.element(v)
	}
	if form := foreignArguments[[2]string{b.fn.Name.Text, p.Name.Text}]; form != "" && v.kind == noneVal {
		b.errorf(v.span, "argument %s of %s must be a tensor, not none: %s", p.Name.Text, b.fn.Name.Text, form)
		return nil
	}
	if sizes := b.sizesGiven(p, v); sizes >= 0 {
		b.errorf(v.span, "argument %s of %s must be a tensor, not %s: the parameters are (%s)%s", p.Name.Text, b.fn.Name.Text, v.describe(),
			parameterNames(b.fn), b.namedAxes(sizes))
		return nil
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

// sizesGiven is how many sizes stand in place of a tensor: a list is no tensor, and neither is a number where a function of
// the library may take a weight. It is -1 for other arguments.
func (b *builder) sizesGiven(p *paramNode, v val) int {
	switch {
	case v.kind == listVal:
		return len(v.list)
	case v.kind == intVal && b.mod.library && p.Default != nil && paramNamed(b.fn.Params, "axis") != nil:
		return 1
	}
	return -1
}

// namedAxes says how a function is told which axes it works on: other libraries list their sizes behind the tensor.
func (b *builder) namedAxes(sizes int) string {
	if sizes == 0 || paramNamed(b.fn.Params, "axis") == nil {
		return ""
	}
	last := make([]string, sizes)
	for i := range last {
		last[i] = strconv.Itoa(i - sizes)
	}
	text := strings.Join(last, ", ")
	if sizes > 1 {
		text = "(" + text + ")"
	}
	return "; axes are named, and not their sizes, as in axis=" + text
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
			if v.kind != arrayVal { // the name is that of another parameter too, which was an error
				return false
			}
			what := "argument " + p.Name.Text + " of " + b.fn.Name.Text
			if !b.matchShape(what, p.Type.Dims, v.arr.shape, vals[i].span, plain) {
				return false
			}
		}
	}
	return true
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
		return b.fail(t.span(), "unknown dtype %s in the result of %s%s", t.Name, fn.Name.Text, foreignType(t.Name))
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
	a = b.conditioned(a)
	what := "result of " + fn.Name.Text
	for _, plain := range []bool{true, false} {
		if !b.matchShape(what, t.Dims, a.shape, v.span, plain) {
			return val{}
		}
	}
	v.arr = a
	return v
}

// conditioned writes sizes as they are under the conditions of the program so far: with an
// even D, D / 2 * 2 is D.
func (b *builder) conditioned(a *array) *array {
	if len(b.g.Constraints) == 0 {
		return a
	}
	out := *a
	out.shape = nil
	for _, size := range a.shape {
		if len(size.Args) > 0 {
			size = ir.Simplify(size, b.g.Facts())
		}
		out.shape = append(out.shape, size)
	}
	return &out
}
