package fuse

import (
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Sums of products that small tiles take.

// tiledSum returns the kernel's only fold if it is a sum of products that small tiles can take; nil for other kernels. Beside
// sums in fast mode these are sums of integers, which wrap, so that any order gives the same, and in strict mode those of
// products of two factors, which tiles round as written.
func (lo productKernel) tiledSum() *ir.Fold {
	if f := lo.sumOfProduct(); f != nil {
		return f
	}
	if len(lo.folds) != 1 || !lo.storesRows() {
		return nil
	}
	f := lo.folds[0]
	product := exactlyWidened(f.Body)
	if f.Op != ir.Sum || f.Where != nil || f.Prefix != ir.WholeRow || product.Op != ir.OpMul || len(form.FactorsOf(product)) != 2 {
		return nil
	}
	switch t := product.Type; {
	case t == ir.I32 || t == ir.U32 || t == ir.I64:
		return f
	case lo.k.Numerics == ir.Strict && f.Body == product && (t == ir.F32 || t == ir.F64):
		return f
	}
	return nil
}

// exactlyWidened is an expression of integers without the casts that make it wider; any other as it is.
func exactlyWidened(e *ir.Expr) *ir.Expr {
	for e.Op == ir.OpCast && !e.Type.IsFloat() && !e.Args[0].Type.IsFloat() && e.Type.Size() > e.Args[0].Type.Size() {
		e = e.Args[0]
	}
	return e
}
