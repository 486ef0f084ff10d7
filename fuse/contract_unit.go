package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// Where one side of a product has one row, the product is a weighted sum over the other side. It is bound
// by reading that side once, which the mappings of reductions do at the rate of memory. A side that has
// one row in the program has no range of rows in the kernel. Where the number of rows is a symbol, the
// size 1 gets variants of its own.

// unitKernel makes the variants of a product for sizes at which one side has one row.
type unitKernel struct {
	productKernel
	reduce reducing
}

// reducing makes variants of a kernel by the mappings of reductions; cached is the reads that some of them find in the
// L2 cache.
type reducing func(*kernel) (out []*ir.Variant, cached []*ir.Local)

// unitVariants makes the variants of a kernel of products for the sizes at which one of their sides has
// one row. along are those for packed weights and for rows that are contiguous in memory; nothing else
// reads these as fast. across are those for sums across rows of memory; tiles through the tensor copy
// engine are faster for such sums.
func (lo unitKernel) unitVariants() (along, across []*ir.Variant) {
	if len(lo.folds) == 0 || lo.k.Numerics != ir.Fast || !lo.device.TensorCores() || len(lo.parts) > 0 {
		return nil, nil
	}
	for _, r := range lo.sideRows() {
		u := lo.withOne(r)
		packed, _ := gemvKernel{productKernel{u}}.gemvVariants()
		sums, cached := lo.reduce(u)
		found := append(packed, sums...)
		for i, v := range found {
			v.Units = []*ir.Range{r}
			v.When = algebra.And(algebra.And(algebra.AtLeastSize(r.Extent, 1), algebra.AtMostSize(r.Extent, 1)), v.When)
			u.setCacheHints(v, cached)
			switch {
			case v.Schedule.Mapping == ir.FlatMapping && v.Schedule.Vector > 1: // split-K takes the others
				across = append(across, v)
			case v.Schedule.Mapping == ir.FlatMapping:
			case v.Schedule.Vector > 1 || v.Contract != nil || i == len(found)-1: // the last takes any number of rows
				along = append(along, v)
			}
		}
	}
	return along, across
}

// sideRows lists the ranges that are the only rows of one side in every product of the kernel, and whose
// extent is a symbol of their own.
func (lo unitKernel) sideRows() (out []*ir.Range) {
	for _, r := range lo.k.Rows {
		if lo.ownSymbol(r) && !slices.ContainsFunc(lo.folds, func(f *ir.Fold) bool { return !lo.isSide(f, r) }) {
			out = append(out, r)
		}
	}
	return out
}

// isSide reports whether a fold sums a product of two sides of which one has r as its only rows.
func (lo unitKernel) isSide(f *ir.Fold, r *ir.Range) bool {
	if f.Op != ir.Sum || f.Where != nil || !f.Body.Type.IsFloat() {
		return false
	}
	c := lo.sides(f.Body)
	return c != nil && len(c.M) > 0 && (len(c.M) == 1 && c.M[0] == r || len(c.N) == 1 && c.N[0] == r)
}

// ownSymbol reports whether a range's extent is a symbol that no other extent contains.
func (lo unitKernel) ownSymbol(r *ir.Range) bool {
	return r.Extent.Op == ir.OpSym && !slices.ContainsFunc(slices.Concat(lo.k.Rows, lo.k.Cols), func(s *ir.Range) bool {
		return s != r && mentions(s.Extent, r.Extent.Name)
	})
}

func mentions(e *ir.Expr, symbol string) bool {
	return ir.Contains(e, func(e *ir.Expr) bool { return e.Op == ir.OpSym && e.Name == symbol })
}
