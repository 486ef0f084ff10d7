package passes

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Tiles multiply all terms of a sum, so a sum that leaves terms out would be a loop for each pair of rows. A condition
// that depends on the rows of one factor only, besides what is summed, can be a guard of that factor: it is 0 where the
// condition does not hold.
//
//	sum[k where c[i, k] && d[k]] a[i, k] * b[k, j]  =  sum[k] where(c && d, a, 0) * where(d, b, 0)
//
// A term that is left out is nothing, whatever its factors are, but 0 times infinity is NaN. So this is exact only where
// every condition guards both factors, as d does. Otherwise it is exact where the sum is a number: then all guarded
// terms were 0. Where it is NaN, the sum is computed again as it was written. That reads the sums once more, and is a
// loop only for those that are NaN.

// guardedProduct is how large a product has to be for guards to pay: its factors are copied, and its sums may be read
// again, which is little beside loops over all terms.
var guardedProduct = largeProduct{rows: orderedRows, depth: guardedDepth, points: orderedTiles * orderedSide * orderedSide}

const guardedDepth = 128 // least terms of a sum

// guardFactors turns conditions of sums of products into guards of their factors.
func guardFactors(g *ir.Graph) {
	if !mayAddKernels(g) {
		return
	}
	sizes := algebra.DefaultSizes(g)
	insertBefore(g, func(v *ir.Value) []*ir.Value {
		if !MayGuard(v) {
			return nil
		}
		terms := underCondition(v)
		p := guardsOf(terms)
		if !guardedProduct.holds(v, p.a, p.b, sizes) {
			return nil
		}
		*v = *terms
		if when := guardedProduct.at(v, p.a, p.b); when != nil {
			g.For = ir.Join(ir.OpOr, g.For, when)
		}
		return p.rewrite(g, v)
	})
}

// MayGuard reports whether a value is a sum of products whose conditions may guard its factors at some sizes.
func MayGuard(v *ir.Value) bool {
	terms := underCondition(v)
	return terms != nil && guardsOf(terms) != nil
}

// productGuards is the two sides of a product and the conditions that may guard each.
type productGuards struct {
	a, b      *ir.Expr
	onA, onB  *ir.Expr // nil for none
	onlyOnOne bool     // whether a condition guards one side and not the other
}

// guardsOf reads a sum of products under conditions, each of which has rows of one side alone; nil where one has rows of both.
func guardsOf(v *ir.Value) *productGuards {
	if !hasNaN(v.Type) || !multipliesTiles(v) {
		return nil
	}
	p := &productGuards{}
	p.a, p.b = form.SidesOf(v)
	axesA, axesB := form.AxesIn(v, p.a), form.AxesIn(v, p.b)
	for _, c := range ir.Conjuncts(v.Reduce.Where) {
		own := form.AxesIn(v, c)
		onA, onB := algebra.Subset(own, axesA), algebra.Subset(own, axesB)
		if !onA && !onB {
			return nil
		}
		if onA {
			p.onA = algebra.And(p.onA, c)
		}
		if onB {
			p.onB = algebra.And(p.onB, c)
		}
		p.onlyOnOne = p.onlyOnOne || onA != onB
	}
	return p
}

// hasNaN reports whether a type that sums are stored in can say that a sum is not a number.
func hasNaN(t ir.DType) bool { return form.IsHalf(t) || t == ir.F32 }

// multipliesTiles reports whether the factors of a sum's terms are read from floats that tiles multiply, at places that do not
// move with the rows: the conditions of windows say which taps there are, and stay with these.
func multipliesTiles(v *ir.Value) bool {
	if form.TensorType(v.Body) == ir.Invalid {
		return false
	}
	summed := algebra.RangeSet(v.Reduce.Ranges)
	for _, l := range ir.Loads(v.Body) {
		if l.From.Reduce != nil {
			return false // it may be part of a stream with that reduction
		}
		for _, at := range l.Args {
			if at.Op != ir.OpRange && algebra.DependsOnAny(at, summed) {
				return false
			}
		}
	}
	return true
}

// rewrite makes v the sum of the products of guarded factors, and returns the values that it reads then.
func (p *productGuards) rewrite(g *ir.Graph, v *ir.Value) []*ir.Value {
	guarded := ir.Apply(ir.OpMul, guardedFactor(p.a, p.onA), guardedFactor(p.b, p.onB)).At(v.Body.Span)
	written, reduce := *v.Reduce, *v.Reduce
	reduce.Where = nil
	if !p.onlyOnOne {
		v.Body, v.Reduce = guarded, &reduce
		return nil
	}
	all := freshAxes(g, &ir.Value{Name: v.Name + "_guarded", Type: v.Type, Axes: v.Axes, Reduce: &reduce, Origin: v.Origin, Body: guarded})
	sum := ir.Load(all, algebra.UnitIndices(v.Axes), nil)
	lost := ir.Apply(ir.OpIsNaN, sum)
	written.Where = algebra.And(lost, written.Where)
	again := freshAxes(g, &ir.Value{Name: v.Name + "_written", Type: v.Type, Axes: v.Axes, Reduce: &written, Origin: v.Origin, Body: v.Body})
	v.Body, v.Reduce = ir.Where(lost, ir.Load(again, algebra.UnitIndices(v.Axes), nil), sum), nil
	return []*ir.Value{all, again}
}

// guardedFactor is a factor where a condition holds, and 0 elsewhere; nil is always. What the condition kept from being read may be outside
// of its tensor.
func guardedFactor(side, when *ir.Expr) *ir.Expr {
	side = form.GuardLoads(side)
	if when == nil {
		return side
	}
	inner := form.WithoutWidening(side)
	return ir.Cast(ir.Where(when, inner, ir.Num(inner.Type, 0)).At(side.Span), side.Type)
}
