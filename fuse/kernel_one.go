package fuse

import (
	"maps"
	"slices"

	"github.com/fusec/fusec/ir"
)

// withOne is the kernel for sizes at which a range of rows has one element.
func (lo *kernel) withOne(r *ir.Range) *kernel {
	u, k, sc, p := *lo, *lo.k, *lo.scope, *lo.program
	sc.program = &p
	u.k, u.scope, u.folds, u.stores, u.unit = &k, &sc, nil, nil, true
	p.sizes, p.weights = maps.Clone(p.sizes), map[*ir.Value]float64{}
	p.sizes[r.Extent.Name] = 1
	k.Rows = slices.DeleteFunc(slices.Clone(k.Rows), func(s *ir.Range) bool { return s == r })
	for _, f := range lo.folds {
		fold := *f
		u.folds = append(u.folds, &fold)
	}
	for _, s := range lo.stores {
		store := *s.Store
		u.stores = append(u.stores, &storing{&store, s.level})
	}
	one := func(e *ir.Expr) *ir.Expr {
		switch {
		case e.Op == ir.OpRange && e.Range == r:
			return ir.IntConst(0)
		case e.Op == ir.OpSym && e.Name == r.Extent.Name:
			return ir.IntConst(1)
		}
		return e
	}
	for _, root := range u.roots() {
		*root.expr = ir.Simplify(ir.Rewrite(*root.expr, one), u.inside(root.level))
	}
	return &u
}
