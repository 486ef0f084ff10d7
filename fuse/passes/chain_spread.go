package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Kernels of chains copy operands as tiles of 16 bits, with rows on one side and what is summed or weighed on the other. What comes to
// attention from behind it need not be such a tensor: the gradient of a mean over queries is the same for all of them, that of a sum
// weighted over features is a vector, and either may be converted from f32. To write what they lack costs little beside scores that
// would go through memory otherwise.

// spreader gives the sums that chains may be, or may compute again, operands that are tensors.
type spreader struct {
	*form.ChainFinder
	graph *ir.Graph
	made  map[*ir.Value]bool // the new operands
}

// spreadOperands gives every sum of two factors its operands, and returns the new ones.
func spreadOperands(g *ir.Graph, large bool) map[*ir.Value]bool {
	s := &spreader{form.NewChainFinder(g, large), g, map[*ir.Value]bool{}}
	if len(s.Products) > 0 {
		insertBefore(g, s.operands)
	}
	return s.made
}

// operands gives a sum its operands, and returns those that are new.
func (s *spreader) operands(v *ir.Value) (made []*ir.Value) {
	if v.Reduce == nil || v.Reduce.Op != ir.Sum || v.Reduce.Where != nil || !v.Type.IsFloat() {
		return nil
	}
	factors := form.FactorsOf(v.Body)
	if len(factors) != 2 || slices.ContainsFunc(factors, func(f *ir.Expr) bool { return !form.IsHalf(form.WithoutWidening(f).Type) }) {
		return nil
	}
	for i, f := range factors {
		if ranges := s.ranges(v, f, factors[1-i]); ranges != nil {
			value, load := spreadValue(s.graph, v, form.WithoutWidening(f), ranges)
			made, factors[i], s.made[value] = append(made, value), ir.Cast(load, f.Type).At(f.Span), true
		}
	}
	if len(made) > 0 {
		v.Body = ir.Apply(ir.OpMul, factors[0], factors[1]).At(v.Body.Span)
	}
	return made
}

// ranges lists those that the operand f of a sum has to have: all that are summed, and the axes of the sum that the other operand
// lacks. It is nil where f is a tensor that has them, or is a function of products itself.
func (s *spreader) ranges(v *ir.Value, f, other *ir.Expr) []*ir.Range {
	have, others := ir.FreeRanges(f), ir.FreeRanges(other)
	weighs, fewer := s.Reads(other) && len(others) >= len(have), len(have) < len(others)
	if s.Reads(f) && !fewer || len(have) == 0 && !ir.Has(f, ir.OpLoad) {
		return nil
	}
	complete := form.PlainLoad(f) && form.WithoutWidening(f).Op == ir.OpLoad
	var shared, own []*ir.Range
	for _, r := range algebra.Widened(v.Axes) {
		switch {
		case have[r] && others[r]:
			shared = append(shared, r)
		case have[r] || !others[r] && (weighs || fewer):
			own, complete = append(own, r), complete && have[r]
		}
	}
	summed := algebra.Widened(v.Reduce.Ranges)
	complete = complete && !slices.ContainsFunc(summed, func(r *ir.Range) bool { return !have[r] })
	switch {
	case complete:
		return nil
	case weighs:
		return slices.Concat(shared, summed, own) // values have their columns last
	}
	return slices.Concat(shared, own, summed)
}

// spreadValue makes a value of an operand over some ranges, and returns it with the load that replaces the operand.
func spreadValue(g *ir.Graph, v *ir.Value, operand *ir.Expr, ranges []*ir.Range) (value *ir.Value, load *ir.Expr) {
	shape, at := []*ir.Expr(nil), map[*ir.Range]*ir.Expr{}
	for _, r := range ranges {
		shape = append(shape, r.Extent)
	}
	axes := g.NewAxes(shape)
	for d, r := range ranges {
		at[r] = axes[d].At()
	}
	value = g.Adopt(&ir.Value{Name: v.Name + "_operand", Type: operand.Type, Axes: axes, Body: ir.Substitute(operand, at), Origin: v.Origin})
	return value, ir.Load(value, ir.Indices(ranges), nil).At(operand.Span)
}

// inlineUnread computes new operands in place again where no chain reads them, itself or in a product.
func (c *chainRewrite) inlineUnread() {
	read := map[*ir.Value]bool{}
	for _, v := range c.graph.Values {
		for _, l := range v.Loads() {
			read[l.From] = read[l.From] || v.Again || c.sums[v]
		}
	}
	inlineWhere(c.graph, func(v *ir.Value) bool { return c.made[v] && !read[v] })
}

// onesWidth is the columns of ones that are weighed where a chain has no values: as many as tiles have at least.
const onesWidth = 16

// count makes the sum of a chain without values: the sum of its weights times ones, of which one column is read. It returns the value
// with the sum alone.
func (c *chainRewrite) count(s *form.Stream, weight *ir.Expr) *ir.Value {
	v, key := s.Out, s.Keys[0]
	for _, r := range s.Keys {
		if algebra.PointsAt([]*ir.Range{r}, c.sizes) > algebra.PointsAt([]*ir.Range{key}, c.sizes) {
			key = r
		}
	}
	ones := c.graph.Adopt(&ir.Value{Name: v.Name + "_ones", Type: s.Tensors(), Axes: c.graph.NewAxes([]*ir.Expr{key.Extent, ir.IntConst(onesWidth)}),
		Body: ir.Num(s.Tensors(), 1), Origin: v.Origin})
	c.before[v] = append(c.before[v], ones)
	column := c.graph.NewRange("c", ir.IntConst(onesWidth))
	one := ir.Load(ones, ir.Indices([]*ir.Range{key, column}), nil)
	sum := c.sum(v, ir.Apply(ir.OpMul, weight, ir.Cast(one, ir.F32)), s.Epilogue)
	sum.Axes = append(slices.Clone(sum.Axes), column)
	v.Body = ir.Rewrite(v.Body, func(e *ir.Expr) *ir.Expr {
		if e.Op == ir.OpLoad && e.From == sum {
			return ir.Load(sum, append(slices.Clone(e.Args), ir.IntConst(0)), nil)
		}
		return e
	})
	return sum
}
