package parser

import (
	"strings"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// factors converts the operands of a product to one numeric dtype, each a value
// or a view of one: a product reads its operands many times.
func (b *builder) factors(vals []val, name string, span diag.Span) []*array {
	t, ok := b.common(vals, name, span)
	if !ok || !b.accepts(ir.OpMul, name, t, vals, span) {
		return nil
	}
	if t == ir.Index {
		t = ir.I64
	}
	out := make([]*array, len(vals))
	for i, v := range vals {
		if v.kind != arrayVal {
			b.origins(b.errorf(v.span, "%s takes tensors, not %s: write * to scale one", name, v.describe()), vals)
			return nil
		}
		a := b.settle("", b.element(v), span)
		out[i] = castArray(a, t)
	}
	return out
}

// matmul evaluates x @ y: the last axis of x against the last but one of y.
func (b *builder) matmul(x, y val, span diag.Span) val {
	parts := b.factors([]val{x, y}, "@", span)
	if parts == nil {
		return val{span: span}
	}
	p, q := parts[0], parts[1]
	if len(p.shape) == 0 || len(q.shape) == 0 {
		return b.fail(span, "@ takes tensors with at least one axis, found %s and %s: write * to scale by a number",
			x.describe(), y.describe()).noted(b, x, y)
	}
	row, col := len(p.shape) > 1, len(q.shape) > 1
	if !row {
		p = inserted(p, 0)
	}
	if !col {
		q = inserted(q, 1)
	}
	np, nq := len(p.shape), len(q.shape)
	inner, against := p.shape[np-1], q.shape[nq-2]
	if !b.sameSize(inner, against) {
		return b.fail(span, "cannot multiply %s @ %s: the inner sizes %s%s", x.describe(), y.describe(),
			differText(inner, against), transposeHint(p.shape, q.shape, row, col)+meantAxis(x, y)).noted(b, x, y)
	}
	lead := []*array{{dtype: p.dtype, shape: p.shape[:np-2]}, {dtype: q.dtype, shape: q.shape[:nq-2]}}
	b.muted++
	batch, ok := b.broadcast("@", []val{x, y}, lead, span)
	b.muted--
	if !ok {
		return b.fail(span, "cannot multiply %s @ %s: the leading axes %s and %s do not broadcast: "+
			"sizes that meet must agree, or one be 1", x.describe(), y.describe(),
			shapeText(lead[0].shape), shapeText(lead[1].shape)).noted(b, x, y)
	}
	axes := b.g.NewAxes(concat(batch, p.shape[np-2:np-1], q.shape[nq-1:]))
	k := b.g.NewRange("k", inner)
	if len(axes) > 2 {
		k.Name = "r"
	}
	at := ir.Indices(axes)
	m, n := at[len(batch)], at[len(batch)+1]
	left := p.elem(concat(project(at[:len(batch)], batch, lead[0].shape), []*ir.Expr{m, k.At()}))
	right := q.elem(concat(project(at[:len(batch)], batch, lead[1].shape), []*ir.Expr{k.At(), n}))
	axes, drop := squeezeProduct(axes, row, col)
	body := ir.Substitute(ir.Apply(ir.OpMul, left, right).At(b.shown(span)), drop)
	sum := ir.Reduce(&ir.Reduction{Op: ir.Sum, Ranges: []*ir.Range{k}}, body).At(b.shown(span))
	return arrv(b.defineOver("matmul", axes, sum, span)).at(span)
}

// transposeHint names the operand of a product of matrices that fits when transposed.
func transposeHint(p, q []*ir.Expr, row, col bool) string {
	m, k := p[len(p)-2], p[len(p)-1]
	against, n := q[len(q)-2], q[len(q)-1]
	switch {
	case col && sameSize(k, n):
		return ": did you mean to transpose the right operand?"
	case row && sameSize(m, against):
		return ": did you mean to transpose the left operand?"
	}
	return ""
}

// squeezeProduct drops the axes that a 1-D operand was given.
func squeezeProduct(axes []*ir.Range, row, col bool) ([]*ir.Range, map[*ir.Range]*ir.Expr) {
	drop := map[*ir.Range]*ir.Expr{}
	m, n := axes[len(axes)-2], axes[len(axes)-1]
	kept := append([]*ir.Range(nil), axes[:len(axes)-2]...)
	for _, side := range []struct {
		axis *ir.Range
		keep bool
	}{{m, row}, {n, col}} {
		if side.keep {
			kept = append(kept, side.axis)
		} else {
			drop[side.axis] = ir.IntConst(0)
		}
	}
	return kept, drop
}

// einsum evaluates einsum("ij,jk->ik", a, b).
func einsum(b *builder, args []val, span diag.Span) val {
	if args[0].kind != textVal {
		return b.fail(args[0].span, "einsum takes its index letters first, as a text")
	}
	parts := b.factors(args[1].list, "einsum", span)
	if parts == nil {
		return val{}
	}
	left, right, arrow := strings.Cut(strings.ReplaceAll(args[0].text, " ", ""), "->")
	terms := strings.Split(left, ",")
	if len(terms) != len(parts) {
		return b.fail(args[0].span, "einsum names %s, found %d: separate the letters of each by a comma",
			plural(len(terms), "tensor"), len(parts)).noted(b, args[1].list...)
	}
	ein := &einsumLetters{builder: b, operands: args[1].list, span: args[0].span, letters: map[rune]einsumLetter{}}
	for i, term := range terms {
		read, ok := ein.term(term, parts[i], i)
		if !ok {
			return val{}
		}
		terms[i] = read
	}
	ranges, order := ein.ranges(), ein.order
	if !arrow {
		right = ein.rest() + lettersOnce(left)
	} else if strings.Contains(left, restText) {
		right = strings.Replace(right, restText, ein.rest(), 1)
	}
	var axes []*ir.Range
	kept := map[rune]bool{}
	for _, letter := range right {
		if ranges[letter] == nil || kept[letter] {
			return b.fail(args[0].span, "result letter %q must stand in an operand, and once in the result", letter)
		}
		kept[letter] = true
		axes = append(axes, ranges[letter])
	}
	e := &einsumTerms{parts, terms, right}
	e.inSteps(b, ranges, order, span)
	return b.contract(e.parts, e.terms, ranges, order, axes, kept, span)
}

// contract is the product of tensors, summed over the letters that they have and that are not kept.
func (b *builder) contract(parts []*array, terms []string, ranges map[rune]*ir.Range, order []rune,
	axes []*ir.Range, kept map[rune]bool, span diag.Span) val {
	var body *ir.Expr
	for i, term := range terms {
		var at []*ir.Expr
		for d, letter := range []rune(term) {
			if isRest(letter) && parts[i].shape[d].IsConst(1) {
				at = append(at, ir.IntConst(0))
				continue
			}
			at = append(at, ranges[letter].At())
		}
		e := parts[i].elem(at)
		if body != nil {
			e = ir.Apply(ir.OpMul, body, e).At(b.shown(span))
		}
		body = e
	}
	var folded []*ir.Range
	left := strings.Join(terms, "")
	for _, letter := range order {
		if !kept[letter] && strings.ContainsRune(left, letter) {
			folded = append(folded, ranges[letter])
		}
	}
	if len(folded) > 0 {
		body = ir.Reduce(&ir.Reduction{Op: ir.Sum, Ranges: folded}, body).At(b.shown(span))
	}
	return arrv(b.defineOver("einsum", axes, body, span))
}
