package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// addNegatives makes sums of differences of two products, such as the real part of a complex product: the smaller operand of the second is
// written with the other sign, where that moves fewer bytes than the results of one product, and both products may become one then.
func (p *productAdder) addNegatives() {
	readers, results, changed := readersOf(p.g), resultsOf(p.g), false
	insertBefore(p.g, func(v *ir.Value) (made []*ir.Value) {
		if v.IsInput() {
			return nil
		}
		v.Body = ir.Rewrite(v.Body, func(e *ir.Expr) *ir.Expr {
			if e.Op != ir.OpSub || !e.Type.IsFloat() {
				return e
			}
			second := form.Stripped(e.Args[1])
			first := p.productBeside(second, e.Args[0])
			if first == nil || len(readers[second.From]) != 1 || results[second.From] {
				return e
			}
			side, negative := p.negative(second.From)
			if negative == nil || p.joined(first, negative, e.Type) == nil {
				return e
			}
			made, changed = append(made, side, p.g.Adopt(negative)), true
			return ir.Apply(ir.OpAdd, e.Args[0], ir.Cast(ir.Load(negative, second.Args, nil).At(second.Span), e.Type)).At(e.Span)
		})
		return made
	})
	if changed {
		DropDead(p.g)
	}
}

// productBeside is a product among the terms of a sum, of which the same element is read as of another; nil where there is none.
func (p *productAdder) productBeside(other, sum *ir.Expr) *ir.Value {
	if !isAddedProduct(other) || p.isWeighted(other.From) {
		return nil
	}
	for _, term := range written(sum) {
		if l := form.Stripped(term); isAddedProduct(l) && l.From != other.From && !p.isWeighted(l.From) && slices.EqualFunc(l.Args, other.Args, ir.Equal) {
			return l.From
		}
	}
	return nil
}

// negative is a product with the other sign, and the operand that has it: the smaller one. Both are nil where writing that takes as long as
// the results of the product.
func (p *productAdder) negative(v *ir.Value) (side, product *ir.Value) {
	a, b := form.SidesOf(v)
	if a == nil || b == nil {
		return nil, nil
	}
	if algebra.PointsAt(rangesIn(v, a), p.sizes) < algebra.PointsAt(rangesIn(v, b), p.sizes) {
		a, b = b, a
	}
	inner := form.WithoutWidening(b)
	if !form.IsHalf(inner.Type) {
		return nil, nil
	}
	side, load := operandValue(p.g, v, ir.Apply(ir.OpNeg, inner))
	if algebra.BytesAt(side, p.sizes)+launchBytes/2 > algebra.BytesAt(v, p.sizes) {
		return nil, nil
	}
	product = &ir.Value{Name: v.Name, Type: v.Type, Axes: v.Axes, Reduce: v.Reduce, Origin: v.Origin}
	product.Body = ir.Apply(ir.OpMul, a, ir.Cast(load, a.Type)).At(v.Body.Span)
	return side, product
}
