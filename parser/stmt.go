package parser

import (
	"fmt"
	"strings"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// block executes statements until one returns or the budget is spent.
func (b *builder) block(n *blockNode) {
	for _, s := range n.Stmts {
		if b.failed {
			return
		}
		if b.done {
			b.errorf(s.span(), "statement after return")
			return
		}
		if !b.step(s.span()) {
			return
		}
		b.statement(s)
	}
}

func (b *builder) statement(s *stmtNode) {
	switch {
	case s.broken:
		b.skipStmt(s)
	case s.For != nil:
		b.forLoop(s.For)
	case s.If != nil:
		b.ifElse(s.If)
	case s.Return != nil:
		b.returns(s.Return)
	case s.Error != nil:
		if text := b.text(s.Error.Text, s.Error.span()); text.ok() {
			b.raise(s.Error, text.text)
		}
	case s.Require != nil:
		b.requirement(s.Require)
	default:
		b.assign(s.Assign)
	}
}

// raise reports error("...") at the call of the function it stands in.
func (b *builder) raise(n *errorNode, text string) {
	span := n.span()
	if b.fn != nil {
		span = b.shownIn(b.parent, b.frame.call)
		text = b.calledName() + ": " + text
	}
	if b.muted == 0 && !b.full() {
		b.errs.Add(span, "%s", text)
	}
	b.done, b.failed = true, true
	if b.fn != nil {
		b.results = make([]val, resultCount(b.fn))
	}
}

// calledName is the function that a mistake is told of: of the library's, the one that the program calls.
func (b *builder) calledName() string {
	f := b.frame
	for f.mod.library && f.parent != nil && f.parent.fn != nil && f.parent.mod.library {
		f = f.parent
	}
	return f.fn.Name.Text
}

func (b *builder) requirement(n *requireNode) {
	v := b.expr(n.Cond)
	why := b.text(n.Why, n.span())
	switch {
	case !v.ok() || !why.ok():
	case v.kind == boolVal:
		if v.int == 0 {
			b.refused(n, why.text)
		}
	case !b.isBool(v) || len(v.arr.shape) > 0 || !overSymbols(v.arr.elem(nil)):
		b.errorf(n.Cond.span(), "require takes a condition on sizes, not %s", v.describe())
	default:
		b.require(v.arr.elem(nil), why.text, n.span())
	}
}

// refused reports a condition of numbers that does not hold, with what it found, and
// ends the body, which relies on it.
func (b *builder) refused(n *requireNode, why string) {
	var found []string
	var tensors []val
	eachName(n.Cond, func(id *identNode) {
		switch v, _, ok := b.lookup(id.Text); {
		case !ok:
		case v.kind == intVal:
			found = append(found, fmt.Sprintf("%s = %d", id.Text, v.int))
		default:
			v.name = id.Text
			tensors = append(tensors, v)
		}
	})
	if len(found) > 0 {
		why += ": found " + strings.Join(found, ", ")
	}
	b.origins(b.errorf(n.span(), "%s", why), tensors)
	b.done, b.failed = true, true
	if b.fn != nil {
		b.results = make([]val, resultCount(b.fn))
	}
}

// overSymbols reports whether e can be evaluated once the symbols are known.
func overSymbols(e *ir.Expr) bool {
	ok := true
	ir.Walk(e, func(e *ir.Expr) bool {
		ok = ok && e.Op != ir.OpLoad && e.Op != ir.OpRange && e.Op != ir.OpReduce && !e.Type.IsFloat()
		return ok
	})
	return ok
}

func (b *builder) forLoop(n *forNode) {
	from, ok1 := b.staticInt(n.From, "start of a for loop")
	to, ok2 := b.staticInt(n.To, "end of a for loop")
	if !ok1 || !ok2 {
		b.skip(n.Body)
		return
	}
	if to > from && uint64(to)-uint64(from) > uint64(b.limits.Steps) {
		b.errorf(n.span(), "loop runs %d times, more than the %d steps a graph may take",
			uint64(to)-uint64(from), b.limits.Steps)
		b.skip(n.Body)
		return
	}
	b.dynamic++
	for k := from; k < to && !b.done && b.step(n.span()); k++ {
		b.bind(n.Var, intv(k).at(n.Var.span()))
		b.block(n.Body)
	}
	b.dynamic--
}

func (b *builder) ifElse(n *ifNode) {
	v := b.expr(n.Cond)
	if v.kind != boolVal {
		for next := n; next != nil; next = next.Elif {
			b.skip(next.Then)
			b.skip(next.Else)
		}
	}
	if !v.ok() {
		return
	}
	if v.kind != boolVal {
		b.errorf(n.Cond.span(),
			"condition must be a bool known at compile time, not %s: use where(...) to choose element by element",
			v.describe())
		return
	}
	b.dynamic++
	switch {
	case v.int == 1:
		b.block(n.Then)
	case n.Elif != nil:
		b.ifElse(n.Elif)
	case n.Else != nil:
		b.block(n.Else)
	}
	b.dynamic--
}

// skip silences what follows from a block that could not be executed.
func (b *builder) skip(n *blockNode) { eachStmt(n, b.skipStmt) }

// skipStmt silences what follows from a statement that could not be executed.
func (b *builder) skipStmt(s *stmtNode) {
	if s.broken && s.Return != nil && b.fn != nil {
		b.done, b.results = true, make([]val, resultCount(b.fn))
	}
	if s.Assign == nil {
		return
	}
	for _, t := range s.Assign.Targets {
		if !t.Name.discards() && b.scope.names[t.Name.Text] == nil {
			b.scope.names[t.Name.Text] = &binding{span: t.Name.span(), dynamic: true}
		}
	}
}

func (b *builder) returns(n *returnNode) {
	if b.fn == nil {
		b.errorf(n.span(), "return stands only in a fn: a graph's results are the names in its header")
		b.failed = true
		return
	}
	b.done = true
	for _, e := range n.Values {
		b.results = append(b.results, b.named("", e))
	}
}

// discards reports whether a name on the left keeps no value: it is _, and the graph declares no state or result of that name.
func (b *builder) discards(id *identNode) bool {
	return id.discards() && b.states[id.Text] == nil && b.outputs[id.Text] == nil
}

func (b *builder) assign(n *assignNode) {
	if len(n.Targets) > 1 {
		b.assignMany(n)
		return
	}
	t := n.Targets[0]
	if t.Binds != nil && b.discards(t.Name) {
		b.errorf(t.span(), "index notation defines a value: give it a name")
		return
	}
	if t.Binds != nil {
		b.assignIndexed(t, n.Value)
		return
	}
	if b.discards(t.Name) {
		b.expr(n.Value)
		return
	}
	before := len(b.g.Values)
	v := b.named(b.resultName(t.Name.Text), n.Value)
	b.bindSettled(t, v, before)
}

// rename calls x by the name it is bound to, where it was made by the statement:
// the values after before are.
func (b *builder) rename(x *ir.Value, name string, before int) {
	if x != nil && len(b.g.Values) > before && x == b.g.Values[len(b.g.Values)-1] {
		b.g.Rename(x, b.valueName(name))
	}
}

// bindSettled binds a name to a value that can be read many times.
func (b *builder) bindSettled(t *targetNode, v val, before int) {
	span := v.span
	if v.kind == arrayVal && v.arr.dtype != ir.Index {
		if v.arr.cheap {
			b.rename(v.arr.value, b.resultName(t.Name.Text), before)
		}
		v.arr = b.settle(b.resultName(t.Name.Text), v.arr, span)
	}
	b.bind(t.Name, v)
}

func (b *builder) assignMany(n *assignNode) {
	e := n.Value
	var results []val
	if call := soleCall(e); call != nil {
		results = b.call(call)
	} else {
		results = []val{b.expr(e)}
		if results[0].kind == listVal {
			results = results[0].list
		}
	}
	if len(results) != len(n.Targets) {
		if len(results) != 1 || results[0].ok() {
			hint := ""
			if call := soleCall(e); call != nil {
				hint = b.valuesAlone(call.Name.Text, results)
			}
			b.resultsOf(e, b.errorf(n.span(), "%s on the left, %s on the right%s",
				plural(len(n.Targets), "name"), plural(len(results), "value"), hint))
		}
		results = make([]val, len(n.Targets))
	}
	for i, t := range n.Targets {
		if t.Binds != nil {
			b.errorf(t.span(), "index notation defines one name at a time")
			continue
		}
		if b.discards(t.Name) {
			continue
		}
		results[i].span = e.span()
		b.bindSettled(t, results[i], len(b.g.Values))
	}
}

// resultsOf notes what the function that an expression calls returns: in the words of the library, or where the program says it.
func (b *builder) resultsOf(e *exprNode, err *diag.Error) {
	call := soleCall(e)
	if call == nil {
		return
	}
	fn, mod := b.mod.function(call.Name.Text)
	switch {
	case fn == nil:
	case mod.library:
		if doc := libraryText(fn, mod); doc != "" {
			err.Note(b.shown(call.Name.span()), "%s", doc)
		}
	default:
		err.Note(fn.Name.span(), "%s is declared here", fn.Name.Text)
	}
}

// whole reports whether e reads a value at exactly the given ranges.
func whole(e *ir.Expr, ranges []*ir.Range) bool {
	if e.Op != ir.OpLoad || len(e.Args) != len(ranges) {
		return false
	}
	for i, r := range ranges {
		if a := e.Args[i]; a.Op != ir.OpRange || a.Range != r || !ir.Equal(e.From.Axes[i].Extent, r.Extent) {
			return false
		}
	}
	return true
}

// fitsBinds reports whether a shape of the given rank can be defined by binds.
func fitsBinds(rank int, binds []*bindNode) bool {
	if len(binds) > 0 && binds[0].Leading {
		return rank >= len(binds)-1
	}
	return rank == len(binds)
}

// assignIndexed executes name[i, j] = element.
func (b *builder) assignIndexed(t *targetNode, value *exprNode) {
	want, name := b.declaredAs(t.Name.Text), b.resultName(t.Name.Text)
	if want != nil && !want.bad && !fitsBinds(len(want.shape), t.Binds.Binds) {
		b.errorf(t.span(), "%s is declared with %s, but is defined with %d", t.Name.Text,
			plural(len(want.shape), "axis"), len(t.Binds.Binds)).Note(want.span, "%s is declared here", t.Name.Text)
		b.bind(t.Name, val{})
		return
	}
	before := len(b.g.Values)
	b.scope = newScope(b.scope)
	leading, fits := b.declareLeading(t.Binds.Binds, want, value)
	ranges := b.declareRanges(t.Binds.Binds, want, value)
	v := b.expr(value)
	ok := b.checkExtents(t.Binds.Binds) && v.ok() && ranges != nil && fits
	ranges = concat(leading, ranges)
	b.scope = b.scope.parent
	if !ok {
		b.bind(t.Name, val{})
		return
	}
	var a *array
	if want != nil && v.isStatic() && !want.bad {
		a = b.convert(v, want.dtype)
	} else {
		a = b.element(v)
	}
	if a != nil && len(a.shape) > 0 {
		b.errorf(value.span(), "element of %s must be a scalar, not %s: index it", t.Name.Text, a.describe())
		a = nil
	}
	if a == nil {
		b.bind(t.Name, val{})
		return
	}
	e := a.elem(nil)
	if whole(e, ranges) && len(b.g.Values) > before && e.From == b.g.Values[len(b.g.Values)-1] {
		b.rename(e.From, name, before) // lifted over these very ranges
		a = ofValue(e.From, nil)
	} else {
		a = b.defineOver(name, ranges, e, t.span().Join(value.span()))
	}
	b.bind(t.Name, arrv(a).at(t.span()))
}

// soleCall returns the call that e consists of, or nil.
func soleCall(e *exprNode) *nameNode {
	u := e.First
	if len(e.Rest) > 0 || len(u.Prefix) > 0 || len(u.Index) > 0 || u.Base.Name == nil || u.Base.Name.Call == nil {
		return nil
	}
	return u.Base.Name
}
