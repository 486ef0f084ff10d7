package interp

import (
	"github.com/fusec/fusec/ir"
)

// reduction compiles a reduction of body, the value of type t at each point of b. In Sampled mode some sums
// multiply by the factors that all their terms have in common once, after the terms are added, as an engine may: what
// leaves the range of the type then is the sum without these factors.
func (c *compiler) reduction(r *ir.Reduction, body *ir.Expr, b box, t ir.DType) code {
	written := c.newFold(r.Op, r.Where, body).code(b, t)
	if c.chooser == nil || c.chooser.strict || r.Op != ir.Sum || !body.Type.IsFloat() {
		return written
	}
	shared, own := sharedFactors(body, r.Ranges)
	if shared == nil || own == nil {
		return written
	}
	sum, factor := c.newFold(r.Op, r.Where, own).code(b, t), c.root(shared)
	return code{float: func(f *frame) float64 {
		if c.chooser.moves == 0 || c.chooser.moves == 1 && c.chooser.coin() {
			return written.float(f)
		}
		by := factor.float(f)
		if by-by != 0 { // where it is infinite, a term of zero is NaN, which the sum must be too
			return written.float(f)
		}
		return c.chooser.product(t, sum.float(f), by)
	}}
}

// sharedFactors splits a product into the factors that are the same at every point of ranges, and the rest; nil where
// there are none.
func sharedFactors(body *ir.Expr, ranges []*ir.Range) (shared, own *ir.Expr) {
	for _, f := range factorsOf(body, body.Type) {
		into := &shared
		if dependsOn(f, ranges) {
			into = &own
		}
		if *into != nil {
			f = ir.Apply(ir.OpMul, *into, f)
		}
		*into = f
	}
	return shared, own
}

func dependsOn(e *ir.Expr, ranges []*ir.Range) bool {
	free := ir.FreeRanges(e)
	for _, r := range ranges {
		if free[r] {
			return true
		}
	}
	return false
}
