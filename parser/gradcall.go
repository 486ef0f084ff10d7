package parser

import (
	"errors"
	"slices"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
	"github.com/fusec/fusec/ir/grad"
)

// gradName calls the gradient of a function: grad(f, x, ...).
const gradName = "grad"

// gradCall is grad(f, x, w, wrt=(x, w), dy=u, values=true): the gradients of f(x, w) by x and w.
type gradCall struct {
	fn     *fnNode
	mod    *module
	args   []argument // of f
	by     []int      // those of args by which gradients are taken
	dy     *val       // the adjoint of the result; nil: 1, and the result is a scalar
	values bool       // the result of f is the first result
	span   diag.Span
}

// gradSyntax takes a call of grad apart: f and wrt are names of a function and of its parameters,
// and no expressions.
func gradSyntax(n *callNode) (f, wrt *exprNode, rest []*argNode) {
	for i, a := range n.Args {
		switch {
		case i == 0 && a.Named == nil:
			f = a.Value
		case a.Named != nil && bareName(a.Value) == "wrt":
			wrt = a.Named
		default:
			rest = append(rest, a)
		}
	}
	return f, wrt, rest
}

// wrtNames are the names in wrt=x or wrt=(x, w).
func wrtNames(e *exprNode) []*exprNode {
	if e != nil && len(e.Rest) == 0 && len(e.First.Prefix) == 0 && len(e.First.Index) == 0 && e.First.Base.Tuple != nil {
		return e.First.Base.Tuple
	}
	return []*exprNode{e}
}

// gradient evaluates a call of grad: the result of f with values=true, and a gradient for each
// parameter in wrt.
func (b *builder) gradient(n *nameNode) []val {
	f, wrt, rest := gradSyntax(n.Call)
	c := &gradCall{span: n.span()}
	if b.gradFunction(c, f) {
		args, ok := b.arguments(&callNode{node: n.Call.node, Args: rest})
		if ok && b.gradOptions(c, args) && b.gradWrt(c, wrt) {
			if out := b.gradValues(c); out != nil {
				return out
			}
		}
	}
	count := len(wrtNames(wrt))
	if c.values {
		count++
	}
	return make([]val, count)
}

// gradFunction finds the function that is differentiated.
func (b *builder) gradFunction(c *gradCall, f *exprNode) bool {
	name := bareName(f)
	if name == "" {
		b.errorf(c.span, "grad takes the name of a function and its arguments: grad(f, x)")
		return false
	}
	c.fn, c.mod = b.mod.function(name)
	switch {
	case c.fn != nil:
		return true
	case name == gradName:
		b.errorf(f.span(), "grad of grad: name the first gradient, as in fn slope(x: T[]) -> T[] = grad(f, x), and write grad(slope, x)")
	case b.isFunction(name):
		b.errorf(f.span(), "grad takes a function that is declared: write fn f(x: T[]) -> T[] = %s(x), and grad(f, x)", name)
	case b.scope.find(name) != nil:
		b.errorf(f.span(), "grad takes the name of a function first, and %s is a value: grad(f, %s), with fn f(x: T[]) -> T[] = ...; "+
			"graph dg = grad(g, wrt=[x]) differentiates a graph", name, name)
	default:
		b.undefined(f.span(), name, true)
	}
	return false
}

// gradOptions tells the arguments of grad itself from those of f.
func (b *builder) gradOptions(c *gradCall, args []argument) bool {
	for _, a := range args {
		switch {
		case a.name == "dy":
			v := a.val
			c.dy = &v
		case a.name == "values" && a.val.kind == boolVal:
			c.values = a.val.int == 1
		case a.name == "values":
			b.errorf(a.span, "values is true or false: whether the result of %s is the first result", c.fn.Name.Text)
			return false
		default:
			c.args = append(c.args, a)
		}
	}
	return true
}

