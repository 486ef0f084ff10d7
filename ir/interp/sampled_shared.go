package interp

import (
	"slices"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/num"
)

// reduction compiles a reduction of body over b, with a result of type t. In Sampled mode some sums are multiplied by
// the common factors of their terms once, after the terms are added, as an engine may do. Then it is the sum without
// these factors that may leave the range of the type.
func (c *compiler) reduction(r *ir.Reduction, body *ir.Expr, b box, t ir.DType) code {
	written := c.foldOver(r, body, b).code(b, t)
	if c.chooser == nil || c.chooser.strict || r.Op != ir.Sum || !body.Type.IsFloat() {
		return written
	}
	shared, own := sharedFactors(body, r.Ranges)
	if len(shared) == 0 {
		return written
	}
	factors := []func(*frame) float64{c.foldOver(r, own, b).code(b, t).float}
	for _, f := range shared {
		factors = append(factors, c.root(f).float)
	}
	runs := t.Info().Compute
	return code{float: func(f *frame) float64 {
		if c.chooser.moves == 0 || c.chooser.moves == 1 && c.chooser.coin() {
			return written.float(f)
		}
		product := 1.0
		for i, n := range c.chooser.rng.Perm(len(factors)) {
			v := factors[n](f)
			if n > 0 && v-v != 0 { // with an infinite factor, a term of zero is NaN, and so is the sum
				return written.float(f)
			}
			if product = c.chooser.product(t, product, v); i > 0 {
				product = num.Round(runs, product)
			}
		}
		return product
	}}
}

// sharedFactors splits a product into the factors that are the same at every point of ranges, and the product of the
// others, 1 where there are none.
func sharedFactors(body *ir.Expr, ranges []*ir.Range) (shared []*ir.Expr, own *ir.Expr) {
	for _, f := range factorsOf(body, body.Type) {
		switch {
		case !slices.ContainsFunc(ranges, func(r *ir.Range) bool { return ir.DependsOn(f, r) }):
			shared = append(shared, f)
		case own == nil:
			own = f
		default:
			own = ir.Apply(ir.OpMul, own, f)
		}
	}
	if own == nil {
		own = ir.Num(body.Type, 1)
	}
	return shared, own
}
