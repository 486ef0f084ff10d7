package fuse

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// streamWeights brings every stream to one form: logits without a constant factor,
// which the maximum of a row does not need; f32 sums of exponentials and of
// weighted values; and what all terms have in common, the division by the sum of
// the weights among it, after the sums.
func streamWeights(g *ir.Graph) {
	if g.Numerics == ir.Strict {
		return
	}
	m := newRecogniser(g)
	streams, _ := m.streams()
	if len(streams) == 0 {
		return
	}
	rw := &streamRewrite{recogniser: m, fresh: map[*ir.Value]*ir.Value{}, statistic: map[*ir.Value]bool{}}
	for _, s := range streams {
		rw.maximum(s.weight.max.From)
		for _, u := range s.sums {
			rw.weights(u)
		}
		rw.weighted(s)
	}
	var values []*ir.Value
	for _, v := range g.Values {
		if f := rw.fresh[v]; f != nil {
			values = append(values, f)
		}
		values = append(values, v)
	}
	g.Values = values
	inlineWhere(g, func(v *ir.Value) bool { return rw.statistic[v] })
	mergeEqual(g)
	splitStreams(g)
}

type streamRewrite struct {
	*recogniser
	fresh     map[*ir.Value]*ir.Value // what was a reduction to the one it reads now
	statistic map[*ir.Value]bool      // maxima and sums of weights, done
}

// replace makes v a pointwise function of a new reduction with the given body.
func (rw *streamRewrite) replace(
	v *ir.Value, name string, body *ir.Expr, finish ...func(*ir.Expr) *ir.Expr,
) *ir.Value {
	r := *v.Reduce
	fresh := rw.g.Adopt(&ir.Value{Name: name, Type: ir.F32, Axes: v.Axes, Body: body, Reduce: &r,
		Origin: v.Origin})
	axes := rw.g.NewAxes(v.Shape())
	rename := map[*ir.Range]*ir.Expr{}
	for d, r := range v.Axes {
		rename[r] = algebra.UnitIndices(axes)[d]
	}
	e := ir.Load(fresh, algebra.UnitIndices(v.Axes), nil)
	for _, f := range finish {
		e = f(e)
	}
	v.Axes, v.Reduce, v.Body = axes, nil, ir.Cast(ir.Substitute(e, rename), v.Type)
	rw.fresh[v] = fresh
	return fresh
}

// maximum takes the constant factor out of what v is the maximum of.
func (rw *streamRewrite) maximum(v *ir.Value) {
	if rw.statistic[v] {
		return
	}
	rw.statistic[v] = true
	c, logit := unscaled(rw.whole[v])
	rw.replace(v, v.Name+"_logit", ir.Cast(logit, ir.F32), func(e *ir.Expr) *ir.Expr { return scaled(c, e) })
}

func scaled(c float64, e *ir.Expr) *ir.Expr {
	if c == 1 {
		return e
	}
	return ir.Apply(ir.OpMul, ir.Num(e.Type, c), e)
}

// unscaled writes e as c times the result, c > 0; -inf absorbs any factor.
func unscaled(e *ir.Expr) (c float64, rest *ir.Expr) {
	switch {
	case e.Op == ir.OpCast && e.Type.IsFloat() && e.Args[0].Type.IsFloat():
		return unscaled(e.Args[0])
	case e.Op == ir.OpMul:
		for i, a := range e.Args {
			if a.Op == ir.OpConst && a.Val > 0 {
				c, rest = unscaled(e.Args[1-i])
				return c * a.Val, rest
			}
		}
	case e.Op == ir.OpSelect && isMinusInfinity(e.Args[2]):
		c, rest = unscaled(e.Args[1])
		return c, ir.Where(e.Args[0], rest, ir.Num(rest.Type, e.Args[2].Val)).At(e.Span)
	case e.Op == ir.OpSelect && isMinusInfinity(e.Args[1]):
		c, rest = unscaled(e.Args[2])
		return c, ir.Where(e.Args[0], ir.Num(rest.Type, e.Args[1].Val), rest).At(e.Span)
	}
	return 1, e
}

func isMinusInfinity(e *ir.Expr) bool {
	e = stripped(e)
	return e.Op == ir.OpConst && e.Type.IsFloat() && e.Val < 0 && e.Val*0 != 0
}

// exponent writes the weights with the maximum of the unscaled logits.
func (rw *streamRewrite) exponent(x exponential) *ir.Expr {
	c, logit := unscaled(x.logit)
	gap := ir.Apply(ir.OpSub, ir.Cast(logit, ir.F32), ir.Load(rw.fresh[x.max.From], x.max.Args, nil))
	return ir.Apply(ir.OpExp, scaled(c*x.scale, gap))
}

// weights rewrites a sum of exponentials.
func (rw *streamRewrite) weights(u *ir.Value) {
	if rw.statistic[u] {
		return
	}
	rw.statistic[u] = true
	x, _ := rw.exponential(stripped(rw.whole[u]).Args[0], map[*ir.Range]bool{u.Reduce.Ranges[0]: true})
	rw.replace(u, u.Name+"_f32", rw.exponent(x))
}

// weighted rewrites the sum of weighted values.
func (rw *streamRewrite) weighted(s *stream) {
	e := rw.exponent(s.weight)
	if s.factor != nil {
		e = ir.Apply(ir.OpMul, e, s.factor)
	}
	rw.replace(s.out, s.out.Name+"_acc", ir.Apply(ir.OpMul, e, s.value), s.finish...)
}
