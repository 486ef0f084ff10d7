package passes

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// commuteRows moves factors of an operand's rows from a product's operand to its sums: (r[m] * x[m, k]) @
// w becomes r times the sums of x @ w. The operand is then a tensor that exists already, and none has to
// be computed, rounded, written and read. This is for factors that depend on a reduction, such as the
// statistics of a norm; other factors are computed in one kernel with the operand. An operand with other
// readers is written anyway, and is left alone.
func commuteRows(g *ir.Graph) {
	if !mayAddKernels(g) {
		return
	}
	rs := newReaches(g)
	scaled := scaledOperands(g, rs)
	if len(scaled) == 0 {
		return
	}
	insertAfter(g, func(v *ir.Value) *ir.Value { return commuteOperand(g, v, scaled, rs) })
	DropDead(g)
}

// scaledOperands are the values that only products read, as operands, and that are a tensor of their type
// times factors of rows.
func scaledOperands(g *ir.Graph, rs *reaches) map[*ir.Value]bool {
	readers, results := map[*ir.Value][]*ir.Value{}, resultsOf(g)
	for _, v := range g.Values {
		for _, l := range v.Loads() {
			readers[l.From] = append(readers[l.From], v)
		}
	}
	out := map[*ir.Value]bool{}
	for _, t := range g.Values {
		if t.Body == nil || t.Reduce != nil || !form.IsHalf(t.Type) || results[t] {
			continue
		}
		ok := len(readers[t]) > 0
		for _, v := range readers[t] {
			ok = ok && rs.scalesRows(v, t, readers[v])
		}
		if ok {
			out[t] = true
		}
	}
	return out
}

// scalesRows reports whether v is a product with t as an operand whose factors can be moved to the sums.
// It is false if something reduces the product: that may become a reduction epilogue, or a stream with
// the product as scores.
func (rs *reaches) scalesRows(v, t *ir.Value, readers []*ir.Value) bool {
	for _, r := range readers {
		if r.Reduce != nil {
			return false
		}
	}
	if !form.IsTileProduct(v) {
		return false
	}
	a, b := form.SidesOf(v)
	if a == nil || b == nil {
		return false
	}
	if _, ok := operandLoad(b, map[*ir.Value]bool{t: true}); ok {
		a, b = b, a
	}
	load, ok := operandLoad(a, map[*ir.Value]bool{t: true})
	if _, both := operandLoad(b, map[*ir.Value]bool{t: true}); !ok || both {
		return false
	}
	inner, outer := rs.rowFactors(v, load)
	return inner != nil && len(outer) > 0
}

// operandLoad is the load that an operand consists of, in its own type, where it loads one of the given
// values.
func operandLoad(side *ir.Expr, of map[*ir.Value]bool) (*ir.Expr, bool) {
	load := form.WithoutWidening(side)
	return load, load.Op == ir.OpLoad && load.Fill == nil && of[load.From]
}

// rowFactors splits the value that a load of v reads into an element of a tensor of its type and finite
// factors. The factors do not change along the sum, and one of them depends on a reduction. inner is nil
// for any other value.
func (rs *reaches) rowFactors(v *ir.Value, load *ir.Expr) (inner *ir.Expr, outer []factor) {
	body := form.BodyAt(load)
	if body.Op != ir.OpCast || body.Args[0].Type != ir.F32 {
		return nil, nil
	}
	inner, outer = splitFactors(body.Args[0], algebra.RangeSet(v.Reduce.Ranges), func(f factor) bool { return rs.safe(v, f) })
	if inner == nil {
		return nil, nil
	}
	if inner = form.WithoutWidening(inner); inner.Op != ir.OpLoad || inner.Fill != nil || inner.Type != load.Type {
		return nil, nil
	}
	for _, f := range outer {
		for _, l := range ir.Loads(f.e) {
			if l.From.Reduce != nil {
				return inner, outer
			}
		}
	}
	return nil, nil
}

// commuteOperand replaces an operand of v by what it scales, and returns the value that multiplies the
// sums; nil where v has no such operand.
func commuteOperand(g *ir.Graph, v *ir.Value, scaled map[*ir.Value]bool, rs *reaches) *ir.Value {
	if v.Reduce == nil || !form.IsTileProduct(v) {
		return nil
	}
	a, b := form.SidesOf(v)
	if a == nil || b == nil {
		return nil
	}
	load, ok := operandLoad(a, scaled)
	if !ok {
		a, b = b, a
		if load, ok = operandLoad(a, scaled); !ok {
			return nil
		}
	}
	inner, outer := rs.rowFactors(v, load)
	if inner == nil {
		return nil
	}
	return scaledSums(g, v, ir.Apply(ir.OpMul, ir.Cast(inner, ir.F32), ir.Cast(b, ir.F32)), outer)
}

// scaledSums makes v a sum of other products, in f32, and returns the value that multiplies the sums by factors and has v's type.
func scaledSums(g *ir.Graph, v *ir.Value, products *ir.Expr, factors []factor) *ir.Value {
	axes, rename := g.NewAxes(v.Shape()), map[*ir.Range]*ir.Expr{}
	for d, r := range v.Axes {
		rename[r] = algebra.UnitIndices(axes)[d]
	}
	whole := v.Type
	v.Body, v.Type = products.At(v.Body.Span), ir.F32
	body := ir.Load(v, algebra.UnitIndices(axes), nil)
	for _, f := range factors {
		body = factor{ir.Cast(ir.Substitute(f.e, rename), ir.F32), f.divide}.over(body)
	}
	body = ir.Cast(body, whole)
	if none := overNothing(g, v); none != nil {
		body = ir.Where(none, ir.Num(whole, 0), body)
	}
	return g.Adopt(&ir.Value{Name: v.Name + "_scaled", Type: whole, Axes: axes, Body: body, Origin: v.Origin})
}
