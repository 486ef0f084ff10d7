package parser

import (
	"slices"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

func transpose(b *builder, args []val, span diag.Span) val {
	a := b.tensor(args[0], "transpose")
	if a == nil {
		return val{}
	}
	x, ok1 := b.axis(args[1], len(a.shape), "transpose")
	y, ok2 := b.axis(args[2], len(a.shape), "transpose")
	if !ok1 || !ok2 {
		return val{}
	}
	order := identity(len(a.shape))
	order[x], order[y] = y, x
	return arrv(permuted(a, order))
}

func identity(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// permuted is a with axis d of the result taken from axis order[d].
func permuted(a *array, order []int) *array {
	shape := make([]*ir.Expr, len(order))
	for d, from := range order {
		shape[d] = a.shape[from]
	}
	return moved(a, shape, func(at []*ir.Expr) []*ir.Expr {
		out := make([]*ir.Expr, len(order))
		for d, from := range order {
			out[from] = at[d]
		}
		return out
	})
}

func permute(b *builder, args []val, span diag.Span) val {
	a := b.tensor(args[0], "permute")
	if a == nil {
		return val{}
	}
	order, ok := b.axes(args[1], len(a.shape), "permute")
	if ok && len(order) != len(a.shape) {
		return b.fail(span, "permute of %s needs all its %d axes, found %d", a.describe(), len(a.shape), len(order))
	}
	if !ok {
		return val{}
	}
	return arrv(permuted(a, order))
}

func broadcastTo(b *builder, args []val, span diag.Span) val {
	a := b.element(args[0])
	shape, ok := b.shapeArgs(args[1].list, "broadcast", span)
	if a == nil || !ok {
		return val{}
	}
	got, ok := b.broadcast("broadcast", args[:1], []*array{a, {dtype: a.dtype, shape: shape}}, span)
	if !ok {
		return val{}
	}
	if !b.sameShape(got, shape) {
		return b.fail(span, "cannot broadcast %s to %s", a.describe(), shapeText(shape)).noted(b, args[0])
	}
	return arrv(moved(a, shape, func(at []*ir.Expr) []*ir.Expr { return project(at, shape, a.shape) }))
}

func flip(b *builder, args []val, span diag.Span) val {
	a := b.tensor(args[0], "flip")
	if a == nil {
		return val{}
	}
	axes, ok := b.axes(args[1], len(a.shape), "flip")
	if !ok {
		return val{}
	}
	return arrv(moved(a, a.shape, func(at []*ir.Expr) []*ir.Expr {
		out := append([]*ir.Expr(nil), at...)
		for _, d := range axes {
			out[d] = subIndex(subIndex(a.shape[d], ir.IntConst(1)), at[d])
		}
		return out
	}))
}

func roll(b *builder, args []val, span diag.Span) val {
	a := b.tensor(args[0], "roll")
	if a == nil {
		return val{}
	}
	d, ok := b.axis(args[2], len(a.shape), "roll")
	if !ok || !args[1].ok() {
		return val{}
	}
	if !args[1].isSize() {
		return b.fail(args[1].span, "shift of roll must be an integer, not %s", args[1].describe())
	}
	shift := args[1].indexExpr()
	return arrv(moved(a, a.shape, func(at []*ir.Expr) []*ir.Expr {
		out := append([]*ir.Expr(nil), at...)
		out[d] = modIndex(subIndex(at[d], shift), a.shape[d])
		return out
	}))
}

func repeat(b *builder, args []val, span diag.Span) val {
	a := b.tensor(args[0], "repeat")
	if a == nil {
		return val{}
	}
	d, ok := b.axis(args[2], len(a.shape), "repeat")
	times := b.sizeOf(args[1], args[1].span)
	if !ok || times == nil {
		return val{}
	}
	shape := append([]*ir.Expr(nil), a.shape...)
	shape[d] = normal(mulIndex(shape[d], times))
	return arrv(moved(a, shape, func(at []*ir.Expr) []*ir.Expr {
		out := append([]*ir.Expr(nil), at...)
		out[d] = divIndex(at[d], times)
		return out
	}))
}

func squeeze(b *builder, args []val, span diag.Span) val {
	a := b.tensor(args[0], "squeeze")
	if a == nil {
		return val{}
	}
	axes, ok := b.axes(args[1], len(a.shape), "squeeze")
	if !ok {
		return val{}
	}
	drop := map[int]bool{}
	for _, d := range axes {
		if !a.shape[d].IsConst(1) {
			return b.fail(span, "cannot squeeze axis %d of %s: its size is %s, not 1",
				d, a.describe(), sizeText(a.shape[d])).noted(b, args[0])
		}
		drop[d] = true
	}
	var shape []*ir.Expr
	for d, s := range a.shape {
		if !drop[d] {
			shape = append(shape, s)
		}
	}
	return arrv(moved(a, shape, func(at []*ir.Expr) []*ir.Expr {
		out, next := make([]*ir.Expr, len(a.shape)), 0
		for d := range out {
			if out[d] = ir.IntConst(0); !drop[d] {
				out[d] = at[next]
				next++
			}
		}
		return out
	}))
}

func unsqueeze(b *builder, args []val, span diag.Span) val {
	a := b.tensor(args[0], "unsqueeze")
	if a == nil {
		return val{}
	}
	axes := []val{args[1]}
	if args[1].kind == listVal {
		axes = args[1].list
	}
	var at []int
	for _, v := range axes {
		d, ok := b.axis(v, len(a.shape)+len(axes), "unsqueeze")
		if !ok {
			return val{}
		}
		if slices.Contains(at, d) {
			return b.fail(v.span, "axis %d stands twice in unsqueeze", d)
		}
		at = append(at, d)
	}
	slices.Sort(at)
	for _, d := range at {
		a = inserted(a, d)
	}
	return arrv(a)
}

// inserted is a with a new axis of size 1 before axis d.
func inserted(a *array, d int) *array {
	shape := concat(a.shape[:d], []*ir.Expr{ir.IntConst(1)}, a.shape[d:])
	return moved(a, shape, func(at []*ir.Expr) []*ir.Expr { return concat(at[:d], at[d+1:]) })
}
