package parser

import (
	"strings"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// builtin is one row of the table of built-in functions.
type builtin struct {
	name   string
	params string // "x, axis = none, dims..."; a row's call sees the values in this order
	result string // for the signature
	doc    string
	call   func(b *builder, args []val, span diag.Span) []val
}

func (r *builtin) signature() string { return r.name + "(" + r.params + ") -> " + r.result }

// one adapts a function with one result to a row.
func one(f func(b *builder, args []val, span diag.Span) val) func(*builder, []val, diag.Span) []val {
	return func(b *builder, args []val, span diag.Span) []val { return []val{f(b, args, span).at(span)} }
}

var builtinRows = []*builtin{
	{"reshape", "x, dims...", "tensor", "the same elements in row-major order under another shape; one size may be -1", one(reshape)},
	{"transpose", "x, a = -2, b = -1", "tensor", "x with two axes exchanged", one(transpose)},
	{"permute", "x, order", "tensor", "x with its axes in the given order", one(permute)},
	{"broadcast", "x, dims...", "tensor", "x repeated to a larger shape", one(broadcastTo)},
	{"flip", "x, axis = none", "tensor", "x with the order along the axes reversed", one(flip)},
	{"roll", "x, shift, axis = -1", "tensor", "x moved along an axis; what falls off one end enters at the other", one(roll)},
	{"concat", "tensors..., axis = 0", "tensor", "tensors joined along an axis", one(concatenate)},
	{"stack", "tensors..., axis = 0", "tensor", "tensors joined along a new axis", one(stack)},
	{"split", "x, parts, axis = -1", "parts tensors", "x cut along an axis into equal parts, or into parts of the listed sizes", split},
	{"pad", "x, width, axis = -1, value = 0", "tensor", "x with (before, after) elements added along an axis", one(pad)},
	{"repeat", "x, times, axis = -1", "tensor", "each element along an axis times over", one(repeat)},
	{"squeeze", "x, axis", "tensor", "x without axes of size 1", one(squeeze)},
	{"unsqueeze", "x, axis", "tensor", "x with new axes of size 1", one(unsqueeze)},
	{"rank", "x", "int", "number of axes", one(rank)},
	{"dim", "x, axis", "int", "size of an axis", one(dimOf)},
	{"count", "x, axis = none", "int", "number of elements along the given axes, or of all", one(count)},
	{"iota", "n", "i64[n]", "0, 1, ..., n-1", one(counting)},
	{"full", "value, dims..., dtype = none", "tensor", "a tensor of one value", one(full)},
	{"zeros_like", "x", "tensor", "zeros of x's dtype and shape", one(likeRow(0))},
	{"ones_like", "x", "tensor", "ones of x's dtype and shape", one(likeRow(1))},
	{"wide", "x", "tensor", "x in the type it is computed in: f32 for narrower floats, else x", one(wide)},
	{"random_bits", "seed, like", "u32 tensor", "random bits of like's shape: Philox keyed by seed at the element's position", one(randomBits)},
	{"random_at", "seed, position", "u32", "the random bits at one position: an element of random_bits", one(randomAt)},
	{"random_bits16", "seed, like", "u32 tensor", "16 random bits an element, for draws that need no more: half the work", one(randomBits16)},
	{"random_at16", "seed, position", "u32", "an element of random_bits16", one(randomAt16)},
	{gradName, "f, x, args..., wrt = x, dy = 1, values = false", "tensors", "the gradients of f(x, args...) by the parameters in wrt", nil}, // see gradient
	{"stop_gradient", "x", "tensor", "x, which gradients take for a constant", one(stopGradient)},
	{"stationary", "x", "tensor", "x, by which what is computed has a derivative of 0: gradients leave out that term", one(stationary)},
	{"einsum", "spec, tensors...", "tensor", "sum of products by index letters, ... for axes that broadcast: einsum(\"ij,jk->ik\", a, b); in f32 and f64 two tensors are summed at a time", one(einsum)},
}

// builtins indexes the rows by name. Code that the rows call reaches it through
// its module: naming the variable there would be an initialization cycle.
var builtins, builtinOrder = indexBuiltins()

func indexBuiltins() (map[string]*builtin, []string) {
	rows, order := map[string]*builtin{}, []string{}
	for _, r := range builtinRows {
		rows[r.name] = r
		order = append(order, r.name)
	}
	return rows, order
}

// reductionRow is the row of a reduction called on a whole tensor.
func reductionRow(m ir.Monoid) *builtin {
	return &builtin{name: m.String(), params: "x, axis = none, keep = false", result: "tensor", doc: m.Info().Doc}
}

// callBuiltin binds the arguments of a row and calls it.
func (b *builder) callBuiltin(row *builtin, args []argument, span diag.Span) []val {
	vals, ok := b.bindBuiltin(row, args, span)
	if !ok {
		return []val{{span: span}}
	}
	return row.call(b, vals, span)
}

// bindBuiltin orders the arguments as the row's parameters. A parameter with
// three dots takes all arguments by position from there on, as a list.
func (b *builder) bindBuiltin(row *builtin, args []argument, span diag.Span) ([]val, bool) {
	names, defaults, many := parseParams(row.params)
	if many >= 0 {
		args = gather(args, many, names)
	}
	given, ok := b.matchArgs(row.name, names, args, span)
	if !ok {
		return nil, false
	}
	out := make([]val, len(names))
	for i, name := range names {
		switch {
		case given[i] != nil:
			out[i] = *given[i]
		case i == many:
			out[i] = val{kind: listVal, span: span}
		case defaults[i] == "":
			b.errorf(span, "%s needs the argument %s: %s", row.name, name, row.signature())
			return nil, false
		default:
			out[i] = defaultValue(defaults[i]).at(span)
		}
	}
	return out, true
}

func parseParams(params string) (names, defaults []string, many int) {
	many = -1
	for i, p := range strings.Split(params, ", ") {
		name, def, _ := strings.Cut(p, " = ")
		if rest, ok := strings.CutSuffix(name, "..."); ok {
			name, many = rest, i
		}
		names, defaults = append(names, name), append(defaults, def)
	}
	return names, defaults, many
}

func defaultValue(text string) val {
	switch text {
	case "-1":
		return intv(-1)
	case "-2":
		return intv(-2)
	case "0":
		return intv(0)
	}
	return predefined[text]
}

// gather collects the arguments by position from the given one on into a list.
func gather(args []argument, first int, names []string) []argument {
	var out []argument
	list := argument{name: names[first], val: val{kind: listVal}}
	for i, a := range args {
		if i < first || a.name != "" {
			out = append(out, a)
			continue
		}
		list.val.list = append(list.val.list, a.val)
		list.val.span = list.val.span.Join(a.span)
		list.span = list.val.span
	}
	if list.val.list != nil {
		out = append(out, list)
	}
	return out
}

// dims flattens a list of sizes: numbers, sizes, and lists of them.
func (b *builder) dims(list []val, fn string) ([]val, bool) {
	var out []val
	for _, v := range list {
		if v.kind == listVal {
			inner, ok := b.dims(v.list, fn)
			if !ok {
				return nil, false
			}
			out = append(out, inner...)
			continue
		}
		if !v.isSize() {
			b.errorf(v.span, "size given to %s must be an integer, not %s", fn, v.describe())
			return nil, false
		}
		out = append(out, v)
	}
	return out, true
}

// shapeArgs evaluates sizes that must not be negative.
func (b *builder) shapeArgs(list []val, fn string, span diag.Span) ([]*ir.Expr, bool) {
	vals, ok := b.dims(list, fn)
	if !ok {
		return nil, false
	}
	out := make([]*ir.Expr, len(vals))
	for i, v := range vals {
		if out[i] = b.sizeOf(v, v.span); out[i] == nil {
			return nil, false
		}
	}
	if _, fits := product(out); !fits {
		b.errorf(span, "tensor of shape %s has more than 2^63 elements", shapeText(out))
		return nil, false
	}
	return out, true
}
