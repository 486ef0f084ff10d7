package passes

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// The sum of two products, such as q @ k + p @ r, writes the results of one product, for the kernel of the other to add them. It is also one
// product, of the operands beside each other along what is summed: [q p] @ [k; r]. Where there are many results of few terms each, as
// there are scores of attention, these operands are much smaller than the results.

// addProducts makes one product of two that are added, where writing the joined operands moves fewer bytes than writing the results of one
// product. If sizes are symbols, the default sizes decide; the graph then records for which sizes it was rewritten.
func addProducts(g *ir.Graph) { joinAdded(g, false) }

// addProductsInPlace does so for devices that read the joined operands where they lie.
func addProductsInPlace(g *ir.Graph) { joinAdded(g, true) }

func joinAdded(g *ir.Graph, inPlace bool) {
	if !mayAddKernels(g) {
		return
	}
	p := &productAdder{g: g, sizes: algebra.DefaultSizes(g), inPlace: inPlace, sums: map[[2]*ir.Value]*ir.Value{}}
	p.addNegatives()
	p.findTerms()
	p.findPairs()
	if len(p.pairs) == 0 {
		return
	}
	insertBefore(g, p.join)
	DropDead(g)
}

type productAdder struct {
	g       *ir.Graph
	sizes   map[string]int64
	inPlace bool // whether operands in segments need no copies (readSegments)

	weighted map[*ir.Value]bool // sums of attention, whose weights are no operands in memory; found when they are first asked for

	terms map[*ir.Value]bool         // sums that are read as terms of others only, so that nothing computes them
	pairs map[[2]*ir.Value]bool      // products of which the same element is added
	alone map[*ir.Value]bool         // products that something else reads
	sums  map[[2]*ir.Value]*ir.Value // the product of each pair; nil where there is none
}

// join replaces sums of products in the body of v, and returns the values that it then reads.
func (p *productAdder) join(v *ir.Value) (made []*ir.Value) {
	if v.IsInput() || p.terms[v] {
		return nil
	}
	v.Body = ir.Rewrite(v.Body, func(e *ir.Expr) *ir.Expr {
		a := p.added(e)
		if a == nil || !p.pairs[a.pair] || p.alone[a.pair[0]] || p.alone[a.pair[1]] {
			return e
		}
		sum, known := p.sums[a.pair]
		if !known {
			if values := p.joined(a.pair[0], a.pair[1], e.Type); values != nil {
				sum, made = values[len(values)-1], append(made, values...)
			}
			p.sums[a.pair] = sum
		}
		if sum == nil {
			return e
		}
		total := ir.Cast(ir.Load(sum, a.at, nil).At(e.Span), e.Type)
		for _, term := range a.others {
			total = ir.Apply(ir.OpAdd, total, ir.Cast(term, e.Type)).At(e.Span)
		}
		return total
	})
	return made
}

// joined is the operands of both products beside each other, and the product of these; nil where that takes longer or is no product.
func (p *productAdder) joined(first, second *ir.Value, t ir.DType) []*ir.Value {
	if len(first.Axes) != len(second.Axes) {
		return nil
	}
	depth := first.Reduce.Ranges[0].Extent
	sum := &ir.Value{Name: first.Name, Type: t, Origin: first.Origin}
	for d, r := range first.Axes {
		if !ir.SameSize(r.Extent, second.Axes[d].Extent) {
			return nil
		}
	}
	sum.Axes = p.g.NewAxes(first.Shape())
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
	if !staysProduct(sum, sides) {
		return nil
	}
	wide := first.Body.Type
	left, x := operandOver(p.g, sum, sides[0], rangesIn(sum, sides[0]))
	right, y := operandOver(p.g, sum, sides[1], rangesIn(sum, sides[1]))
	sum.Body = ir.Apply(ir.OpMul, ir.Cast(x, wide), ir.Cast(y, wide)).At(first.Body.Span)
	if !p.pays(sum, first, sides) {
		return nil
	}
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
	return ofSegment(ir.Substitute(a, at)), ofSegment(ir.Substitute(b, at))
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

// pays reports whether joining the operands of two products takes less time than adding their results. Warpgroups read the operands where they
// lie; else these are written and read, which has to move fewer bytes than writing and reading the results of one product. It adds to the
// graph the sizes for which that is so.
func (p *productAdder) pays(sum, first *ir.Value, sides [2]*ir.Expr) bool {
	if s := segmentsOf(p.g, sum, p.sizes); p.inPlace && s != nil {
		p.only(s.when)
		return true
	}
	const launches = pairBytes / 2 // of the joined operands, as bytes that are written and read
	bytes := func(t ir.DType, ranges []*ir.Range) *ir.Expr {
		return ir.Apply(ir.OpMul, algebra.Product(ranges), ir.IntConst(int64(t.Size())))
	}
	moved := ir.IntConst(launches)
	for _, side := range sides {
		moved = ir.Apply(ir.OpAdd, moved, bytes(side.Type, rangesIn(sum, side)))
	}
	if algebra.Estimate(moved, p.sizes) >= algebra.Estimate(bytes(first.Type, sum.Axes), p.sizes) {
		return false
	}
	p.only(ir.Simplify(ir.Apply(ir.OpLt, moved, bytes(first.Type, sum.Axes)), p.g.Facts()))
	return true
}

// only adds to the graph the sizes for which it is rewritten.
func (p *productAdder) only(when *ir.Expr) {
	if when != nil && ir.Decide(when, p.g.Facts()) != ir.True {
		p.g.For = ir.Join(ir.OpOr, p.g.For, when)
	}
}
