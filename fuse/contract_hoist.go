package fuse

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// hoisted splits an operand's value into the factors that differ within runs of
// neighbours along inner, and those that do not, by
//
//	sum[k] x[k] * v[k] * s[k / run] = sum[g] s[g] * (sum[j: run] x[g*run + j] * v[g*run + j])
//
// so that s, as the scale of a group of quantised weights, multiplies a sum and not each of
// its terms. scale is nil where there is no such factor, or where a run may
// cross the end of inner's extent into the next of an outer range.
func (lo productKernel) hoisted(value *ir.Expr, inner *ir.Range, run int64, facts ir.Facts) (rest, scale *ir.Expr) {
	count := inner.Extent // more than the columns, where their number is not known
	if ir.Multiple(inner.Extent, run, facts) {
		count = ir.Simplify(ir.Apply(ir.OpFloorDiv, inner.Extent, ir.IntConst(run)), facts)
	} else if len(lo.k.Cols) > 1 {
		return value, nil
	}
	outer, lane := lo.g.NewRange("run", count), lo.g.NewRange("v", ir.IntConst(run))
	at := ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, outer.At(), ir.IntConst(run)), lane.At())
	var varying, same []*ir.Expr
	for _, f := range factorsThrough(value) {
		in := ir.Simplify(ir.Substitute(algebra.WithoutLocals(f), map[*ir.Range]*ir.Expr{inner: at}), facts)
		if ir.DependsOn(in, lane) {
			varying = append(varying, f)
		} else {
			same = append(same, f)
		}
	}
	if len(same) == 0 || len(varying) == 0 {
		return value, nil
	}
	return form.ProductOf(varying), form.ProductOf(same)
}

// factorsThrough flattens a product of floats, also where its factors are locals. A divisor counts as a
// factor, its reciprocal.
func factorsThrough(e *ir.Expr) []*ir.Expr {
	return ir.Flattened(e, func(e *ir.Expr) []*ir.Expr {
		whole := e
		for whole.Op == ir.OpLocal && whole.Local.Def != nil {
			whole = whole.Local.Def
		}
		switch {
		case !whole.Type.IsFloat():
		case whole.Op == ir.OpMul:
			return whole.Args
		case whole.Op == ir.OpDiv:
			return []*ir.Expr{whole.Args[0], ir.Apply(ir.OpRecip, whole.Args[1]).At(whole.Span)}
		}
		return nil
	})
}
