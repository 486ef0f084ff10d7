package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// A scatter with fewer lanes than those that it shares a kernel with has results where these have none: at sizes at which a lane that
// it does not have is empty. No point of the kernel is there to store them then, so such sizes get a body of their own.

// firstOnly lists the rows at whose first element alone some result is stored, because it does not lie along them.
func (lo *kernel) firstOnly() (out []*ir.Range) {
	for _, s := range lo.stores {
		if s.Guard == nil {
			continue
		}
		for _, c := range ir.Conjuncts(s.Guard) {
			for _, r := range lo.k.Rows {
				if isFirst(c, r) && !ir.DependsOn(s.Offset, r) && !slices.Contains(out, r) {
					out = append(out, r)
				}
			}
		}
	}
	return out
}

// isFirst reports whether a condition holds at the first element of a range alone.
func isFirst(c *ir.Expr, r *ir.Range) bool {
	return ir.Equal(c, ir.Apply(ir.OpEq, r.At(), ir.IntConst(0))) || ir.Equal(c, ir.Apply(ir.OpEq, ir.IntConst(0), r.At()))
}

// storesPastEmpty reports whether a scatter has results to store where some of its rows have no element.
func (lo scatterKernel) storesPastEmpty() bool {
	return len(lo.firstOnly()) > 0 && lo.someEmpty(lo.firstOnly()).Op != ir.OpConst
}

// someEmpty is the condition that one of the rows has no element.
func (lo *kernel) someEmpty(rows []*ir.Range) *ir.Expr {
	return ir.Simplify(ir.Apply(ir.OpLt, algebra.Product(rows), ir.IntConst(1)), lo.facts)
}

// forEmpty makes a variant of the kernel that leavingOut returns the body for sizes at which one of the rows is empty.
func (lo scatterKernel) forEmpty(v *ir.Variant) []*ir.Variant {
	rows := lo.firstOnly()
	v.Units, v.Empty, v.When = rows, true, algebra.And(lo.someEmpty(rows), v.When)
	return []*ir.Variant{v}
}

// leavingOut is the kernel with the results alone that do not lie along the rows of which some may be empty.
func (lo scatterKernel) leavingOut() *kernel {
	rows, u, k := lo.firstOnly(), *lo.kernel, *lo.k
	u.k, u.folds, u.stores = &k, nil, nil
	k.Rows = slices.DeleteFunc(slices.Clone(k.Rows), func(r *ir.Range) bool { return slices.Contains(rows, r) })
	used := map[*ir.Local]bool{}
	for _, s := range lo.stores {
		if !algebra.DependsOnAny(s.Offset, algebra.RangeSet(rows)) {
			store := *s.Store
			u.stores = append(u.stores, &storing{&store, s.level})
			ir.WalkThrough(func(e *ir.Expr) bool {
				used[e.Local] = used[e.Local] || e.Op == ir.OpLocal
				return true
			}, store.Value)
		}
	}
	for _, f := range lo.folds {
		if used[f.Result] {
			fold := *f
			u.folds = append(u.folds, &fold)
		}
	}
	first := map[*ir.Range]*ir.Expr{}
	for _, r := range rows {
		first[r] = ir.IntConst(0)
	}
	for _, root := range u.roots() {
		*root.expr = ir.Simplify(ir.Substitute(*root.expr, first), u.inside(root.level))
	}
	return &u
}
