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
	shape, ok := b.fillIn(vals, args[0], span)
	if !ok {
		return val{}
	}
	want, fits := product(shape)
	if !fits || !b.sameSize(total, want) {
		if total.Op == ir.OpConst && want.Op == ir.OpConst || !fits {
			return b.fail(span, "cannot reshape %s to %s: %s", a.describe(), shapeText(shape),
				countsText(a.shape, shape)).noted(b, args[0])
		}
		if !b.requireSameCount(args[0], shape, span) {
			return val{}
		}
	}
	if b.sameShape(a.shape, shape) {
		return arrv(a)
	}
	parts := reshapeParts(b.sameSize, a.shape, shape)
	for _, p := range parts {
		b.requireCounts(a.shape[p.from:p.fromEnd], span)
		b.requireCounts(shape[p.to:p.toEnd], span)
	}
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
// are compared by same, from both ends: at most one part, between, is equal only by a
// condition on the symbols.
func reshapeParts(same func(x, y *ir.Expr) bool, from, to []*ir.Expr) []reshapePart {
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
				if same(count(from, i), count(to, j)) {
					cut(i, j)
				}
			}
		}
	}
	return append(parts, reshapePart{last.fromEnd, len(from), last.toEnd, len(to)})
}

// requireCounts makes none of several axes negative that become one run of elements: the product of two
// negative extents would look like an extent.
func (b *builder) requireCounts(shape []*ir.Expr, span diag.Span) {
	for _, e := range shape {
		if len(shape) > 1 {
			b.requireAtLeast0(e, "reshape needs "+sizeText(e)+" >= 0", span)
		}
	}
}

// countOf is the number of elements of a shape that fits in 64 bits.
func countOf(shape []*ir.Expr) *ir.Expr {
	n, _ := product(shape)
	return n
}

// countsText names the axes of two shapes that hold different numbers of elements.
func countsText(from, to []*ir.Expr) string {
	for _, p := range reshapeParts(sameSize, from, to) {
		old, made := from[p.from:p.fromEnd], to[p.to:p.toEnd]
		x, fits := product(old)
		y, fit := product(made)
		switch {
		case !fits || !fit:
			return "more than 2^63 elements"
		case !sameSize(x, y):
			return "axes " + shapeText(old) + " hold " + sizeText(x) + " elements, " + shapeText(made) + " hold " + sizeText(y)
		}
	}
	return "the numbers of elements differ"
}

// requireSameCount makes two shapes have one element count: those of axes that are
// numbers now, the others when the symbols bind.
func (b *builder) requireSameCount(x val, to []*ir.Expr, span diag.Span) bool {
	from := x.arr.shape
	for _, p := range reshapeParts(b.sameSize, from, to) {
		old, made := normal(countOf(from[p.from:p.fromEnd])), normal(countOf(to[p.to:p.toEnd]))
		switch {
		case b.sameSize(old, made):
		case old.Op == ir.OpConst && made.Op == ir.OpConst:
			b.origins(b.errorf(span, "cannot reshape %s to %s: %s", x.describe(), shapeText(to), countsText(from, to)), []val{x})
			return false
		default:
			b.require(ir.Apply(ir.OpEq, old, made), "reshape of "+x.called()+" to "+shapeText(to)+" needs "+
				sizeText(old)+" == "+sizeText(made), span)
		}
	}
	return true
}

// fillIn replaces the one size -1 by what the elements of x leave.
func (b *builder) fillIn(vals []val, x val, span diag.Span) ([]*ir.Expr, bool) {
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
	shape[open] = b.left(x, others, shapeWithOpen(shape), span)
	return shape, shape[open] != nil
}

// shapeWithOpen spells a shape with -1 where no size is known.
func shapeWithOpen(shape []*ir.Expr) string {
	spelled := append([]*ir.Expr(nil), shape...)
	for i, size := range spelled {
		if size == nil {
			spelled[i] = ir.IntConst(-1)
		}
	}
	return shapeText(spelled)
}

// left is how often the sizes go into the elements of x; nil after an error. Axes that
// stand on both sides cancel, so that the rest is known where one of them is 0.
func (b *builder) left(x val, sizes []*ir.Expr, to string, span diag.Span) *ir.Expr {
	if known, ok := product(sizes); !ok || known.IsConst(0) {
		b.origins(b.errorf(span, "cannot reshape %s to %s: cannot tell what -1 means beside %s elements", x.describe(), to,
			sizeText(known)), []val{x})
		return nil
	}
	from, by := b.cancelled(x.arr.shape, sizes)
	total, _ := product(from)
	known, _ := product(by)
	total, known = normal(total), normal(known)
	if q := quotient(total, known); q != nil {
		return q
	}
	rest := normal(modIndex(total, known))
	if rest.Op == ir.OpConst {
		b.origins(b.errorf(span, "cannot reshape %s to %s: %s is not divisible by %s", x.describe(), to,
			sizeText(total), sizeText(known)), []val{x})
		return nil
	}
	b.require(ir.Apply(ir.OpEq, rest, ir.IntConst(0)), "reshape of "+x.called()+" to "+to+" needs "+
		sizeText(total)+" divisible by "+sizeText(known), span)
	return normal(divIndex(total, known))
}

// cancelled returns two lists of sizes without those that stand in both.
func (b *builder) cancelled(x, y []*ir.Expr) (restX, restY []*ir.Expr) {
	restY = append([]*ir.Expr(nil), y...)
next:
	for _, size := range x {
		for i, other := range restY {
			if b.sameSize(size, other) {
				restY = append(restY[:i:i], restY[i+1:]...)
				continue next
			}
		}
		restX = append(restX, size)
	}
	return restX, restY
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

func (b *builder) sameShape(x, y []*ir.Expr) bool {
	if len(x) != len(y) {
		return false
	}
	for d := range x {
		if !b.sameSize(x[d], y[d]) {
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
