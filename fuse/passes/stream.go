package passes

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// streamWeights brings every stream to one form. Constant factors of logits are taken out of the maximum,
// which does not need them. Sums of exponentials and of weighted values are in f32. What all terms have
// in common, such as the division by the sum of the weights, is applied after the sums.
func streamWeights(g *ir.Graph) {
	if g.Numerics == ir.Strict {
		return
	}
	m := form.NewRecogniser(g)
	streams := m.Streams()
	if len(streams) == 0 {
		return
	}
	rw := &streamRewrite{Recogniser: m, fresh: map[*ir.Value]*ir.Value{}, statistic: map[*ir.Value]bool{}}
	for _, s := range streams {
		rw.maximum(s.Weight.Max.From)
		for _, u := range s.Sums {
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
	*form.Recogniser
	fresh     map[*ir.Value]*ir.Value // the new reduction that each rewritten one reads
	statistic map[*ir.Value]bool      // maxima and sums of weights that are rewritten already
}

// replace makes v a pointwise function of a new reduction with the given body.
func (rw *streamRewrite) replace(
	v *ir.Value, name string, body *ir.Expr, epilogue ...func(*ir.Expr) *ir.Expr,
) *ir.Value {
	r := *v.Reduce
	fresh := rw.Graph.Adopt(&ir.Value{Name: name, Type: ir.F32, Axes: v.Axes, Body: body, Reduce: &r,
		Origin: v.Origin})
	axes := rw.Graph.NewAxes(v.Shape())
	rename := map[*ir.Range]*ir.Expr{}
	for d, r := range v.Axes {
		rename[r] = algebra.UnitIndices(axes)[d]
	}
	e := ir.Load(fresh, algebra.UnitIndices(v.Axes), nil)
	for _, f := range epilogue {
		e = f(e)
	}
	v.Axes, v.Reduce, v.Body = axes, nil, ir.Cast(ir.Substitute(e, rename), v.Type)
	rw.fresh[v] = fresh
	return fresh
}

// maximum moves the constant factor out of the maximum v.
func (rw *streamRewrite) maximum(v *ir.Value) {
	if rw.statistic[v] {
		return
	}
	rw.statistic[v] = true
	c, logit := form.Unscaled(rw.Whole(v))
	rw.replace(v, v.Name+"_logit", ir.Cast(logit, ir.F32), func(e *ir.Expr) *ir.Expr { return form.Scaled(c, e) })
}

// exponent writes the weights with the maximum of the unscaled logits.
func (rw *streamRewrite) exponent(x form.Exponential) *ir.Expr {
	c, logit := form.Unscaled(x.Logit)
	gap := ir.Apply(ir.OpSub, ir.Cast(logit, ir.F32), ir.Load(rw.fresh[x.Max.From], x.Max.Args, nil))
	return ir.Apply(ir.OpExp, form.Scaled(c*x.Scale, gap))
}

// weights rewrites a sum of exponentials.
func (rw *streamRewrite) weights(u *ir.Value) {
	if rw.statistic[u] {
		return
	}
	rw.statistic[u] = true
	x, _ := rw.Exponential(form.Stripped(rw.Whole(u)).Args[0], map[*ir.Range]bool{u.Reduce.Ranges[0]: true})
	rw.replace(u, u.Name+"_f32", rw.exponent(x))
}

// weighted rewrites the sum of weighted values.
func (rw *streamRewrite) weighted(s *form.Stream) {
	e := rw.exponent(s.Weight)
	if s.Factor != nil {
		e = ir.Apply(ir.OpMul, e, s.Factor)
	}
	rw.replace(s.Out, s.Out.Name+"_acc", ir.Apply(ir.OpMul, e, s.Value), s.Epilogue...)
}
