package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// The sum of two products, such as q @ k + p @ r, writes the results of one product, for the kernel of the other to add them. It is also one
// product, of the operands beside each other along what is summed: [q p] @ [k; r]. Where there are many results of few terms each, as
// there are scores of attention, these operands are much smaller than the results.

// addProducts makes one product of two that are added, where writing the joined operands moves fewer bytes than writing the results of one
// product. If sizes are symbols, the default sizes decide; the graph then records for which sizes it was rewritten.
func addProducts(g *ir.Graph) {
	if !mayAddKernels(g) {
		return
	}
	p := &productAdder{g, algebra.DefaultSizes(g), countReaders(g)}
	insertBefore(g, p.join)
	DropDead(g)
}

type productAdder struct {
	g       *ir.Graph
	sizes   map[string]int64
	readers map[*ir.Value]int
}

// join replaces sums of products in the body of v, and returns the values that it then reads.
func (p *productAdder) join(v *ir.Value) (made []*ir.Value) {
	if v.IsInput() {
		return nil
	}
	v.Body = ir.Rewrite(v.Body, func(e *ir.Expr) *ir.Expr {
		if e.Op != ir.OpAdd {
			return e
		}
		first, second := p.product(e.Args[0]), p.product(e.Args[1])
		if first == nil || second == nil || first.From == second.From || !slices.EqualFunc(first.Args, second.Args, ir.Equal) {
			return e
		}
		values := p.joined(first.From, second.From, e.Type)
		if values == nil {
			return e
		}
		made = append(made, values...)
		return ir.Cast(ir.Load(values[len(values)-1], first.Args, nil).At(e.Span), e.Type)
	})
	return made
}

// product is the load of a product of 16-bit tensors over one range, which is read for this expression alone; nil for others.
func (p *productAdder) product(e *ir.Expr) *ir.Expr {
	e = form.Stripped(e)
	if e.Op != ir.OpLoad || e.Fill != nil || p.readers[e.From] != 1 || !form.IsTileProduct(e.From) {
		return nil
	}
	if r := e.From.Reduce; r.Where != nil || len(r.Ranges) != 1 {
		return nil
	}
	return e
}

// joined is the operands of both products beside each other, and the product of these; nil where that takes longer or is no product.
func (p *productAdder) joined(first, second *ir.Value, t ir.DType) []*ir.Value {
	if len(first.Axes) != len(second.Axes) {
		return nil
	}
	depth := first.Reduce.Ranges[0].Extent
	sum := &ir.Value{Name: first.Name, Type: t, Origin: first.Origin}
	var shape []*ir.Expr
	for d, r := range first.Axes {
		if !ir.SameSize(r.Extent, second.Axes[d].Extent) {
			return nil
		}
		shape = append(shape, r.Extent)
	}
	sum.Axes = p.g.NewAxes(shape)
	both := ir.Simplify(ir.Apply(ir.OpAdd, depth, second.Reduce.Ranges[0].Extent), p.g.Facts())
	k := p.g.NewRange(first.Reduce.Ranges[0].Name, both)
	sum.Reduce = &ir.Reduction{Op: ir.Sum, Ranges: []*ir.Range{k}}
	a, b := sidesAt(first, sum.Axes, k.At())
	c, d := sidesAt(second, sum.Axes, ir.Apply(ir.OpSub, k.At(), depth))
	if a == nil || c == nil {
		return nil
	}
	if a.Type != c.Type || b.Type != d.Type || a.Type != b.Type {
		return nil
	}
	inFirst := ir.Apply(ir.OpLt, k.At(), depth)
	sides := [2]*ir.Expr{ir.Apply(ir.OpSelect, inFirst, a, c), ir.Apply(ir.OpSelect, inFirst, b, d)}
	if !staysProduct(sum, sides) {
		sides = [2]*ir.Expr{ir.Apply(ir.OpSelect, inFirst, a, d), ir.Apply(ir.OpSelect, inFirst, b, c)}
	}
	if !staysProduct(sum, sides) || !p.pays(sum, first, sides) {
		return nil
	}
	wide := first.Body.Type
	left, x := operandOver(p.g, sum, sides[0], rangesIn(sum, sides[0]))
	right, y := operandOver(p.g, sum, sides[1], rangesIn(sum, sides[1]))
	sum.Body = ir.Apply(ir.OpMul, ir.Cast(x, wide), ir.Cast(y, wide)).At(first.Body.Span)
	return []*ir.Value{left, right, p.g.Adopt(sum)}
}

// sidesAt is the sides of a product, in 16 bits, over other axes and another place of its sum; nil where it has no two such sides.
func sidesAt(v *ir.Value, axes []*ir.Range, place *ir.Expr) (a, b *ir.Expr) {
	a, b = form.SidesOf(v)
	if a == nil || b == nil {
		return nil, nil
	}
	at := map[*ir.Range]*ir.Expr{v.Reduce.Ranges[0]: place}
	for d, r := range v.Axes {
		at[r] = axes[d].At()
	}
	a, b = form.WithoutWidening(a), form.WithoutWidening(b)
	if !form.IsHalf(a.Type) || !form.IsHalf(b.Type) {
		return nil, nil
	}
	return ir.Substitute(a, at), ir.Substitute(b, at)
}

// staysProduct reports whether the joined sides are those of a matrix product: each depends on rows that the other lacks, and together they
// depend on all.
func staysProduct(sum *ir.Value, sides [2]*ir.Expr) bool {
	left, right := form.AxesIn(sum, sides[0]), form.AxesIn(sum, sides[1])
	for _, r := range sum.Axes {
		if !left[r] && !right[r] && !algebra.IsUnit(r) {
			return false
		}
	}
	return !algebra.Subset(left, right) && !algebra.Subset(right, left)
}

// pays reports whether writing and reading the joined operands moves fewer bytes than writing and reading the results of one product. It adds to
// the graph the sizes for which that is so.
func (p *productAdder) pays(sum, first *ir.Value, sides [2]*ir.Expr) bool {
	const launches = pairBytes / 2 // of the joined operands, as bytes that are written and read
	bytes := func(t ir.DType, ranges []*ir.Range) *ir.Expr {
		return ir.Apply(ir.OpMul, algebra.Product(ranges), ir.IntConst(int64(t.Size())))
	}
	moved := ir.IntConst(launches)
	for _, side := range sides {
		moved = ir.Apply(ir.OpAdd, moved, bytes(side.Type, rangesIn(sum, side)))
	}
	when := ir.Simplify(ir.Apply(ir.OpLt, moved, bytes(first.Type, sum.Axes)), p.g.Facts())
	if algebra.Estimate(moved, p.sizes) >= algebra.Estimate(bytes(first.Type, sum.Axes), p.sizes) {
		return false
	}
	if ir.Decide(when, p.g.Facts()) != ir.True {
		p.g.For = ir.Join(ir.OpOr, p.g.For, when)
	}
	return true
}