// gradWrt finds the arguments by which gradients are taken: without wrt, the first.
func (b *builder) gradWrt(c *gradCall, wrt *exprNode) bool {
	if wrt == nil {
		if len(c.args) == 0 {
			b.errorf(c.span, "grad takes the name of a function and its arguments: grad(%s, x)", c.fn.Name.Text)
			return false
		}
		c.by = []int{0}
		return b.differentiableArg(c, 0, c.args[0].span)
	}
	names := paramNames(c.fn.Params)
	for _, e := range wrtNames(wrt) {
		name, at := bareName(e), -1
		for i, a := range c.args {
			if a.name == name || a.name == "" && i < len(names) && names[i] == name {
				at = i
			}
		}
		switch {
		case name == "":
			b.errorf(e.span(), "wrt names parameters of %s: wrt=x or wrt=(x, w)", c.fn.Name.Text)
			return false
		case at < 0 && contains(names, name):
			b.errorf(e.span(), "%s is not given: there is nothing to differentiate by", name)
			return false
		case at < 0:
			b.errorf(e.span(), "%s has no parameter %s%s", c.fn.Name.Text, name, parameterHint(c.fn.Name.Text, name, names))
			return false
		}
		for _, seen := range c.by {
			if seen == at {
				b.errorf(e.span(), "%s stands twice in wrt", name)
				return false
			}
		}
		c.by = append(c.by, at)
		if !b.differentiableArg(c, at, e.span()) {
			return false
		}
	}
	return true
}

// differentiableArg reports an argument that has no gradient.
func (b *builder) differentiableArg(c *gradCall, at int, span diag.Span) bool {
	v := c.args[at].val
	if v.kind == arrayVal && v.arr.dtype.IsFloat() {
		return true
	}
	hint := ""
	if v.isNumber() {
		hint = ": write f32(...)"
	}
	b.errorf(span, "there is no derivative by %s: only tensors of floats have one%s", v.describe(), hint)
	return false
}

// gradValues expands the function and differentiates it; nil after a mistake. Arguments by which
// it is differentiated become values of their own, so that what else reads the same tensor does
// not count. In index notation everything is computed for each index: the values get its ranges.
func (b *builder) gradValues(c *gradCall) []val {
	if b.rules == nil { // the derivatives that functions declare count from here on
		b.rules = grad.Rules{}
		defer func() { b.rules = nil }()
	}
	over := b.gradRanges(c)
	var by []*ir.Value
	var outer []*ir.Expr
	args := append([]argument(nil), c.args...)
	for _, i := range c.by {
		x := b.lifted(c.name(i), args[i].val.arr, over, c.span)
		by, outer = append(by, x.value), x.outer
		args[i].val.arr = x
	}
	y := b.gradResult(c, args, over)
	if y == nil {
		return nil
	}
	weight, ok := b.gradWeight(c, y, over)
	if !ok {
		return nil
	}
	before := len(b.g.Values)
	ds, err := grad.Adjoints(b.g, y.value, weight, by, grad.Options{Rules: b.rules})
	if err != nil {
		b.gradBlocked(c, by, err)
		return nil
	}
	if !b.countValues(b.g.Values[before:], c.span) {
		return nil
	}
	var out []val
	if c.values {
		out = append(out, arrv(y).at(c.span))
	}
	for _, d := range ds {
		out = append(out, arrv(ofValue(d, outer)).at(c.span))
	}
	return out
}

// name is the name of the parameter that argument i is for.
func (c *gradCall) name(i int) string {
	if c.args[i].name == "" && i < len(c.fn.Params) {
		return c.fn.Params[i].Name.Text
	}
	return c.args[i].name
}

// gradRanges are the ranges of the surrounding index notation that the arguments depend on.
func (b *builder) gradRanges(c *gradCall) []*ir.Range {
	vals := make([]val, 0, len(c.args)+1)
	for _, a := range c.args {
		vals = append(vals, a.val)
	}
	if c.dy != nil {
		vals = append(vals, *c.dy)
	}
	var out []*ir.Range
	for _, v := range vals {
		if v.kind != arrayVal {
			continue
		}
		axes := b.g.NewAxes(v.arr.shape)
		for _, r := range freeRanges(v.arr.elem(ir.Indices(axes)), axes) {
			if !slices.Contains(out, r) {
				out = append(out, r)
			}
		}
	}
	slices.SortFunc(out, func(x, y *ir.Range) int { return x.ID - y.ID })
	return out
}

