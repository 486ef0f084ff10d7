package parser

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

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
		hint := ""
		if 0 < len(want) && len(want) < len(have) {
			hint = ": reshape joins axes, as flatten and ravel do, and takes them apart again"
		}
		b.errorf(span, "%s must have %s, found shape %s%s", name, plural(len(want), "axis"), shapeText(shape), hint)
		return false
	}
	for d, w := range want {
		if (bareName(w.Size) != "") == plain && !b.matchSize(name, dims, w, len(shape)-len(have)+d, shape, span) {
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
		same = b.sameSize(old.val.list[d].indexExpr(), lead[d])
	}
	if !same {
		b.errorf(span, "leading axes of %s are %s, which differ from the %s of another argument%s", name,
			shapeText(lead), w.Name, b.lastAxisHint(w.Name, old.val.list, lead)).Note(b.shownIn(b.parent, old.span), "%s comes from here", w.Name)
	}
	return same
}

// lastAxisHint proposes to move an axis of another argument to its end, where that has the leading axes wanted then: in other libraries channels
// and classes stand behind the batch. had are the other's leading axes as it was given, behind which it declares one more.
func (b *builder) lastAxisHint(name string, had []val, lead []*ir.Expr) string {
	for _, p := range b.fn.Params {
		if p.Type.Dims == nil || len(p.Type.Dims.Dims) != 2 || p.Type.Dims.Dims[0].Name != name || len(had) != len(lead) {
			continue
		}
		last := bareName(p.Type.Dims.Dims[1].Size)
		size := b.scope.names[last]
		if size == nil {
			continue
		}
		whole := append(slices.Clone(had), size.val)
		for d := range had {
			rest := slices.Delete(slices.Clone(whole), d, d+1)
			if slices.EqualFunc(rest, lead, func(v val, e *ir.Expr) bool { return b.sameSize(v.indexExpr(), e) }) {
				return fmt.Sprintf(": the axis %s of %s goes last: permute(%[2]s, %s) puts it there", last, p.Name.Text, movedLast(d, len(whole)))
			}
		}
	}
	return ""
}

// movedLast is an order of axes in which one is behind all others, as permute takes it.
func movedLast(axis, rank int) string {
	var order []string
	for d := range rank {
		if d != axis {
			order = append(order, fmt.Sprint(d))
		}
	}
	return "(" + strings.Join(append(order, fmt.Sprint(axis)), ", ") + ")"
}

// declaredText says how a library function declares the axes of what has a wrong size; a file's own functions are
// seen there.
func declaredText(dims *dimsNode) string {
	text, ok := Source(dims.Pos.Filename)
	if !ok {
		return ""
	}
	return ": its axes are " + strings.Join(strings.Fields(text[dims.Pos.Offset:dims.EndPos.Offset]), " ")
}

// matchSize unifies one axis.
func (b *builder) matchSize(name string, dims *dimsNode, w *dimNode, axis int, shape []*ir.Expr, span diag.Span) bool {
	have := shape[axis]
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
	if !b.sameSize(want, have) && !b.sameByDivisors(want, have, name, span) {
		at, declared := "it", ""
		if bareName(w.Size) == "" || len(dims.Dims) > 1 {
			at, declared = fmt.Sprintf("axis %d", axis), declaredText(dims)
		}
		e := b.errorf(span, "%s has shape %s: expected size %s where %s has %s%s%s", name, shapeText(shape),
			sizeText(want), at, sizeText(have), declared, b.divisorThatFits(w.Size, have))
		if bareName(w.Size) == "" && declared == "" {
			e.Note(b.shown(dims.span()), "its axes are declared here")
		}
		b.sizeOrigins(e, w.Size)
		return false
	}
	return true
}

// divisorThatFits proposes a value for a parameter that a declared size is divided by, as in C / groups, with which the size
// is the one there is; "" where it is no such size, or was given.
func (b *builder) divisorThatFits(size *exprNode, have *ir.Expr) string {
	if len(size.Rest) != 1 || size.Rest[0].Op != "/" || have.IsConst(0) {
		return ""
	}
	divisor := bareName(&exprNode{First: size.Rest[0].Right})
	of, _, known := b.lookup(bareName(&exprNode{First: size.First}))
	by := b.scope.find(divisor)
	if !known || by == nil || !of.isSize() || by.val.int != 1 || by.val.kind != intVal {
		return ""
	}
	n := normal(divIndex(of.indexExpr(), have))
	if rest := normal(modIndex(of.indexExpr(), have)); !rest.IsConst(0) || n.IsConst(1) {
		return ""
	}
	return "; " + divisor + "=" + sizeText(n) + " fits"
}

// sameByDivisors requires that what want is divided by is at least 1, where have is the same size then:
// for C channels in C groups, C / C is 1 but where there are no channels.
func (b *builder) sameByDivisors(want, have *ir.Expr, name string, span diag.Span) bool {
	facts, divisors := b.facts(), []*ir.Expr(nil)
	ir.Walk(want, func(e *ir.Expr) bool {
		if e.Op == ir.OpFloorDiv && e.Args[1].Op != ir.OpConst {
			divisors = append(divisors, e.Args[1])
			facts.AtLeast0 = append(slices.Clip(facts.AtLeast0), subIndex(e.Args[1], ir.IntConst(1)))
		}
		return true
	})
	if len(divisors) == 0 || !ir.SameIndex(want, have, facts) {
		return false
	}
	for _, d := range divisors {
		b.require(ir.Apply(ir.OpGe, normal(d), ir.IntConst(1)), name+" needs "+sizeText(d)+" >= 1", span)
	}
	return true
}

// sizeOrigins notes the arguments that gave the symbols of a declared size their values.
func (b *builder) sizeOrigins(e *diag.Error, size *exprNode) {
	eachName(size, func(id *identNode) {
		old := b.scope.find(id.Text)
		if old == nil || !old.val.isIndex() || b.muted > 0 {
			return
		}
		from := old.span
		if !old.val.bound.IsZero() { // an attribute: the argument, not its parameter
			from = old.val.bound
		}
		e.Note(b.shownIn(b.parent, from), "this argument gives %s the size %s", id.Text, sizeText(old.val.indexExpr()))
	})
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
	what := name + " has shape " + shapeText(shape) + ", declared with the size " + sizeText(want)
	if b.requireDivides(n, ir.IntConst(factor), what, name, span) != nil {
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
	return ir.Contains(e, func(e *ir.Expr) bool { return ir.Equal(e, x) })
}
