package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// A product of which one side has one row is a weighted sum over the other: it is bound by
// reading that once, which the mappings of reductions do at the rate of memory. Where the
// program itself says that there is one row, it is none of the kernel's ranges; where its
// extent is a symbol, such sizes are classes of their own.

// unitKernel makes the variants of a product of which one side has one row.
type unitKernel struct{ productKernel }

// unitVariants makes the variants of a kernel of products for the sizes at which one of
// their sides has one row: of packed weights and of rows that memory runs along, which
// nothing else reads as fast, and of sums across memory, where tiles that the copy engine
// brings are faster.
func (lo unitKernel) unitVariants() (along, across []*ir.Variant) {
	if len(lo.folds) == 0 || lo.k.Numerics != ir.Fast || !lo.device.TensorCores() || len(lo.parts) > 0 {
		return nil, nil
	}
	for _, r := range lo.sideRows() {
		u := lo.withOne(r)
		packed, _ := gemvKernel{productKernel{u}}.gemvVariants()
		sums, cached := u.reductionVariants()
		found := append(packed, sums...)
		for i, v := range found {
			v.Units = []*ir.Range{r}
			v.When = algebra.And(algebra.AtMostSize(r.Extent, 1), v.When)
			u.setCacheHints(v, cached)
			switch {
			case v.Schedule.Mapping == ir.FlatMapping && v.Schedule.Vector > 1: // split-K has the others
				across = append(across, v)
			case v.Schedule.Mapping == ir.FlatMapping:
			case v.Schedule.Vector > 1 || v.Contract != nil || i == len(found)-1: // the last takes any rows
				along = append(along, v)
			}
		}
	}
	return along, across
}

// sideRows lists the ranges that are all rows of one side of every product of the kernel,
// and that a symbol of their own extends.
func (lo unitKernel) sideRows() (out []*ir.Range) {
	for _, r := range lo.k.Rows {
		if lo.ownSymbol(r) && !slices.ContainsFunc(lo.folds, func(f *ir.Fold) bool { return !lo.isSide(f, r) }) {
			out = append(out, r)
		}
	}
	return out
}

// isSide reports whether a fold sums a product of two sides, and r is the only row of one.
func (lo unitKernel) isSide(f *ir.Fold, r *ir.Range) bool {
	if f.Op != ir.Sum || f.Where != nil || !f.Body.Type.IsFloat() {
		return false
	}
	c := lo.sides(f.Body)
	return c != nil && len(c.M) > 0 && (len(c.M) == 1 && c.M[0] == r || len(c.N) == 1 && c.N[0] == r)
}

// ownSymbol reports whether a range's extent is a symbol that is in no other extent.
func (lo unitKernel) ownSymbol(r *ir.Range) bool {
	return r.Extent.Op == ir.OpSym && !slices.ContainsFunc(slices.Concat(lo.k.Rows, lo.k.Cols), func(s *ir.Range) bool {
		return s != r && mentions(s.Extent, r.Extent.Name)
	})
}

func mentions(e *ir.Expr, symbol string) bool {
	return ir.Contains(e, func(e *ir.Expr) bool { return e.Op == ir.OpSym && e.Name == symbol })
}
