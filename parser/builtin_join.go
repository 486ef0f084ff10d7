package parser

import (
	"fmt"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// joinable converts tensors that will be joined to one dtype and makes them
// values, since they are read outside their bounds.
func (b *builder) joinable(args val, fn string, span diag.Span) []*array {
	list := args.list
	if len(list) == 1 && list[0].kind == listVal {
		list = list[0].list
	}
	if len(list) == 0 {
		b.errorf(span, "%s needs at least one tensor", fn)
		return nil
	}
	t, ok := b.common(list, fn, span)
	if !ok {
		return nil
	}
	if t == ir.Index {
		t = ir.I64
	}
	out := make([]*array, len(list))
	for i, v := range list {
		if v.kind != arrayVal {
			b.errorf(v.span, "%s takes tensors, not %s", fn, v.describe())
			return nil
		}
		if out[i] = b.convert(v, t); out[i] == nil {
			return nil
		}
	}
	return out
}

func concatenate(b *builder, args []val, span diag.Span) val {
	parts := b.joinable(args[0], "concat", span)
	if parts == nil {
		return val{}
	}
	d, ok := b.axis(args[1], len(parts[0].shape), "concat")
	if !ok {
		return val{}
	}
	for _, p := range parts[1:] {
		if !b.joins(parts[0].shape, p.shape, d) {
			return b.fail(span, "cannot concat %s and %s along axis %d: their other axes must agree",
				parts[0].describe(), p.describe(), d).noted(b, args[0].list...)
		}
	}
	return arrv(b.joined(parts, d, span))
}

func (b *builder) joins(x, y []*ir.Expr, d int) bool {
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		if i != d && !b.sameSize(x[i], y[i]) {
			return false
		}
	}
	return true
}

// joined reads each part where the index along d falls into it.
func (b *builder) joined(parts []*array, d int, span diag.Span) *array {
	starts := make([]*ir.Expr, len(parts))
	end := ir.IntConst(0)
	size := 0
	for i, p := range parts {
		parts[i] = b.stored(p, span)
		starts[i], end = end, normal(addIndex(end, p.shape[d]))
		size += p.size + 3
	}
	shape := append([]*ir.Expr(nil), parts[0].shape...)
	shape[d] = end
	at := b.shown(span)
	fill := ir.IntNum(parts[0].dtype, 0)
	elem := func(index []*ir.Expr) *ir.Expr {
		var out *ir.Expr
		for i := len(parts) - 1; i >= 0; i-- {
			inner := append([]*ir.Expr(nil), index...)
			inner[d] = subIndex(index[d], starts[i])
			e := parts[i].loadAt(inner, fill, at)
			if out == nil {
				out = e
				continue
			}
			out = ir.Where(ir.Apply(ir.OpLt, index[d], starts[i+1]), e, out).At(at)
		}
		return out
	}
	return &array{dtype: parts[0].dtype, shape: shape, size: size, elem: elem}
}

func stack(b *builder, args []val, span diag.Span) val {
	parts := b.joinable(args[0], "stack", span)
	if parts == nil {
		return val{}
	}
	d, ok := b.axis(args[1], len(parts[0].shape)+1, "stack")
	if !ok {
		return val{}
	}
	for i, p := range parts {
		if !b.sameShape(parts[0].shape, p.shape) {
			return b.fail(span, "cannot stack %s and %s: their shapes must agree", parts[0].describe(), p.describe()).
				noted(b, args[0].list...)
		}
		parts[i] = b.stored(p, span)
	}
	for i, p := range parts {
		parts[i] = b.stored(inserted(p, d), span)
	}
	return arrv(b.joined(parts, d, span))
}

