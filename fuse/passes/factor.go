package passes

import (
	"math"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// factorSums rewrites sum[r] f(r)*g to g * sum[r] f(r) where g does not depend on r. The loop then has
// fewer operations, and what follows a sum (dividing by the sum of a softmax, by a norm, by a count) no
// longer makes one sum depend on another. It changes roundings, so strict graphs keep their sums. A factor
// that may be infinite stays, because with it terms of 0, or of both signs, make the sum NaN.
func factorSums(g *ir.Graph) {
	rs := newReaches(g)
	factorWhere(g, func(v *ir.Value, f factor) bool { return rs.safe(v, f) })
}

// factorTiles also takes all other factors out of sums of products for tensor cores. An operand with
// such a factor would have to be computed, rounded and written before the product.
func factorTiles(g *ir.Graph) {
	if g.Numerics != ir.Strict {
		widened := widenedIn(g)
		for _, v := range g.Values {
			collectTerms(v, widened)
		}
	}
	factorWhere(g, func(v *ir.Value, _ factor) bool { return form.IsTileProduct(v) })
}

// widenedIn is the values of a graph that are elements of 16 bits in f32.
func widenedIn(g *ir.Graph) map[*ir.Value]bool {
	widened := map[*ir.Value]bool{}
	for _, v := range g.Values {
		if !v.IsInput() && v.Reduce == nil && v.Type == ir.F32 && v.Body.Op == ir.OpCast {
			from := v.Body.Args[0]
			widened[v] = from.Op == ir.OpLoad && form.IsHalf(from.Type)
		}
	}
	return widened
}

// collectTerms writes a sum of terms that are the same product, each times something that does not depend on what is summed, as one product
// times the sum of these. The gradient of what is read twice has such terms, as that behind an activation.
func collectTerms(v *ir.Value, widened map[*ir.Value]bool) {
	if v.Reduce == nil || v.Reduce.Op != ir.Sum || v.Reduce.Where != nil || v.Type != ir.F32 {
		return
	}
	collected := *v
	collected.Body = form.Expand(v.Body, widened)
	product, beside := collect(ir.Operands(ir.OpAdd, collected.Body), algebra.RangeSet(v.Reduce.Ranges))
	if product == nil || beside.IsConst(1) || collected.Body == v.Body && v.Body.Op != ir.OpAdd {
		return
	}
	if collected.Body = ir.Apply(ir.OpMul, product, beside).At(v.Body.Span); form.IsTileProduct(&collected) {
		v.Body = collected.Body
	}
}

// collect writes terms as one product that depends on the bound ranges, and the sum of what each has beside it; product is nil where the terms
// have different ones.
func collect(terms []*ir.Expr, bound map[*ir.Range]bool) (product, sum *ir.Expr) {
	for _, term := range terms {
		inner, outer := splitFactors(term, bound, func(factor) bool { return true })
		if inner == nil || product != nil && !ir.Equal(inner, product) {
			return nil, nil
		}
		product = inner
		own := ir.Num(ir.F32, 1)
		for _, f := range outer {
			own = f.over(own)
		}
		if sum == nil {
			sum = own
		} else {
			sum = ir.Apply(ir.OpAdd, sum, own)
		}
	}
	return product, sum
}

// factorWhere moves the factors of sums for which may is true.
func factorWhere(g *ir.Graph, may func(*ir.Value, factor) bool) {
	if g.Numerics == ir.Strict {
		return
	}
	insertAfter(g, func(v *ir.Value) *ir.Value { return factorSum(g, v, may) })
}

// factorSum removes the factors of a sum's body that are the same for all terms, and returns the value
// that multiplies the sum by them; nil where there are none.
func factorSum(g *ir.Graph, v *ir.Value, may func(*ir.Value, factor) bool) *ir.Value {
	if v.Reduce == nil || v.Reduce.Op != ir.Sum || !v.Body.Type.IsFloat() {
		return nil
	}
	inner, outer := splitFactors(v.Body, algebra.RangeSet(v.Reduce.Ranges), func(f factor) bool { return may(v, f) })
	if len(outer) == 0 || inner == nil {
		return nil
	}
	none := overNothing(g, v)
	if allFinite(outer) {
		none = nil
	} else if v.Reduce.Where != nil {
		return nil // a predicate may leave no terms, and finding that out would be work
	}
	v.Body = inner
	axes := g.NewAxes(v.Shape())
	rename := map[*ir.Range]*ir.Expr{}
	for d, r := range v.Axes {
		rename[r] = axes[d].At()
		if algebra.IsUnit(r) {
			rename[r] = ir.IntConst(0)
		}
	}
	body := ir.Load(v, algebra.UnitIndices(axes), nil)
	for _, f := range outer {
		body = factor{ir.Substitute(f.e, rename), f.divide}.over(body)
	}
	if none != nil {
		body = ir.Where(none, ir.Num(v.Type, 0), body)
	}
	scaled := g.Adopt(&ir.Value{Name: v.Name + "_scaled", Type: v.Type, Axes: axes, Body: body, Origin: v.Origin})
	return scaled
}

// overNothing is the condition that the sum at a point of v has no terms; nil if it always has some. Such
// a sum is 0, but an infinite factor times 0 would be NaN.
func overNothing(g *ir.Graph, v *ir.Value) (none *ir.Expr) {
	facts := g.Facts()
	facts.Within = v.Axes
	for _, r := range v.Reduce.Ranges {
		empty := ir.Simplify(ir.Apply(ir.OpEq, r.Extent, ir.IntConst(0)), facts)
		switch {
		case empty.IsConst(0):
		case none == nil:
			none = empty
		default:
			none = ir.Apply(ir.OpOr, none, empty)
		}
	}
	return none
}

// allFinite reports whether 0 times all of the factors is 0.
func allFinite(factors []factor) bool {
	for _, f := range factors {
		if f.e.Op != ir.OpConst || math.IsInf(f.e.Val, 0) || f.e.Val != f.e.Val || f.divide && f.e.Val == 0 {
			return false
		}
	}
	return true
}

type factor struct {
	e      *ir.Expr
	divide bool
}

// over is an expression times the factor, or divided by it.
func (f factor) over(e *ir.Expr) *ir.Expr {
	if f.divide {
		return ir.Apply(ir.OpDiv, e, f.e)
	}
	return ir.Apply(ir.OpMul, e, f.e)
}

// splitFactors writes e as inner times the product of outer, where no factor in outer depends on the bound
// ranges and may is true for each. inner is nil where no factor is left.
func splitFactors(e *ir.Expr, bound map[*ir.Range]bool, may func(factor) bool) (inner *ir.Expr, outer []factor) {
	if !algebra.DependsOnAny(e, bound) && may(factor{e, false}) {
		return nil, []factor{{e, false}}
	}
	switch e.Op {
	case ir.OpMul:
		if len(ir.Operands(ir.OpMul, e)) == 1 {
			return e, nil // it has too many
		}
		a, fa := splitFactors(e.Args[0], bound, may)
		b, fb := splitFactors(e.Args[1], bound, may)
		outer = append(fa, fb...)
		switch {
		case len(outer) == 0:
			return e, nil
		case a == nil:
			return b, outer
		case b == nil:
			return a, outer
		}
		return ir.Apply(ir.OpMul, a, b).At(e.Span), outer
	case ir.OpDiv:
		divisor := factor{e.Args[1], true}
		if algebra.DependsOnAny(e.Args[1], bound) || algebra.BySize(e.Args[1]) || !may(divisor) {
			return e, nil
		}
		a, fa := splitFactors(e.Args[0], bound, may)
		return a, append(fa, divisor)
	case ir.OpNeg:
		a, fa := splitFactors(e.Args[0], bound, may)
		return a, append(fa, factor{ir.Num(e.Type, -1), false})
	}
	return e, nil
}
