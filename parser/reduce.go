package parser

import (
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// reduction evaluates op[ranges where predicate] body, or op[range at rank] body.
func (b *builder) reduction(n *reduceNode) val {
	op, _ := ir.MonoidNamed(n.Op)
	rank, ok := b.rank(n, op)
	if !ok {
		return val{span: n.span()}
	}
	b.scope = newScope(b.scope)
	ranges := b.declareRanges(n.Binds, nil, n.Body, n.Where)
	if n.Where != nil {
		b.guardRanges()
	}
	body := b.expr(n.Body)
	var where *ir.Expr
	ok = body.ok() && ranges != nil
	if n.Where != nil {
		where = b.predicate(n.Where)
		ok = ok && where != nil
	}
	ok = b.checkExtents(n.Binds) && ok
	b.scope = b.scope.parent
	if !ok {
		return val{span: n.span()}
	}
	a := b.element(body)
	if a == nil || !b.reducible(op, a.dtype, n.span()) {
		return val{span: n.span()}
	}
	if where != nil && where.IsConst(1) {
		where = nil
	}
	r := &ir.Reduction{Op: op, Ranges: ranges, Where: where, Rank: rank}
	if len(a.shape) == 0 {
		return arrv(scalar(ir.Reduce(r, a.elem(nil)).At(b.shown(n.span())), a.size+1)).at(n.span())
	}
	axes := b.g.NewAxes(a.shape)
	e := ir.Reduce(r, a.elem(ir.Indices(axes))).At(b.shown(n.span()))
	return arrv(b.defineOver("t_"+n.Op, axes, e, n.span())).at(n.span())
}

// rank evaluates the place in the order that a reduction picks; nil where it has
// none. Indices that the reduction binds are not in scope.
func (b *builder) rank(n *reduceNode, op ir.Monoid) (rank *ir.Expr, ok bool) {
	if n.Rank == nil {
		return nil, true
	}
	if !op.Ordered() {
		b.errorf(n.Rank.span(), "%s has no order: `at` goes with min, max, argmin and argmax", op)
		return nil, false
	}
	if len(n.Binds) != 1 {
		b.errorf(n.Rank.span(), "`at` goes with one index, found %d: join them into one", len(n.Binds))
		return nil, false
	}
	v := b.expr(n.Rank)
	if !v.ok() {
		return nil, false
	}
	if !v.isIndex() && !v.isSize() {
		b.errorf(n.Rank.span(), "place in an order must be an integer of indices and sizes, not %s", v.describe())
		return nil, false
	}
	return normal(v.indexExpr()), true
}

// element converts what index notation computed to a tensor dtype.
func (b *builder) element(v val) *array {
	if v.kind != arrayVal {
		return b.convert(v, literalType([]val{v}))
	}
	if v.arr.dtype == ir.Index {
		return castArray(v.arr, ir.I64)
	}
	return v.arr
}

func (b *builder) predicate(e *exprNode) *ir.Expr {
	v := b.expr(e)
	if !v.ok() {
		return nil
	}
	if !b.isBool(v) || v.kind == arrayVal && len(v.arr.shape) > 0 {
		b.errorf(e.span(), "predicate must be a bool scalar, not %s", v.describe())
		return nil
	}
	return b.convert(v, ir.Bool).elem(nil)
}

func (b *builder) reducible(op ir.Monoid, t ir.DType, span diag.Span) bool {
	if op.Info().On.Has(t.Info().Kind) {
		return true
	}
	b.errorf(span, "%s takes %s, not %s", op, kindsText(op.Info().On), t)
	return false
}

// reduceCall evaluates op(x, axis=, keep=).
func (b *builder) reduceCall(op ir.Monoid, args []val, span diag.Span) val {
	hint := b.hint
	x := args[0]
	a := b.tensor(x, op.String())
	if a == nil {
		return val{span: span}
	}
	axes, ok := b.axes(args[1], len(a.shape), op.String())
	if !ok || !b.reducible(op, a.dtype, span) {
		return val{span: span}
	}
	reduced := map[int]bool{}
	for _, d := range axes {
		reduced[d] = true
	}
	var kept, folded []*ir.Range
	at := make([]*ir.Expr, len(a.shape))
	for d, r := range b.g.NewAxes(a.shape) {
		if at[d] = r.At(); reduced[d] {
			folded = append(folded, r)
		} else {
			kept = append(kept, r)
		}
	}
	e := a.elem(at)
	if len(folded) > 0 || op.IsArg() || op.Result(a.dtype) != a.dtype {
		e = ir.Reduce(&ir.Reduction{Op: op, Ranges: folded}, e).At(b.shown(span))
	}
	if hint == "" {
		hint = baseName(a) + "_" + op.String()
	}
	out := b.defineOver(hint, kept, e, span)
	if args[2].int == 1 {
		out = keepAxes(out, reduced, len(a.shape))
	}
	v := arrv(out).at(span)
	v.meant = b.meantAs(op, args, true)
	return v
}

// baseName is the name for a value that is made from a.
func baseName(a *array) string {
	if a.value != nil {
		return a.value.Name
	}
	return "t"
}

// keepAxes gives a the reduced axes back with size 1.
func keepAxes(a *array, reduced map[int]bool, rank int) *array {
	var shape []*ir.Expr
	var from []int
	for d := range rank {
		if reduced[d] {
			shape = append(shape, ir.IntConst(1))
			continue
		}
		shape = append(shape, a.shape[len(from)])
		from = append(from, d)
	}
	return moved(a, shape, func(at []*ir.Expr) []*ir.Expr {
		out := make([]*ir.Expr, len(from))
		for i, d := range from {
			out[i] = at[d]
		}
		return out
	})
}

// moved is a view of a: other indices, the same elements. to maps an index of
// the view to one of a.
func moved(a *array, shape []*ir.Expr, to func(at []*ir.Expr) []*ir.Expr) *array {
	return &array{dtype: a.dtype, shape: shape, size: a.size + 1, cheap: a.cheap,
		elem: func(at []*ir.Expr) *ir.Expr { return a.elem(to(at)) }}
}

// tensor returns v as an array, or reports that fn needs one.
func (b *builder) tensor(v val, fn string) *array {
	if !v.ok() {
		return nil
	}
	if v.kind != arrayVal {
		b.errorf(v.span, "%s takes a tensor, not %s", fn, v.describe())
		return nil
	}
	return b.element(v)
}

// axis resolves one axis number; negative ones count from the end.
func (b *builder) axis(v val, rank int, fn string) (int, bool) {
	if !v.ok() {
		return 0, false
	}
	if v.kind != intVal {
		b.errorf(v.span, "axis of %s must be an integer known at compile time, not %s%s", fn, v.describe(), argumentHint(fn, "axis"))
		return 0, false
	}
	d := v.int
	if d < 0 {
		d += int64(rank)
	}
	if d < 0 || d >= int64(rank) {
		b.errorf(v.span, "axis %d of %s is outside of a tensor with %s", v.int, fn, plural(rank, "axis"))
		return 0, false
	}
	return int(d), true
}

// axes resolves an axis, a list of them, or none for all.
func (b *builder) axes(v val, rank int, fn string) ([]int, bool) {
	list := v.list
	switch v.kind {
	case poisoned:
		return nil, false
	case noneVal:
		all := make([]int, rank)
		for d := range all {
			all[d] = d
		}
		return all, true
	case listVal:
	default:
		list = []val{v}
	}
	out, seen := make([]int, len(list)), map[int]bool{}
	for i, item := range list {
		d, ok := b.axis(item, rank, fn)
		if !ok {
			return nil, false
		}
		if seen[d] {
			b.errorf(item.span, "axis %d of %s is listed twice", item.int, fn)
			return nil, false
		}
		out[i], seen[d] = d, true
	}
	return out, true
}
