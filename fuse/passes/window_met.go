package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Where the stride of a transposed convolution and the step between its taps have a common factor, all taps that meet
// an element do so at places of one residue modulo that factor. At the other places the sum has no terms.

// shared is the largest common factor of the stride and the step between taps; the stride where no tap is in the condition.
func (p *phase) shared() int64 {
	a, b := p.stride, max(p.step, -p.step)
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// meetsSome reports whether the places at which taps meet elements are those of one residue, which is known, and
// the others have a sum of 0.
func (p *phase) meetsSome() bool {
	return p.splitAlone() && p.first.Op == ir.OpConst && inverse(p.place, p.shared()) > 0
}

// splitMet makes a value of the sums at the places where taps meet elements, makes the original read from it at these
// and be 0 at others, and returns it. What is left of the condition is divided by the common factor.
func (p *phase) splitMet(g *ir.Graph) *ir.Value {
	v, n, facts := p.v, p.shared(), g.Facts()
	residue := ((-p.first.Int*inverse(p.place, n))%n + n) % n // place*residue + first = 0 modulo n
	by := ir.IntConst(n)
	part := g.NewRange(p.axis.Name, ir.Simplify(algebra.CeilDiv(p.axis.Extent, n), facts))
	with := map[*ir.Range]*ir.Expr{p.axis: ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, part.At(), by), ir.IntConst(residue))}
	at := func(e *ir.Expr) *ir.Expr { return ir.Simplify(ir.Substitute(e, with), facts) }
	u := &ir.Value{Name: v.Name + "_met", Type: v.Type, Axes: slices.Clone(v.Axes), Body: at(v.Body), Origin: v.Origin}
	u.Axes[slices.Index(u.Axes, p.axis)] = part
	if past := ir.Simplify(ir.Apply(ir.OpMod, p.axis.Extent, by), facts); !past.IsConst(0) { // the last place may be none of the axis
		u.Body = ir.Simplify(form.GuardLoads(u.Body), facts)
	}
	r := *v.Reduce
	r.Where = nil
	for _, c := range append(p.rest, p.dividedBy(n, residue, part)) {
		r.Where = algebra.And(r.Where, at(c))
	}
	if r.Where = ir.Simplify(algebra.OrTrue(r.Where), facts); r.Where.IsConst(1) {
		r.Where = nil
	}
	u.Reduce = &r
	u = freshAxes(g, u)
	place := p.axis.At()
	sum := ir.Load(u, p.read(ir.Apply(ir.OpFloorDiv, place, by)), nil).At(v.Body.Span)
	v.Reduce = nil
	v.Body = ir.Apply(ir.OpSelect, ir.Apply(ir.OpEq, ir.Apply(ir.OpMod, place, by), ir.IntConst(residue)), sum,
		ir.Cast(ir.IntConst(0), v.Type))
	return u
}

// dividedBy is what is left of the condition at the places n*part + residue.
func (p *phase) dividedBy(n, residue int64, part *ir.Range) *ir.Expr {
	sum := ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, part.At(), ir.IntConst(p.place)), ir.IntConst((p.place*residue+p.first.Int)/n))
	if p.tap != nil {
		sum = ir.Apply(ir.OpAdd, sum, ir.Apply(ir.OpMul, p.tap.At(), ir.IntConst(p.step/n)))
	}
	return ir.Apply(ir.OpEq, ir.Apply(ir.OpMod, sum, ir.IntConst(p.stride/n)), ir.IntConst(0))
}