// gradResult expands the function and makes its result a value; nil where that has no gradient.
func (b *builder) gradResult(c *gradCall, args []argument, over []*ir.Range) *array {
	results := b.callFn(c.fn, c.mod, args, c.span)
	name := c.fn.Name.Text
	if len(results) != 1 {
		b.errorf(c.span, "%s gives %d results: grad differentiates a function with one", name, len(results))
		return nil
	}
	v := results[0]
	switch {
	case !v.ok():
		return nil
	case v.kind != arrayVal || !v.arr.dtype.IsFloat():
		b.errorf(c.span, "%s gives %s: only floats have a derivative", name, v.describe())
		return nil
	case c.dy == nil && len(v.arr.shape) > 0:
		b.errorf(c.span, "%s gives %s, which is no scalar: give the adjoint of its result with dy=..., differentiate a sum of it, "+
			"or take the gradient for each element, as in y[i] = grad(f, x[i])", name, v.describe())
		return nil
	}
	return b.lifted("of", v.arr, over, c.span)
}

// gradWeight makes a value of dy, which is nil where none is given; ok is false after a mistake.
func (b *builder) gradWeight(c *gradCall, y *array, over []*ir.Range) (weight *ir.Value, ok bool) {
	if c.dy == nil {
		return nil, true
	}
	dy := b.convert(*c.dy, y.dtype)
	if dy == nil {
		return nil, false
	}
	same := len(dy.shape) == len(y.shape)
	for d := 0; same && d < len(y.shape); d++ {
		same = b.sameSize(dy.shape[d], y.shape[d])
	}
	if !same {
		b.errorf(c.dy.span, "dy is %s, but %s gives %s: the adjoint of a result has its shape", dy.describe(), c.fn.Name.Text, y.describe())
		return nil, false
	}
	return b.lifted("dy", dy, over, c.span).value, true
}

// derivedCost is how many operands of the source take as long as one node that is derived.
const derivedCost = 4

// countValues counts the operands of values that were derived. It reports false once the budget
// is spent: a gradient is a few times as large as the graph that it is of, and the gradient of a
// gradient again.
func (b *builder) countValues(values []*ir.Value, span diag.Span) bool {
	if b.spent() {
		return false
	}
	for _, v := range values {
		ir.Walk(v.Body, func(*ir.Expr) bool {
			b.operands += derivedCost
			return true
		})
	}
	if b.spent() {
		b.errorf(span, "gradient takes more than %d operands to expand: differentiate fewer times", b.limits.Operands)
	}
	return !b.spent()
}

// gradBlocked reports a parameter on which the result does not depend; by are the values of those.
func (b *builder) gradBlocked(c *gradCall, by []*ir.Value, err error) {
	var blocked *grad.Blocked
	if errors.As(err, &blocked) {
		at := slices.IndexFunc(by, func(v *ir.Value) bool { return v.Name == blocked.Input })
		blocked.Input = c.name(c.by[at])
	}
	e := b.errorf(c.span, "cannot differentiate %s: %s", c.fn.Name.Text, err)
	if blocked != nil && blocked.At != nil && !blocked.Span.IsZero() {
		e.Note(blocked.Span, "this has no derivative: the path from %s ends here", blocked.Input)
	}
}

// lifted makes a value of an array, one for each point of the ranges over that surround it.
func (b *builder) lifted(name string, a *array, over []*ir.Range, span diag.Span) *array {
	axes := b.g.NewAxes(a.shape)
	return b.defineLifted(name, axes, over, a.elem(ir.Indices(axes)), span)
}
