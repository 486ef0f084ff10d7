package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Two chained contractions over the same columns may share one kernel, as the gradients of keys and of values do:
// weights of both are functions of the same products, which are computed once. Each sum has accumulators of its own.
// The values of both must be in tiles that the products need anyway, so that no shared memory is added.

// alignStreams aligns two regions whose streams may be a pair; ok is false where they may not.
func alignStreams(a, b *region, facts ir.Facts) (al *alignment, ok bool) {
	if a.stream == nil || b.stream == nil {
		return nil, false
	}
	p := &streamPair{main: a.stream.Stream, also: b.stream.Stream, same: map[*ir.Value]*ir.Value{}}
	if p.swapped = len(p.also.Products()) > len(p.main.Products()); p.swapped {
		p.main, p.also = p.also, p.main
	}
	if !p.main.Chained || !p.also.Chained || a.stream.also != nil || b.stream.also != nil ||
		form.TensorType(p.main.Value) != form.TensorType(p.also.Value) || len(p.main.Keys) != len(p.also.Keys) {
		return nil, false
	}
	al = &alignment{to: map[*ir.Range]*ir.Range{}, from: map[*ir.Range]*ir.Range{}, streams: p}
	join := func(main, also *ir.Range) bool {
		if p.swapped {
			return al.pair(also, main)
		}
		return al.pair(main, also)
	}
	ok = true
	for i, key := range p.also.Keys {
		ok = ok && join(p.main.Keys[i], key)
	}
	for _, l := range p.also.Products() {
		at := slices.IndexFunc(p.main.Products(), func(m *ir.Expr) bool { return sameProduct(m.From, l.From) })
		if !ok || at < 0 {
			return nil, false
		}
		m := p.main.Products()[at]
		p.same[l.From] = m.From
		for d := range l.Args {
			ok = ok && (ir.Equal(m.Args[d], l.Args[d]) ||
				m.Args[d].Op == ir.OpRange && l.Args[d].Op == ir.OpRange && join(m.Args[d].Range, l.Args[d].Range))
		}
	}
	main, also := algebra.RangesOf(p.main.Own), algebra.RangesOf(p.also.Own)
	ok = ok && len(main) == 1 && len(also) == 1 && join(main[0], also[0]) &&
		len(al.to) == len(b.space) && len(al.from) == len(a.space)
	return al, ok && p.shares(al, facts)
}

// sameProduct reports whether two products are the same function of their axes, in order.
func sameProduct(a, b *ir.Value) bool {
	if a.Type != b.Type || len(a.Axes) != len(b.Axes) || len(a.Reduce.Ranges) != len(b.Reduce.Ranges) {
		return false
	}
	to := map[*ir.Range]*ir.Expr{}
	for _, both := range [][2][]*ir.Range{{a.Axes, b.Axes}, {a.Reduce.Ranges, b.Reduce.Ranges}} {
		for d, r := range both[0] {
			if !ir.SameSize(r.Extent, both[1][d].Extent) {
				return false
			}
			to[r] = both[1][d].At()
		}
	}
	return ir.Equal(ir.Substitute(a.Body, to), b.Body)
}

// shares reports whether the values of both sums are the keys of a product, and the same condition leaves something of
// both weights, so that the same tiles are left out.
func (p *streamPair) shares(al *alignment, facts ir.Facts) bool {
	also := p.renamed(al)
	return p.holds(p.main.Value, facts) && p.holds(also.Value, facts) &&
		sameCondition(form.WeightCondition(p.main.Factor), form.WeightCondition(also.Factor))
}

// sameCondition reports whether two conditions, either of which may be nil, are the same.
func sameCondition(a, b *ir.Expr) bool {
	if a == nil || b == nil {
		return a == b
	}
	return ir.Equal(a, b)
}

// holds reports whether values are the keys of one of the products.
func (p *streamPair) holds(value *ir.Expr, facts ir.Facts) bool {
	own := algebra.RangesOf(p.main.Own)[0]
	return slices.ContainsFunc(p.main.Products(), func(l *ir.Expr) bool {
		depth := l.From.Reduce.Ranges
		_, keys, ok := p.main.SidesAt(l, facts)
		if !ok || len(depth) != 1 || !ir.SameSize(depth[0].Extent, own.Extent) {
			return false
		}
		across := ir.Substitute(form.Stripped(keys), map[*ir.Range]*ir.Expr{depth[0]: own.At()})
		return ir.Equal(ir.Simplify(across, facts), ir.Simplify(form.Stripped(value), facts))
	})
}
