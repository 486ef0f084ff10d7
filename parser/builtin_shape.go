package parser

import (
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

const reshapeSize = 40 // reshaped indices cost divisions: do not copy them often

func reshape(b *builder, args []val, span diag.Span) val {
	a := b.tensor(args[0], "reshape")
	vals, ok := b.dims(args[1].list, "reshape")
	if a == nil || !ok {
		return val{}
	}
	total, _ := product(a.shape)
	shape, ok := b.fillIn(vals, total, span)
	if !ok {
		return val{}
	}
	want, fits := product(shape)
	if !fits || !sameSize(total, want) {
		if total.Op == ir.OpConst && want.Op == ir.OpConst || !fits {
			return b.fail(span, "cannot reshape %s to %s: %s elements against %s", a.describe(), shapeText(shape),
				sizeText(total), sizeText(want)).noted(b, args[0])
		}
		b.requireSameCount(a.shape, shape, span)
	}
	if sameShape(a.shape, shape) {
		return arrv(a)
	}
	parts := reshapeParts(a.shape, shape)
	out := moved(a, shape, func(at []*ir.Expr) []*ir.Expr {
		var index []*ir.Expr
		for _, p := range parts {
			flat := flatten(at[p.to:p.toEnd], shape[p.to:p.toEnd])
			index = append(index, unflatten(flat, a.shape[p.from:p.fromEnd])...)
		}
		return index
	})
	out.size, out.cheap = a.size+reshapeSize, false
	return b.bounded(out, span)
}

// reshapePart is a run of axes of one shape that becomes a run of axes of another.
type reshapePart struct{ from, fromEnd, to, toEnd int }

// reshapeParts cuts two shapes of one element count into as many parts as it can
// tell to have equal counts, so that an index moves only within its part. Axes
// are compared from both ends: at most one part, between, is equal only by a
// condition on the symbols.
func reshapeParts(from, to []*ir.Expr) []reshapePart {
	var parts []reshapePart
	last := reshapePart{}
	cut := func(i, j int) {
		if i > last.fromEnd && j > last.toEnd {
			last = reshapePart{last.fromEnd, i, last.toEnd, j}
			parts = append(parts, last)
		}
	}
	for _, count := range []func(shape []*ir.Expr, end int) *ir.Expr{
		func(shape []*ir.Expr, end int) *ir.Expr { return countOf(shape[:end]) },
		func(shape []*ir.Expr, end int) *ir.Expr { return countOf(shape[end:]) },
	} {
		for i := range from {
			for j := range to {
				if sameSize(count(from, i), count(to, j)) {
					cut(i, j)
				}
			}
		}
	}
	return append(parts, reshapePart{last.fromEnd, len(from), last.toEnd, len(to)})
}

// countOf is the number of elements of a shape that fits in 64 bits.
func countOf(shape []*ir.Expr) *ir.Expr {
	n, _ := product(shape)
	return n
}

// requireSameCount makes two shapes have one element count when the symbols bind.
func (b *builder) requireSameCount(from, to []*ir.Expr, span diag.Span) {
	why := "reshape of " + shapeText(from) + " to " + shapeText(to)
	for _, p := range reshapeParts(from, to) {
		x, y := countOf(from[p.from:p.fromEnd]), countOf(to[p.to:p.toEnd])
		if !sameSize(x, y) {
			b.require(ir.Apply(ir.OpEq, normal(x), normal(y)), why, span)
		}
	}
}

// fillIn replaces the one size -1 by what the number of elements leaves.
func (b *builder) fillIn(vals []val, total *ir.Expr, span diag.Span) ([]*ir.Expr, bool) {
	shape := make([]*ir.Expr, len(vals))
	open := -1
	var others []*ir.Expr
	for i, v := range vals {
		if v.kind == intVal && v.int == -1 {
			if open >= 0 {
				b.errorf(span, "only one size of reshape may be -1")
				return nil, false
			}
			open = i
			continue
		}
		if shape[i] = b.sizeOf(v, v.span); shape[i] == nil {
			return nil, false
		}
		others = append(others, shape[i])
	}
	if open < 0 {
		return shape, true
	}
	known, ok := product(others)
	if q := quotient(total, known); q != nil {
		shape[open] = q
		return shape, true
	}
	if !ok || known.IsConst(0) || !b.requireDivides(normal(total), normal(known), "reshape", span) {
		if known.IsConst(0) {
			b.errorf(span, "cannot tell what -1 means beside a size of 0")
		}
		return nil, false
	}
	shape[open] = normal(divIndex(normal(total), normal(known)))
	return shape, true
}

// quotient divides sizes where that leaves no rest; nil where it may. Where a
// divisor is 0 there are no elements, and any quotient will do.
func quotient(n, d *ir.Expr) *ir.Expr {
	facts := ir.Facts{Positive: true}
	if d.IsConst(0) || !ir.Simplify(modIndex(n, d), facts).IsConst(0) {
		return nil
	}
	return ir.Simplify(divIndex(n, d), facts)
}

func sameShape(a, b []*ir.Expr) bool {
	if len(a) != len(b) {
		return false
	}
	for d := range a {
		if !sameSize(a[d], b[d]) {
			return false
		}
	}
	return true
}

// flatten is the row-major position of an index.
func flatten(at, shape []*ir.Expr) *ir.Expr {
	flat := ir.IntConst(0)
	for d := range shape {
		flat = addIndex(mulIndex(flat, shape[d]), at[d])
	}
	return flat
}

// unflatten is the index at a row-major position.
func unflatten(flat *ir.Expr, shape []*ir.Expr) []*ir.Expr {
	out := make([]*ir.Expr, len(shape))
	for d := len(shape) - 1; d >= 0; d-- {
		if shape[d].IsConst(1) {
			out[d] = ir.IntConst(0)
			continue
		}
		first := true
		for _, outer := range shape[:d] {
			first = first && outer.IsConst(1)
		}
		if out[d] = flat; !first {
			out[d] = modIndex(flat, shape[d])
			flat = divIndex(flat, shape[d])
		}
	}
	return out
}

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
	if !sameShape(got, shape) {
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
	d, ok := b.axis(args[1], len(a.shape)+1, "unsqueeze")
	if !ok {
		return val{}
	}
	return arrv(inserted(a, d))
}

// inserted is a with a new axis of size 1 before axis d.
func inserted(a *array, d int) *array {
	shape := concat(a.shape[:d], []*ir.Expr{ir.IntConst(1)}, a.shape[d:])
	return moved(a, shape, func(at []*ir.Expr) []*ir.Expr { return concat(at[:d], at[d+1:]) })
}
