package parser

import (
	"fmt"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// declareRanges binds index names in the current scope. An extent comes from
// the name's declaration, else from want (the declared shape of an output), else
// from the tensor axes that the name indexes alone in the given expressions. It
// returns nil after an error.
func (b *builder) declareRanges(binds []*bindNode, want *declared, in ...*exprNode) []*ir.Range {
	out := make([]*ir.Range, 0, len(binds))
	open := map[string]*rangeInfo{}
	ok := true
	offset := 0 // from a position in binds to the axis of the declared shape
	if want != nil {
		offset = len(want.shape) - len(binds)
	}
	for d, n := range binds {
		if n.Leading {
			if d > 0 || want == nil && b.scope.names[leadingName] == nil {
				b.errorf(n.span(), "... may stand only first on the left of index notation")
				ok = false
			}
			continue
		}
		d += offset
		name := n.Name.Text
		info := &rangeInfo{rng: b.g.NewRange(name, nil), span: n.Name.span()}
		info.rng.Span = b.shown(n.Name.span())
		switch {
		case n.Extent != nil:
			info.rng.Extent, info.fixed = b.dim(n.Extent), true
			ok = ok && info.rng.Extent != nil
		case want != nil && d >= 0 && d < len(want.shape):
			info.extend(want.shape[d], want.span, "the declaration of "+want.name)
			open[name] = info
		default:
			open[name] = info
		}
		if old := b.scope.names[name]; old != nil {
			b.errorf(n.Name.span(), "index name %s is used twice", name)
			ok = false
			continue
		}
		b.scope.names[name] = &binding{rng: info, span: n.Name.span()}
		out = append(out, info.rng)
	}
	for _, e := range in {
		if e == nil || len(open) == 0 {
			continue
		}
		b.blameMistakes(e, open)
		if ok {
			b.inferExpr(e, open)
		}
	}
	if !ok {
		return nil
	}
	return out
}

func (r *rangeInfo) extend(extent *ir.Expr, from diag.Span, why string) {
	r.rng.Extent, r.from, r.why = extent, from, why
}

// checkExtents reports the index names whose extent nothing gave.
func (b *builder) checkExtents(binds []*bindNode) bool {
	ok := true
	for _, n := range binds {
		if n.Leading {
			continue
		}
		found := b.scope.names[n.Name.Text]
		if found != nil && found.rng.rng.Extent == nil && (n.Extent != nil || found.rng.lost) {
			ok = false // what its extent is computed from has a mistake, which is reported
		} else if found != nil && found.rng.rng.Extent == nil {
			b.errorf(n.Name.span(),
				"cannot tell how far %s runs: write [%s: size], or index a tensor axis by %s alone",
				n.Name.Text, n.Name.Text, n.Name.Text)
			ok = false
		}
		if found != nil {
			b.trace.ran(found.rng)
		}
	}
	return ok
}

// indexedTensor returns the tensor in name[...], or nil.
func (b *builder) indexedTensor(u *unaryNode) *array {
	if len(u.Index) == 0 || u.Base.Name == nil || u.Base.Name.Call != nil {
		return nil
	}
	v, found, _ := b.lookup(u.Base.Name.Name.Text)
	if v.kind != arrayVal || found != nil && found.rng != nil {
		return nil
	}
	return v.arr
}

// inferExpr looks for tensor axes indexed by an open name alone.
func (b *builder) inferExpr(e *exprNode, open map[string]*rangeInfo) {
	walkUnary(e, nil, func(u *unaryNode, hidden []*bindNode) {
		if a := b.indexedTensor(u); a != nil && open[u.Base.Name.Name.Text] == nil {
			b.inferIndex(u.Base.Name.Name.Text, a, u.Index[0], without(open, hidden))
		}
	})
}

// blameMistakes marks the open names that index what has a mistake: nothing is known of its axes.
func (b *builder) blameMistakes(e *exprNode, open map[string]*rangeInfo) {
	walkUnary(e, nil, func(u *unaryNode, hidden []*bindNode) {
		if len(u.Index) == 0 || u.Base.Name == nil || u.Base.Name.Call != nil {
			return
		}
		if v, _, found := b.lookup(u.Base.Name.Name.Text); !found || v.ok() {
			return
		}
		for _, item := range u.Index[0].Items {
			if r := without(open, hidden)[bareName(item.Start)]; r != nil {
				r.lost = true
			}
		}
	})
}

// without drops the names that inner reductions bind.
func without(open map[string]*rangeInfo, hidden []*bindNode) map[string]*rangeInfo {
	if len(hidden) == 0 {
		return open
	}
	out := map[string]*rangeInfo{}
	for name, r := range open {
		out[name] = r
	}
	for _, n := range hidden {
		if n.Name != nil {
			delete(out, n.Name.Text)
		}
	}
	return out
}

func (b *builder) inferIndex(name string, a *array, ix *indexNode, open map[string]*rangeInfo) {
	d := 0
	for i, item := range ix.Items {
		if item.Leading {
			d = len(a.shape) - (len(ix.Items) - i - 1)
			continue
		}
		if bare := bareName(item.Start); item.Slice == nil && bare == "none" {
			continue
		} else if r := open[bare]; r != nil && item.Slice == nil && d >= 0 && d < len(a.shape) {
			b.useExtent(r, a.shape[d], item.span(), fmt.Sprintf("axis %d of %s", d, name))
		}
		d++
	}
}

// useExtent notes that r runs over a whole axis; all such uses must agree.
func (b *builder) useExtent(r *rangeInfo, extent *ir.Expr, span diag.Span, why string) {
	if r.rng.Extent == nil {
		r.extend(extent, span, why)
		return
	}
	if r.fixed || b.sameSize(r.rng.Extent, extent) {
		return
	}
	r.fixed = true // one report is enough
	b.errorf(span, "%s runs over %s (size %s) and over %s (size %s): write [%s: size] to say which is meant",
		r.rng.Name,
		why, sizeText(extent), r.why, sizeText(r.rng.Extent), r.rng.Name).
		Note(b.shown(r.from), "%s gives it the size %s", r.why, sizeText(r.rng.Extent))
}

// bareName returns the name that e consists of, or "".
func bareName(e *exprNode) string {
	if e == nil || len(e.Rest) > 0 || len(e.First.Prefix) > 0 || len(e.First.Index) > 0 {
		return ""
	}
	if n := e.First.Base.Name; n != nil && n.Call == nil {
		return n.Name.Text
	}
	return ""
}

// dim evaluates a size: a non-negative integer over the symbols, which is a condition of the program where it
// does not follow from that the symbols are. It returns nil after an error.
func (b *builder) dim(e *exprNode) *ir.Expr {
	v := b.expr(e)
	return b.sizeOf(v, e.span())
}

func (b *builder) sizeOf(v val, span diag.Span) *ir.Expr {
	switch {
	case !v.ok():
		return nil
	case v.isIndex() && !v.isSize():
		b.errorf(span, "size must not depend on an index: use a where predicate instead")
		return nil
	case !v.isSize():
		b.errorf(span, "size must be an integer, not %s", v.describe())
		return nil
	case v.kind == intVal && v.int < 0:
		b.errorf(span, "size must not be negative, found %d", v.int)
		return nil
	}
	size := normal(v.indexExpr())
	if size.Op != ir.OpSym {
		b.requireAtLeast0(size, "size needs "+sizeText(size)+" >= 0", span)
	}
	return size
}
