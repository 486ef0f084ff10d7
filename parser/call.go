package parser

import (
	"fmt"
	"strings"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// argument is an evaluated argument of a call.
type argument struct {
	name string // "" by position
	val  val
	span diag.Span
}

// call evaluates f(args) and returns its results: one, but for functions with several.
func (b *builder) call(n *nameNode) []val {
	results := b.callNamed(n)
	b.trace.called(n.Name.span(), results)
	return results
}

func (b *builder) callNamed(n *nameNode) []val {
	name := n.Name.Text
	if name == gradName {
		return b.gradient(n)
	}
	if !b.isFunction(name) {
		for _, a := range n.Call.Args {
			b.argValue(a)
		}
		return []val{b.undefined(n.Name.span(), name, true)}
	}
	hint := b.hint
	b.hint = ""
	args, ok := b.arguments(n.Call)
	b.hint = hint
	if !ok {
		return b.poison(name, n.span())
	}
	b.hint = ""
	if fn, mod := b.mod.function(name); fn != nil {
		return reducedBy(fn, mod, args, b.callFn(fn, mod, args, n.span()))
	}
	b.hint = hint
	if row, ok := b.mod.rows[name]; ok {
		return b.callBuiltin(row, args, n.span())
	}
	return []val{b.callTable(name, args, n.span())}
}

// poison returns as many poisoned results as the function gives.
func (b *builder) poison(name string, span diag.Span) []val {
	if fn, _ := b.mod.function(name); fn != nil {
		return make([]val, resultCount(fn))
	}
	return []val{{span: span}}
}

// resultCount is how many results fn gives: as declared, else as its last return lists.
func resultCount(fn *fnNode) int {
	switch {
	case fn.Results != nil:
		return len(fn.Results)
	case fn.Body != nil && len(fn.Body.Stmts) > 0:
		if last := fn.Body.Stmts[len(fn.Body.Stmts)-1].Return; last != nil {
			return len(last.Values)
		}
	}
	return 1
}

func (b *builder) isFunction(name string) bool {
	if fn, _ := b.mod.function(name); fn != nil {
		return true
	}
	if _, ok := b.mod.rows[name]; ok {
		return true
	}
	if _, ok := elementwiseNamed(name); ok {
		return true
	}
	if _, ok := ir.MonoidNamed(name); ok {
		return true
	}
	_, ok := b.dtype(name)
	return ok || name == ir.Index.String()
}

// elementwiseNamed returns the operation called by name; casts and random bits
// have forms of their own.
func elementwiseNamed(name string) (ir.Op, bool) {
	op, ok := ir.OpNamed(name)
	return op, ok && op != ir.OpCast
}

func (b *builder) argValue(a *argNode) val {
	if a.Named != nil {
		return b.expr(a.Named)
	}
	return b.expr(a.Value)
}

// arguments evaluates the arguments; ok is false where one is poisoned or malformed.
func (b *builder) arguments(n *callNode) (args []argument, ok bool) {
	ok = true
	for _, a := range n.Args {
		arg := argument{val: b.argValue(a), span: a.span()}
		if a.Named != nil {
			if arg.name = bareName(a.Value); arg.name == "" {
				b.errorf(a.Value.span(), "expected a parameter name before =")
				ok = false
			}
		} else if len(args) > 0 && args[len(args)-1].name != "" {
			b.errorf(a.span(), "argument by position after one by name")
			ok = false
		}
		ok = ok && arg.val.ok()
		args = append(args, arg)
	}
	return args, ok
}

// callTable calls what is a row of an ir table: an operation, a reduction or a cast.
func (b *builder) callTable(name string, args []argument, span diag.Span) val {
	if m, ok := ir.MonoidNamed(name); ok {
		if op, ok := elementwiseNamed(name); ok && len(args) > 1 && args[1].name == "" {
			return b.foldMany(op, name, args, span)
		}
		vals, ok := b.bindBuiltin(reductionRow(m), args, span)
		if !ok {
			return val{span: span}
		}
		return b.reduceCall(m, vals, span)
	}
	vals, ok := b.positional(name, args)
	if !ok {
		return val{span: span}
	}
	if op, ok := elementwiseNamed(name); ok {
		if want := op.Info().Arity; len(vals) != want {
			return b.fail(span, "%s takes %s, not %d", name, plural(want, "argument"), len(vals))
		}
		return b.elementwise(op, vals, span)
	}
	if len(vals) != 1 {
		return b.fail(span, "%s(...) takes 1 argument, not %d", name, len(vals))
	}
	return b.cast(name, vals[0], span)
}

// foldMany is min(a, b, ...) and max(a, b, ...).
func (b *builder) foldMany(op ir.Op, name string, args []argument, span diag.Span) val {
	vals, ok := b.positional(name, args)
	if !ok {
		return val{span: span}
	}
	out := vals[0]
	for _, v := range vals[1:] {
		out = b.elementwise(op, []val{out, v}, span)
	}
	if m, _ := ir.MonoidNamed(name); out.ok() && len(vals) == 2 {
		out.meant = b.meantAs(m, vals, false)
	}
	return out
}

// byPosition says how a function without names for its arguments is called. max(x, 1, keep=true) was meant to reduce.
func byPosition(name string) string {
	m, reduces := ir.MonoidNamed(name)
	if !reduces {
		return "it takes its arguments by position"
	}
	return fmt.Sprintf("of several tensors or numbers it takes the %s of each element; %s(x, axis=1, keep=true) reduces", m, name)
}

func (b *builder) positional(name string, args []argument) ([]val, bool) {
	out := make([]val, len(args))
	for i, a := range args {
		if a.name != "" {
			b.errorf(a.span, "%s has no parameter %s: %s", name, a.name, byPosition(name))
			return nil, false
		}
		out[i] = a.val
	}
	return out, true
}

// cast evaluates f32(x) and the like.
func (b *builder) cast(name string, v val, span diag.Span) val {
	t, ok := b.dtype(name)
	if !ok {
		t = ir.Index
	}
	if v.isNumber() {
		e := ir.IntNum(ir.I64, v.int)
		if v.kind == floatVal {
			e = ir.Num(ir.F64, v.float)
		}
		e = ir.Cast(e, t)
		if t == ir.Index {
			return intv(e.Int).at(span)
		}
		return arrv(constant(e.At(b.shown(span)))).at(span)
	}
	if v.kind != arrayVal {
		return b.fail(span, "cannot cast %s to %s", v.describe(), t)
	}
	if t != ir.Index {
		return arrv(castArray(v.arr, t)).at(span)
	}
	if len(v.arr.shape) > 0 || !v.arr.dtype.IsInt() {
		return b.fail(span, "index(...) takes an integer scalar, not %s", v.describe())
	}
	return b.bounded(castArray(v.arr, t), span)
}

const maxCallDepth = 100

// enter checks that fn may be called from here.
func (b *builder) enter(fn *fnNode, span diag.Span) bool {
	depth := 0
	for f := b.frame; f != nil; f = f.parent {
		depth++
		if f.fn == fn {
			b.errorf(span, "functions must not call themselves: %s", b.cycle(fn))
			return false
		}
	}
	if depth > maxCallDepth {
		b.errorf(span, "functions call each other more than %d deep", maxCallDepth)
		return false
	}
	return b.step(span)
}

func (b *builder) cycle(fn *fnNode) string {
	names := []string{fn.Name.Text}
	for f := b.frame; f != nil && f.fn != nil; f = f.parent {
		names = append([]string{f.fn.Name.Text}, names...)
		if f.fn == fn {
			break
		}
	}
	return strings.Join(names, " -> ")
}

// callFn expands a function of the program or the library, with its declared derivative
// where the graph is one to be differentiated.
func (b *builder) callFn(fn *fnNode, mod *module, args []argument, span diag.Span) []val {
	if b.rules != nil && fn.Grad != nil && !b.deriving[fn] && b.extentsKnown(args) {
		return b.callDeclared(fn, mod, args, span)
	}
	return b.expandFn(fn, mod, args, span)
}

func (b *builder) expandFn(fn *fnNode, mod *module, args []argument, span diag.Span) []val {
	bad := b.poison(fn.Name.Text, span)
	if !b.enter(fn, span) {
		return bad
	}
	if b.called != nil {
		b.called[fn] = true
	}
	caller := b.frame
	path := caller.path
	if mod.library {
		path = strings.TrimPrefix(path+"/"+fn.Name.Text, "/")
	}
	b.frame = &frame{parent: caller, fn: fn, mod: mod, scope: newScope(nil), call: span, args: args, path: path,
		dtypes: map[string]dtypeBinding{}, body: fn.Body}
	defer func() { b.frame = caller }()
	b.binding = true
	ok := b.bindParams(fn, args, span)
	if b.binding = false; !ok {
		return bad
	}
	if fn.Short != nil {
		b.results = []val{b.named("", fn.Short)}
	} else {
		b.block(fn.Body)
	}
	if !b.done && fn.Short == nil {
		if len(*b.errs) == 0 || !b.spent() && !b.full() {
			b.errorf(fn.Name.span(), "%s ends without return", fn.Name.Text)
		}
		return bad
	}
	return b.checkResults(fn, span)
}
