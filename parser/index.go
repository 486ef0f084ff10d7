package parser

import (
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// picker collects what an index x[...] does: the shape that comes out, and for
// each axis of x the index it is read at.
type picker struct {
	shape []*ir.Expr
	picks []func(at []*ir.Expr) *ir.Expr
	safe  bool // every pick is inside
	cheap bool // every pick only moves indices
	bare  bool // nothing says what is read outside
	size  int

	of     val  // the tensor
	filled bool // the program says what a read outside gives
}

// index evaluates v[items].
func (b *builder) index(v val, n *indexNode) val {
	span := v.span.Join(n.span())
	switch {
	case !v.ok():
		return val{span: span}
	case v.kind == listVal && len(n.Items) == 1:
		return b.listItem(v, n.Items[0], span)
	case v.kind != arrayVal || v.arr.dtype == ir.Index:
		return b.fail(span, "cannot index %s: expected a tensor", v.describe())
	}
	items, ok := b.alignItems(v.arr, n, span)
	if !ok {
		return val{span: span}
	}
	p := &picker{safe: true, cheap: true, of: v, filled: n.Else != nil}
	for d, item := range items {
		switch {
		case item.at != nil:
			p.element(item.at, true)
		case item.node != nil:
			ok = b.pick(p, v.arr, item, d) && ok
		default:
			p.slice(ir.IntConst(0), 1, v.arr.shape[item.axis])
		}
	}
	fill := b.fill(v.arr.dtype, n.Else)
	if !ok || fill == nil {
		return val{span: span}
	}
	p.bare = n.Else == nil
	return arrv(b.picked(v.arr, p, fill, span)).at(span)
}

// listItem is a list at a compile-time position.
func (b *builder) listItem(v val, item *itemNode, span diag.Span) val {
	if item.Start == nil || item.Slice != nil {
		return b.fail(span, "a list is indexed by one integer")
	}
	i, ok := b.staticInt(item.Start, "index of a list")
	if !ok {
		return val{span: span}
	}
	if i < 0 {
		i += int64(len(v.list))
	}
	if i < 0 || i >= int64(len(v.list)) {
		return b.fail(span, "index is outside of a list of %d", len(v.list))
	}
	return v.list[i].at(span)
}

// alignedItem is an index item with the axis of the tensor it stands at; node
// is nil for an axis that is taken whole.
type alignedItem struct {
	node    *itemNode
	axis    int
	newAxis bool
	at      *ir.Expr // of an axis that ... stands for in index notation
}

// alignItems expands ... and missing trailing items.
func (b *builder) alignItems(a *array, n *indexNode, span diag.Span) ([]alignedItem, bool) {
	used, leading := 0, 0
	for _, item := range n.Items {
		switch {
		case item.Leading:
			leading++
		case !isNewAxis(item):
			used++
		}
	}
	if used > len(a.shape) {
		for _, item := range n.Items { // a new axis by the name that it has elsewhere
			if name := bareName(item.Start); foreignNames[name] == "none" && item.Slice == nil {
				b.undefined(item.span(), name, false)
				return nil, false
			}
		}
	}
	if used > len(a.shape) || leading > 1 {
		if leading > 1 {
			b.errorf(span, "... may stand once in an index")
		} else {
			b.errorf(span, "too many indices: %d for %s, which has %s",
				used, a.describe(), plural(len(a.shape), "axis"))
		}
		return nil, false
	}
	var out []alignedItem
	axis, skipped := 0, len(a.shape)-used
	whole := func() {
		for ; skipped > 0; skipped-- {
			out = append(out, alignedItem{axis: axis})
			axis++
		}
	}
	for _, item := range n.Items {
		switch {
		case item.Leading:
			items, ranged := b.leadingItems(a, skipped, item.span())
			if ranged && len(items) != skipped {
				return nil, false
			}
			if ranged && axis == 0 {
				out, axis, skipped = append(out, items...), skipped, 0
			}
			whole()
		case isNewAxis(item):
			out = append(out, alignedItem{node: item, newAxis: true})
		default:
			out = append(out, alignedItem{node: item, axis: axis})
			axis++
		}
	}
	whole()
	return out, true
}

func isNewAxis(item *itemNode) bool { return item.Slice == nil && bareName(item.Start) == "none" }

// pick adds one item to p.
func (b *builder) pick(p *picker, a *array, item alignedItem, position int) bool {
	if item.newAxis {
		p.shape = append(p.shape, ir.IntConst(1))
		return true
	}
	extent := a.shape[item.axis]
	n := item.node
	if n.All != nil || n.Slice != nil {
		return b.pickSlice(p, n, extent)
	}
	v := b.expr(n.Start)
	switch {
	case !v.ok():
		return false
	case v.kind == intVal:
		return b.pickNumber(p, v, extent)
	case v.isIndex():
		e := v.indexExpr()
		if e.Op == ir.OpRange && e.Range.Extent == nil {
			e.Range.Extent = extent
		}
		if p.filled || !b.ofGroups(n.Start, e) {
			p.element(e, b.inside(e, extent))
			return true
		}
		p.element(e, true)
		return b.groupsHold(p.of, item, e)
	case v.kind == arrayVal && v.arr.dtype.IsInt():
		p.gather(v.arr)
		return true
	}
	hint := ""
	if v.kind == arrayVal && v.arr.dtype == ir.Bool {
		hint = ": where(condition, x, 0) chooses elements"
	}
	b.errorf(n.span(), "index must be an integer, not %s%s", v.describe(), hint)
	return false
}

// element reads the axis at one index.
func (p *picker) element(e *ir.Expr, safe bool) {
	p.picks = append(p.picks, func([]*ir.Expr) *ir.Expr { return e })
	p.safe = p.safe && safe
	p.size++
}

// gather reads the axis at the elements of an integer tensor, whose axes take its place.
func (p *picker) gather(index *array) {
	first, n := len(p.shape), len(index.shape)
	p.shape = append(p.shape, index.shape...)
	p.picks = append(p.picks, func(at []*ir.Expr) *ir.Expr {
		return ir.Cast(index.elem(at[first:first+n]), ir.Index)
	})
	p.safe, p.cheap = false, p.cheap && index.cheap
	p.size += index.size
}

// slice reads length elements of the axis from start by step; they are inside.
func (p *picker) slice(start *ir.Expr, step int64, length *ir.Expr) {
	d := len(p.shape)
	p.shape = append(p.shape, length)
	p.picks = append(p.picks, func(at []*ir.Expr) *ir.Expr {
		if step < 0 {
			return subIndex(start, mulIndex(ir.IntConst(-step), at[d]))
		}
		return addIndex(mulIndex(ir.IntConst(step), at[d]), start)
	})
	p.size++
}

// pickNumber reads the axis at a fixed place; negative ones count from the end.
func (b *builder) pickNumber(p *picker, v val, extent *ir.Expr) bool {
	e := ir.IntConst(v.int)
	if v.int < 0 {
		e = normal(addIndex(extent, e))
	}
	if extent.Op == ir.OpConst && (e.Int < 0 || e.Int >= extent.Int) {
		b.errorf(v.span, "index %d is outside of an axis of size %d", v.int, extent.Int)
		return false
	}
	p.element(e, b.inside(e, extent))
	return true
}

// picked is a read at p's indices: a view where all are inside, else loads with a fill.
func (b *builder) picked(a *array, p *picker, fill *ir.Expr, span diag.Span) *array {
	at := b.shown(span)
	indices := func(at []*ir.Expr) []*ir.Expr {
		out := make([]*ir.Expr, len(p.picks))
		for d, pick := range p.picks {
			out[d] = pick(at)
		}
		return out
	}
	out := &array{dtype: a.dtype, shape: p.shape, size: a.size + p.size, cheap: a.cheap && p.cheap}
	if p.safe {
		out.elem = func(index []*ir.Expr) *ir.Expr { return a.elem(indices(index)).At(at) }
		return out
	}
	src := b.stored(a, span)
	out.size, out.cheap = p.size, p.cheap
	out.elem = func(index []*ir.Expr) *ir.Expr {
		load := src.loadAt(indices(index), fill, at)
		if p.bare {
			return load.Bare()
		}
		return load
	}
	return out
}

// fill is the constant that a read outside gives; nil after an error.
func (b *builder) fill(t ir.DType, n *unaryNode) *ir.Expr {
	if n == nil {
		return ir.IntNum(t, 0)
	}
	v := b.unary(n, nil)
	if !v.ok() {
		return nil
	}
	a := b.convert(v, t)
	if a == nil {
		return nil
	}
	if len(a.shape) > 0 || a.elem(nil).Op != ir.OpConst {
		b.errorf(v.span, "else takes a constant, not %s: use where(...) to choose between tensors", v.describe())
		return nil
	}
	return a.elem(nil)
}

// pickSlice adds start:stop:step.
func (b *builder) pickSlice(p *picker, n *itemNode, extent *ir.Expr) bool {
	s := n.Slice
	if n.All != nil {
		s = n.All
	}
	step := int64(1)
	if s.Step != nil && s.Step.Value != nil {
		var ok bool
		if step, ok = b.staticInt(s.Step.Value, "step of a slice"); !ok {
			return false
		}
		if step == 0 || step == -1<<63 {
			b.errorf(s.Step.span(), "step of a slice must not be %d", step)
			return false
		}
	}
	if step < 0 {
		return b.pickReversed(p, n, s, step, extent)
	}
	low, ok1 := b.bound(n.Start, extent, ir.IntConst(0))
	high, ok2 := b.bound(s.Stop, extent, extent)
	if !ok1 || !ok2 {
		return false
	}
	length := normal(subIndex(high, low))
	if length.Op == ir.OpConst {
		length = ir.IntConst(max(0, length.Int))
	}
	if len(ir.FreeRanges(length)) > 0 {
		b.errorf(n.span(), "length of a slice must not depend on an index, found %s", sizeText(length))
		return false
	}
	if len(ir.FreeRanges(low)) > 0 {
		p.slice(low, step, ceilDiv(length, step))
		p.safe = false
		return true
	}
	b.requireAtLeast0(length, "slice needs "+sizeText(low)+" <= "+sizeText(high), n.span())
	b.requireAtLeast0(low, "slice needs "+sizeText(low)+" >= 0", n.span())
	b.requireAtLeast0(subIndex(extent, high), "slice needs "+sizeText(high)+" <= "+sizeText(extent), n.span())
	p.slice(low, step, ceilDiv(length, step))
	return true
}

func ceilDiv(n *ir.Expr, step int64) *ir.Expr {
	return divIndex(normal(addIndex(n, ir.IntConst(step-1))), ir.IntConst(step))
}

// pickReversed adds a slice with a negative step: the whole axis, or numbers in
// an axis of known size.
func (b *builder) pickReversed(p *picker, n *itemNode, s *sliceNode, step int64, extent *ir.Expr) bool {
	if n.Start == nil && s.Stop == nil {
		length := ceilDiv(extent, -step)
		p.slice(subIndex(extent, ir.IntConst(1)), step, length)
		return true
	}
	if extent.Op != ir.OpConst {
		b.errorf(n.span(), "slice with a negative step takes the whole axis, or an axis of a fixed size")
		return false
	}
	from, to := extent.Int-1, int64(-1)
	for _, part := range []struct {
		e  *exprNode
		to *int64
	}{{n.Start, &from}, {s.Stop, &to}} {
		if part.e == nil {
			continue
		}
		i, ok := b.staticInt(part.e, "bound of a slice with a negative step")
		if !ok {
			return false
		}
		if i < 0 {
			i += extent.Int
		}
		*part.to = min(max(i, -1), extent.Int-1)
	}
	p.slice(ir.IntConst(from), step, ir.IntConst((max(0, from-to)-step-1)/-step))
	return true
}

// bound evaluates one end of a slice. Numbers count from the end where
// negative and are clamped to an axis of known size, as in NumPy.
func (b *builder) bound(e *exprNode, extent, missing *ir.Expr) (*ir.Expr, bool) {
	if e == nil {
		return missing, true
	}
	v := b.expr(e)
	if !v.ok() {
		return nil, false
	}
	if !v.isIndex() {
		b.errorf(e.span(), "bound of a slice must be an integer, not %s", v.describe())
		return nil, false
	}
	if v.kind != intVal {
		return normal(v.indexExpr()), true
	}
	at := ir.IntConst(v.int)
	if v.int < 0 {
		at = normal(addIndex(extent, at))
	}
	if extent.Op == ir.OpConst {
		at = ir.IntConst(min(max(at.Int, 0), extent.Int))
	}
	return at, true
}
