package fuse

import (
	"maps"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// scores lowers a product from which a stream makes its weights. It becomes a local, defined as the
// sum over the depth.
func (lo *lowering) scores(v *ir.Value, body *ir.Expr) *ir.Expr {
	l := lo.local(v.Name, ir.F32, ir.FullLevel)
	l.Def = ir.Reduce(&ir.Reduction{Op: ir.Sum, Ranges: v.Reduce.Ranges}, ir.Cast(body, ir.F32))
	l.Value, l.Span = v, v.Origin.Span
	lo.score, lo.products = l, append(lo.products, l)
	return lo.rounded(ir.LocalRef(l), v.Type)
}

// scoresOnce lowers a product if it is not lowered yet. If two sums use equal products, only one of these
// is lowered.
func (lo *lowering) scoresOnce(v *ir.Value) *ir.Expr {
	if s := lo.r.stream; s != nil && s.same[v] != nil {
		v = s.same[v]
	}
	if lo.value[v] == nil {
		lo.value[v] = lo.scores(v, lo.expr(ir.Substitute(v.Body, lo.r.at[v])))
	}
	return lo.value[v]
}

// boundArgs makes parameters of the bounds of the mask.
func (lo *lowering) boundArgs() {
	for _, p := range (attendKernel{lo.kernel}).bounds() {
		lo.arg(p.low)
		lo.arg(p.high)
	}
}

// attend describes the parts of a stream, with the heads of a group packed where queries are few.
func (lo *lowering) attend() {
	a := lo.operands()
	if lo.fewQueries = !lo.r.stream.Chained && forecast.FewQueries(algebra.Product(a.M)); lo.fewQueries {
		lo.packHeads(a)
	}
	lo.kernel.attend = a
}

// Tensor cores multiply f32 as sums of bf16, each of which has 8 bits of the 24: with all three, products are as
// precise as those of f32; two are more precise than tf32, which has 11 bits.
const (
	exactParts = 3
	tf32Parts  = 2
)

// operands describes the ranges of a stream and lowers its operands.
func (lo *lowering) operands() *ir.Attend {
	s := lo.r.stream
	a := &ir.Attend{Depth: s.Score.From.Reduce.Ranges, Scale: s.Weight.Scale, Type: form.TensorType(s.Value)}
	if a.Type == ir.F32 {
		a.Parts = exactParts
		if lo.g.TF32 {
			a.Parts = tf32Parts
		}
	}
	a.V.Value = lo.expr(s.Value)
	if s.Factor != nil {
		a.Weight = lo.expr(s.Factor)
	}
	shared := ir.FreeRanges(a.V.Value)
	for i, l := range s.Products() {
		p := ir.ScoreProduct{Depth: l.From.Reduce.Ranges, Score: lo.scoreOf(l.From)}
		p.Q.Value, p.K.Value = lo.sides(l)
		maps.Copy(shared, ir.FreeRanges(p.K.Value))
		if i == 0 {
			a.Q, a.K, a.Score = p.Q, p.K, p.Score
		} else {
			a.Others = append(a.Others, p)
		}
	}
	for _, r := range lo.k.Rows {
		switch {
		case s.Own[r]:
			a.N = append(a.N, r)
		case shared[r]:
			a.Batch = append(a.Batch, r)
		default:
			a.M = append(a.M, r)
		}
	}
	if s.Chained {
		a.ValueIn = valuesIn(a, a.V.Value)
	}
	if s.also != nil {
		a.Also = &ir.ChainSum{Weight: lo.expr(s.also.Factor), Value: lo.expr(s.also.Value)}
		a.Also.ValueIn = valuesIn(a, a.Also.Value)
	}
	return a
}

// sides lowers the operands of a product that weights are made of.
func (lo *lowering) sides(l *ir.Expr) (q, k *ir.Expr) {
	s := lo.r.stream
	if s.Chained {
		q, k, _ = s.SidesAt(l, lo.facts)
		return lo.expr(q), lo.expr(k)
	}
	q, k, _ = s.Sides()
	at := lo.r.at[l.From]
	return lo.expr(ir.Substitute(q, at)), lo.expr(ir.Substitute(k, at))
}

// scoreOf is the local that holds a product.
func (lo *lowering) scoreOf(v *ir.Value) *ir.Local {
	return lo.products[slices.IndexFunc(lo.products, func(l *ir.Local) bool { return l.Value == v })]
}

// Streams with few queries, as when a model writes one token after another, take as long as it takes to
// read keys and values once. So heads that share keys are rows of one tile, and the warps of a block
// divide the keys. Chunks of the keys are blocks of their own, whose states the graph merges.

// packHeads makes the heads of a group rows of a tile: a range of the batch of which keys and values use
// only the quotient is replaced by that quotient and by the head in the group.
func (lo *lowering) packHeads(a *ir.Attend) {
	for i, r := range a.Batch {
		n := algebra.GroupOf(r, lo.facts, a.K.Value, a.V.Value)
		if n == 1 {
			continue
		}
		g := lo.g
		outer := g.NewRange(r.Name, ir.Simplify(ir.Apply(ir.OpFloorDiv, r.Extent, ir.IntConst(n)), lo.facts))
		inner := g.NewRange(r.Name+"_in_group", ir.IntConst(n))
		at := ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, outer.At(), ir.IntConst(n)), inner.At())
		with := map[*ir.Range]*ir.Expr{r: at}
		var rows []*ir.Range
		for _, row := range lo.k.Rows {
			if row == r {
				rows = append(rows, outer, inner)
			} else {
				rows = append(rows, row)
			}
		}
		lo.k.Rows = rows
		apply := func(e *ir.Expr) *ir.Expr {
			if e == nil {
				return nil
			}
			return ir.Simplify(ir.Substitute(e, with), lo.inside(ir.FullLevel))
		}
		for _, root := range lo.roots() { // a row may have no columns, so expressions at row level must not assume that there is one
			*root.expr = ir.Simplify(ir.Substitute(*root.expr, with), lo.inside(root.level))
		}
		lo.score.Def = apply(lo.score.Def)
		a.Q.Value, a.K.Value, a.V.Value = apply(a.Q.Value), apply(a.K.Value), apply(a.V.Value)
		a.Weight = apply(a.Weight)
		a.Batch[i] = outer
		a.M = append([]*ir.Range{inner}, a.M...)
		return
	}
}
