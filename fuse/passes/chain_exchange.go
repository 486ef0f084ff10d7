package passes

import (
	"maps"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// exchangeAll rewrites sums over keys of weights times a product as sums over the product's depth: with
// P = a b^T, sum_j w[i, j] P[i, j] is sum_e a[i, e] (sum_j w[i, j] b[j, e]). The inner sum is a stream, which does
// not need P. If a chain reads the product itself, the sum is not rewritten.
func (c *chainRewrite) exchangeAll() {
	chained := map[*ir.Value]bool{}
	for _, s := range c.chains {
		chained[s.Out] = true
	}
	for _, v := range c.graph.Values {
		if !v.Again && v.Reduce != nil && v.Reduce.Op == ir.Sum && v.Reduce.Where == nil && v.Type.IsFloat() && !chained[v] && !c.touched[v] && c.Reads(v.Body) {
			c.exchange(v)
		}
	}
}

func (c *chainRewrite) exchange(v *ir.Value) {
	s := &form.Stream{Out: v, Keys: v.Reduce.Ranges}
	factors := s.Factors(c.Expand(v.Body))
	at, others := -1, 0
	for i, f := range factors {
		l := loaded(f)
		switch {
		case l.Op == ir.OpLoad && l.Fill == nil && (c.touched[l.From] || c.ofKeys(l, slices.Delete(slices.Clone(factors), i, i+1))):
			at = i
		case c.Reads(f):
			others++
		}
	}
	if at < 0 || others != 1 {
		return
	}
	l := loaded(factors[at])
	to, depth := c.depthOf(l.From)
	keys := algebra.RangeSet(s.Keys)
	row, weighted := ir.Num(ir.F32, 1), slices.Delete(slices.Clone(factors), at, at+1)
	for _, f := range form.FactorsOf(ir.Substitute(form.BodyAt(l), to)) {
		if algebra.DependsOnAny(f, keys) {
			weighted = append(weighted, f)
		} else {
			row = ir.Apply(ir.OpMul, row, ir.Cast(f, ir.F32))
		}
	}
	inner := c.inner(v, c.weighted(weighted), depth)
	c.before[v], c.weightings[inner.From] = append(c.before[v], inner.From), true
	v.Reduce = &ir.Reduction{Op: ir.Sum, Ranges: depth}
	c.exchanged[c.sum(v, ir.Apply(ir.OpMul, row, inner), s.Epilogue)] = true
}

// loaded is a factor without conversions, those among them that are values of their own.
func loaded(f *ir.Expr) *ir.Expr {
	f = form.Stripped(f)
	for f.Op == ir.OpLoad && f.Fill == nil && !f.From.IsInput() && f.From.Reduce == nil && form.Stripped(f.From.Body).Op == ir.OpLoad {
		f = form.Stripped(form.BodyAt(f))
	}
	return f
}

// ofKeys reports whether a load beside weights is of a sum over the depth of tensors that belong to the keys alone, as what is the same for
// all rows of a product is. The weighted sum of these tensors is what the forward computation needs, too.
func (c *chainRewrite) ofKeys(l *ir.Expr, beside []*ir.Expr) bool {
	v := l.From
	if v.Reduce == nil || v.Reduce.Op != ir.Sum || v.Reduce.Where != nil || !form.IsHalf(form.TensorType(v.Body)) ||
		algebra.PointsAt(v.Reduce.Ranges, c.sizes) > form.LargestChain {
		return false
	}
	weights := map[*ir.Range]bool{}
	for _, f := range beside {
		if c.Reads(f) {
			maps.Copy(weights, ir.FreeRanges(f))
		}
	}
	return algebra.Subset(ir.FreeRanges(l), weights)
}

// inner is the load, at v's points and a depth, of a new sum over v's keys.
func (c *chainRewrite) inner(v *ir.Value, body *ir.Expr, depth []*ir.Range) *ir.Expr {
	free, keys := ir.FreeRanges(body), map[*ir.Range]*ir.Expr{}
	at, fresh := map[*ir.Range]*ir.Expr{}, []*ir.Range(nil)
	for _, r := range v.Reduce.Ranges {
		k := c.graph.NewRange(r.Name, r.Extent)
		keys[r], fresh = k.At(), append(fresh, k)
	}
	var ranges []*ir.Range
	var shape []*ir.Expr
	for _, r := range append(algebra.Widened(v.Axes), depth...) {
		if free[r] {
			ranges, shape = append(ranges, r), append(shape, r.Extent)
		}
	}
	axes := c.graph.NewAxes(shape)
	for d, r := range ranges {
		at[r] = axes[d].At()
	}
	sum := c.graph.Adopt(&ir.Value{Name: v.Name + "_weighted", Type: ir.F32, Axes: axes,
		Body: ir.Substitute(ir.Substitute(body, keys), at), Reduce: &ir.Reduction{Op: ir.Sum, Ranges: fresh}, Origin: v.Origin})
	return ir.Load(sum, ir.Indices(ranges), nil)
}
