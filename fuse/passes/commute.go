package passes

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// commuteRows multiplies the sums of a product by what its operand's rows are multiplied
// by: of (r[m] * x[m, k]) @ w the sums of x @ w, by r. The operand then is a tensor that is
// there, in place of one to be written and read, and is not rounded. It is for what
// depends on a reduction, as the statistics of a norm; anything else is computed in one
// kernel with the operand. A value that others read too is written anyway.
func commuteRows(g *ir.Graph) {
	if !mayAddKernels(g) {
		return
	}
	rs := newReaches(g)
	scaled := scaledOperands(g, rs)
	if len(scaled) == 0 {
		return
	}
	var out []*ir.Value
	to := map[*ir.Value]*ir.Value{}
	for _, v := range g.Values {
		v.MapExprs(func(e *ir.Expr) *ir.Expr { return ir.RetargetLoads(e, to) })
		out = append(out, v)
		if s := commuteOperand(g, v, scaled, rs); s != nil {
			out, to[v] = append(out, s), s
		}
	}
	g.Values = out
	for i, o := range g.Outputs {
		if s := to[o.Value]; s != nil {
			g.Outputs[i].Value = s
		}
	}
	DropDead(g)
}

// scaledOperands are the values that products alone read, as operands that are a tensor of
// their type times what belongs to a row.
func scaledOperands(g *ir.Graph, rs *reaches) map[*ir.Value]bool {
	readers, results := map[*ir.Value][]*ir.Value{}, map[*ir.Value]bool{}
	for _, v := range g.Values {
		for _, l := range v.Loads() {
			readers[l.From] = append(readers[l.From], v)
		}
	}
	for _, o := range g.Outputs {
		results[o.Value] = true
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

// scalesRows reports whether v is a product with t as an operand whose factors commute. What
// reduces a product's results may fold its tiles or be a stream of scores: those stay.
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

// operandLoad is the load that an operand is, in its own type, where it is of one of the
// given values.
func operandLoad(side *ir.Expr, of map[*ir.Value]bool) (*ir.Expr, bool) {
	load := form.WithoutWidening(side)
	return load, load.Op == ir.OpLoad && load.Fill == nil && of[load.From]
}

// rowFactors splits the value that a load of v stands for into an element of a tensor of its
// type and finite factors that do not change along the sum, one of which waits for a reduction;
// inner is nil where it is anything else.
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

// commuteOperand takes an operand that is scaled out of v, and returns the value that
// multiplies its sums; nil where v has none.
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
	axes, rename := g.NewAxes(v.Shape()), map[*ir.Range]*ir.Expr{}
	for d, r := range v.Axes {
		rename[r] = algebra.UnitIndices(axes)[d]
	}
	whole := v.Type
	v.Body, v.Type = ir.Apply(ir.OpMul, ir.Cast(inner, ir.F32), ir.Cast(b, ir.F32)).At(v.Body.Span), ir.F32
	body := ir.Load(v, algebra.UnitIndices(axes), nil)
	for _, f := range outer {
		op := ir.OpMul
		if f.divide {
			op = ir.OpDiv
		}
		body = ir.Apply(op, body, ir.Cast(ir.Substitute(f.e, rename), ir.F32))
	}
	body = ir.Cast(body, whole)
	if none := overNothing(g, v); none != nil {
		body = ir.Where(none, ir.Num(whole, 0), body)
	}
	return g.Adopt(&ir.Value{Name: v.Name + "_scaled", Type: whole, Axes: axes, Body: body, Origin: v.Origin})
}
