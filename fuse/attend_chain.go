package fuse

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Chained contractions: streams whose weights are a function of products, and have no maximum beside them.

// chainBody lowers the fold, the stores and the weight over locals.
func (lo attendKernel) chainBody(a *ir.Attend, s ir.Schedule) *ir.Variant {
	b := newBody(lo.kernel)
	v := &ir.Variant{Sections: b.sections(lo.passes(true)), Attend: a, Schedule: s}
	a.Acc = v.Sections[0].Folds[0]
	lo.widenStores(v, a)
	a.Skip = lo.chainMask(b, a, s)
	a.Weight = b.build(b.intern(a.Weight))
	v.Locals = b.locals
	return v
}

// chainMask bounds the condition of a weight that is 0 where the condition does not hold.
func (lo attendKernel) chainMask(b *body, a *ir.Attend, s ir.Schedule) ir.TileMask {
	t := lo.tileBounds(a, s)
	none := ir.TileMask{Query: t.mask.Query, Key: t.mask.Key}
	w := form.Stripped(a.Weight)
	if w.Op != ir.OpSelect || !w.Args[2].IsConst(0) || algebra.ReadsMemory(w.Args[0]) {
		return none
	}
	clear := w.Args[1]
	if rest := t.condition(w.Args[0]); rest != nil {
		clear = ir.Where(rest, clear, w.Args[2])
	}
	if t.mask.Any == nil {
		return none
	}
	if t.mask.All != nil {
		t.mask.Clear = b.build(b.intern(clear))
	}
	t.mask.Any, t.mask.All = t.restore(t.mask.Any), t.restore(t.mask.All)
	return t.mask
}

// valuesIn is the product whose keys are the values too, counted from 1, so that one tile serves both; 0 where
// none is.
func valuesIn(a *ir.Attend) int {
	if len(a.N) != 1 {
		return 0
	}
	for i, p := range a.Products() {
		if len(p.Depth) != 1 || !ir.SameSize(p.Depth[0].Extent, a.N[0].Extent) {
			continue
		}
		across := ir.Substitute(p.K.Value, map[*ir.Range]*ir.Expr{p.Depth[0]: a.N[0].At()})
		if ir.Equal(ir.Simplify(across, ir.Facts{}), ir.Simplify(a.V.Value, ir.Facts{})) {
			return i + 1
		}
	}
	return 0
}
