package passes

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// leaveConditions takes the conditions of products that do not depend on what is summed out of the sums:
// sum[k where s[i] == s[j]] a[i, k] * b[j, k] is that sum for all i and j, or 0 where the condition does not hold. Tiles
// multiply for all pairs, and the kernel of the product picks. With the condition inside it would be a loop for each pair.
func leaveConditions(g *ir.Graph) {
	if !mayAddKernels(g) {
		return
	}
	insertBefore(g, func(v *ir.Value) []*ir.Value {
		terms := underCondition(v)
		if terms == nil {
			return nil
		}
		summed := algebra.RangeSet(v.Reduce.Ranges)
		var outside, inside *ir.Expr
		for _, c := range ir.Conjuncts(terms.Reduce.Where) {
			if algebra.DependsOnAny(c, summed) {
				inside = algebra.And(inside, c)
			} else {
				outside = algebra.And(outside, c)
			}
		}
		if outside == nil {
			return nil
		}
		*v = *terms
		return []*ir.Value{pickOutside(g, v, outside, inside)}
	})
}

// underCondition is a sum of products of floats under a condition, where a value is one or is written as a sum of choices between a product and 0,
// which are the terms for which the condition holds: sum[k] where(c, a * b, 0). It is nil for other values.
func underCondition(v *ir.Value) *ir.Value {
	if v.Reduce == nil || v.Reduce.Op != ir.Sum || !v.Body.Type.IsFloat() {
		return nil
	}
	out, reduce := *v, *v.Reduce
	if pick := form.Stripped(v.Body); pick.Op == ir.OpSelect && form.IsZero(form.Stripped(pick.Args[2])) {
		reduce.Where = algebra.And(reduce.Where, pick.Args[0])
		out.Body = ir.Rewrite(v.Body, func(e *ir.Expr) *ir.Expr {
			if e == pick {
				return pick.Args[1]
			}
			return e
		})
	}
	if out.Reduce = &reduce; reduce.Where == nil || !form.IsMatrixProduct(&out) {
		return nil
	}
	return &out
}

// pickOutside makes v a choice, by a condition on its axes, between a sum and nothing, and returns the sum, which has the
// condition inside.
func pickOutside(g *ir.Graph, v *ir.Value, outside, inside *ir.Expr) *ir.Value {
	reduce := *v.Reduce
	reduce.Where = inside
	// Elements that the condition kept from being read may be outside of their tensors.
	sum := freshAxes(g, &ir.Value{Name: v.Name + "_all", Type: v.Type, Axes: v.Axes, Reduce: &reduce, Origin: v.Origin, Body: form.GuardLoads(v.Body)})
	v.Body = ir.Where(outside, ir.Load(sum, algebra.UnitIndices(v.Axes), nil), ir.Cast(reduce.Op.Identity(v.Body.Type), v.Type))
	v.Reduce = nil
	return sum
}
