package fuse

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Products of 8-bit operands through wgmma: floats of 8 bits with sums in f32, and integers
// with sums in i32.

// integerSum is the most terms of a sum of products of two i8 that an i32 holds: each is
// at most 2^14 in magnitude.
const integerSum = 1<<17 - 1

// byteContraction splits the kernel's product of two operands of one 8-bit type; nil where
// it has none. Products of integers are those that the program computes in more bits:
// what wraps in i8 is another number.
func (lo productKernel) byteContraction() *ir.Contract {
	if c := lo.splitProducts(lo.contraction(), lo.tileTypeOfBytes); c != nil {
		return c
	}
	if len(lo.folds) != 1 || !lo.device.Warpgroups() {
		return nil
	}
	f := lo.folds[0]
	body := exactProduct(f.Body)
	if body == nil || f.Op != ir.Sum || f.Prefix != ir.WholeRow || f.Where != nil {
		return nil
	}
	for _, s := range lo.stores {
		if s.level != ir.RowLevel {
			return nil
		}
	}
	return lo.splitProduct(body, lo.tileTypeOfBytes)
}

// exactProduct is a product of two i8, in as many bits as it takes, without the casts that
// widen it; nil for anything else.
func exactProduct(e *ir.Expr) *ir.Expr {
	for e.Op == ir.OpCast && !e.Type.IsFloat() && e.Type.Size() >= e.Args[0].Type.Size() {
		e = e.Args[0]
	}
	if e.Op != ir.OpMul || e.Type.IsFloat() || e.Type.Size() < 2 || len(form.FactorsOf(e)) != 2 {
		return nil
	}
	for _, side := range e.Args {
		if read := algebra.ReadIn(side); read == nil || read.Type != ir.I8 {
			return nil
		}
	}
	return e
}

// tileTypeOfBytes is the 8-bit type of all that is read; Invalid where there are several,
// or others.
func (lo productKernel) tileTypeOfBytes(body *ir.Expr) ir.DType {
	t, ok := ir.Invalid, true
	ir.Walk(body, func(e *ir.Expr) bool {
		if e.Op == ir.OpRead {
			ok = ok && form.ByteTile(e.Type) && (t == ir.Invalid || t == e.Type)
			t = e.Type
		}
		return ok
	})
	if !ok {
		return ir.Invalid
	}
	return t
}

// exactSums is the condition under which sums fit their accumulators; nil for always.
func (lo productKernel) exactSums(c *ir.Contract) *ir.Expr {
	if c.Type != ir.I8 {
		return nil
	}
	return algebra.AtMostSize(algebra.Product(lo.columns()), integerSum)
}