// split cuts into equal parts, or into parts of listed sizes.
func split(b *builder, args []val, span diag.Span) []val {
	bad := []val{{span: span}}
	a := b.tensor(args[0], "split")
	if a == nil {
		return bad
	}
	d, ok := b.axis(args[2], len(a.shape), "split")
	if !ok {
		return bad
	}
	sizes, ok := b.partSizes(args[1], args[0], d, span)
	if !ok {
		return bad
	}
	var out []val
	start := ir.IntConst(0)
	for _, size := range sizes {
		from := start
		shape := append([]*ir.Expr(nil), a.shape...)
		shape[d] = size
		part := moved(a, shape, func(at []*ir.Expr) []*ir.Expr {
			inner := append([]*ir.Expr(nil), at...)
			inner[d] = addIndex(at[d], from)
			return inner
		})
		out = append(out, arrv(part).at(span))
		start = normal(addIndex(start, size))
	}
	return out
}

const maxParts = 1000

// partSizes are the sizes of the parts that axis d of x is split into.
func (b *builder) partSizes(parts, x val, d int, span diag.Span) ([]*ir.Expr, bool) {
	extent := x.arr.shape[d]
	if parts.kind == listVal {
		sizes, ok := b.shapeArgs(parts.list, "split", span)
		if !ok {
			return nil, false
		}
		total := ir.IntConst(0)
		for _, s := range sizes {
			total = normal(addIndex(total, s))
		}
		if !b.sameSize(total, extent) {
			b.origins(b.errorf(span, "cannot split axis %d of %s into %s: the parts add up to %s, not to %s", d, x.describe(),
				shapeText(sizes), sizeText(total), sizeText(extent)), []val{x})
			return nil, false
		}
		return sizes, true
	}
	if parts.kind != intVal || parts.int < 1 || parts.int > maxParts {
		if parts.ok() {
			b.errorf(parts.span, "split takes a number of parts from 1 to %d, not %s", maxParts, parts.describe())
		}
		return nil, false
	}
	n := ir.IntConst(parts.int)
	what := fmt.Sprintf("cannot split axis %d of %s into %d equal parts", d, x.describe(), parts.int)
	why := fmt.Sprintf("split of axis %d of %s into %d equal parts", d, x.called(), parts.int)
	if e := b.requireDivides(extent, n, what, why, span); e != nil {
		b.origins(e, []val{x})
		return nil, false
	}
	sizes := make([]*ir.Expr, parts.int)
	for i := range sizes {
		sizes[i] = normal(divIndex(extent, n))
	}
	return sizes, true
}

func pad(b *builder, args []val, span diag.Span) val {
	a := b.tensor(args[0], "pad")
	if a == nil {
		return val{}
	}
	d, ok := b.axis(args[2], len(a.shape), "pad")
	if !ok {
		return val{}
	}
	width := args[1].list
	if args[1].kind != listVal {
		width = []val{args[1], args[1]}
	}
	if len(width) != 2 {
		return b.fail(args[1].span, "width of pad must be (before, after), found %s%s", plural(len(width), "number"), argumentHint("pad", "width"))
	}
	before, after := b.sizeOf(width[0], args[1].span), b.sizeOf(width[1], args[1].span)
	if v := args[3]; a.dtype == ir.Bool && v.kind == intVal && v.int == 0 { // what pads if nothing is said
		args[3] = boolv(false).at(v.span)
	}
	value := b.convert(args[3], a.dtype)
	if before == nil || after == nil || value == nil {
		return val{}
	}
	if len(value.shape) > 0 || value.elem(nil).Op != ir.OpConst {
		return b.fail(args[3].span, "value of pad must be a constant, not %s", args[3].describe())
	}
	fill := value.elem(nil)
	src := b.stored(a, span)
	shape := append([]*ir.Expr(nil), a.shape...)
	shape[d] = normal(addIndex(addIndex(before, shape[d]), after))
	at := b.shown(span)
	return arrv(&array{dtype: a.dtype, shape: shape, size: src.size + 1, cheap: true,
		elem: func(index []*ir.Expr) *ir.Expr {
			inner := append([]*ir.Expr(nil), index...)
			inner[d] = subIndex(index[d], before)
			return src.loadAt(inner, fill, at)
		}})
}
