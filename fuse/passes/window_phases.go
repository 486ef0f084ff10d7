package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// A transposed convolution sums, at each place of its result, over the taps that meet an element of
// the input there: those of one residue modulo the stride. Which residue depends on the place's own,
// its phase. So each phase is a convolution of stride 1 over a part of the taps.

// splitPhases makes sums whose condition picks one residue of a range's points into sums over those
// points alone. An axis p, of which the residue depends, becomes two, p / s and p % s.
func splitPhases(g *ir.Graph) {
	if g.Numerics != ir.Fast {
		return
	}
	var out []*ir.Value
	for _, v := range g.Values {
		out = append(append(out, phasesIn(g, v)...), v)
	}
	g.Values = out
}

// phasesIn splits the phases of each axis of a value, and returns the values that it made, which
// come before it.
func phasesIn(g *ir.Graph, v *ir.Value) []*ir.Value {
	for _, a := range v.Axes {
		if p := phaseOf(v, a); p != nil {
			u := p.split(g)
			return append(phasesIn(g, u), u)
		}
	}
	return nil
}

// phase is a condition (place*axis + step*tap + first) % stride == 0 of a reduction.
type phase struct {
	v                   *ir.Value
	axis, tap           *ir.Range
	place, step, stride int64
	first               *ir.Expr
	rest                []*ir.Expr // the other conditions
}

// phaseOf finds such a condition on an axis of a reduction; nil where there is none, or where taps
// of a residue are not one in stride.
func phaseOf(v *ir.Value, axis *ir.Range) *phase {
	if v.Reduce == nil || v.Reduce.Where == nil || v.Reduce.Rank != nil || v.Reduce.Op.IsArg() {
		return nil
	}
	conditions := ir.Conjuncts(v.Reduce.Where)
	for i, c := range conditions {
		residue := residueOf(c)
		if residue == nil || residue.Args[1].Op != ir.OpConst {
			continue
		}
		p := &phase{v: v, axis: axis, stride: residue.Args[1].Int}
		if p.linear(residue.Args[0]) {
			p.rest = slices.Delete(slices.Clone(conditions), i, i+1)
			return p
		}
	}
	return nil
}

// residueOf is the remainder that a condition says is zero; nil for other conditions.
func residueOf(c *ir.Expr) *ir.Expr {
	if c.Op != ir.OpEq {
		return nil
	}
	for i, e := range c.Args {
		if e.Op == ir.OpMod && c.Args[1-i].IsConst(0) {
			return e
		}
	}
	return nil
}

// linear describes what the residue is of.
func (p *phase) linear(e *ir.Expr) bool {
	reduced := algebra.RangeSet(p.v.Reduce.Ranges)
	for r := range ir.FreeRanges(e) {
		switch {
		case reduced[r] && p.tap == nil:
			p.tap = r
		case r != p.axis:
			return false
		}
	}
	if p.tap == nil || p.stride < 2 || p.tap.Extent.Op != ir.OpConst {
		return false
	}
	place, ok := ir.Stride(e, p.axis, ir.Facts{Positive: true})
	step, okStep := ir.Stride(e, p.tap, ir.Facts{Positive: true})
	if !ok || !okStep || place.Op != ir.OpConst || step.Op != ir.OpConst || place.Int == 0 {
		return false
	}
	p.place, p.step = place.Int, step.Int
	p.first = ir.Simplify(ir.Substitute(e, map[*ir.Range]*ir.Expr{p.axis: ir.IntConst(0), p.tap: ir.IntConst(0)}), ir.Facts{})
	return inverse(p.step, p.stride) > 0
}

// inverse is the number below n whose product with a is 1 modulo n; 0 where there is none.
func inverse(a, n int64) int64 {
	for x := int64(1); x < n; x++ {
		if ((a*x)%n+n)%n == 1 {
			return x
		}
	}
	return 0
}

// split moves the sum to a value over phases, from which the present one reads, and returns that.
func (p *phase) split(g *ir.Graph) *ir.Value {
	v, s := p.v, ir.IntConst(p.stride)
	part := g.NewRange(p.axis.Name, algebra.CeilDiv(p.axis.Extent, p.stride))
	residue := g.NewRange(p.axis.Name+"_phase", s)
	taps := g.NewRange(p.tap.Name, algebra.CeilDiv(p.tap.Extent, p.stride))
	part.Extent, taps.Extent = ir.Simplify(part.Extent, g.Facts()), ir.Simplify(taps.Extent, g.Facts())

	// step*tap = -(place*residue + first) modulo the stride; taps in the order in which what they meet ascends.
	turn := p.stride - inverse(p.step, p.stride)
	sum := ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, residue.At(), ir.IntConst(p.place)), p.first)
	first := ir.Apply(ir.OpMod, ir.Apply(ir.OpMul, sum, ir.IntConst(turn)), s)
	turned := taps.At()
	if p.place*p.step < 0 {
		turned = ir.Apply(ir.OpSub, ir.Apply(ir.OpSub, taps.Extent, ir.IntConst(1)), taps.At())
	}
	facts := g.Facts()
	with := map[*ir.Range]*ir.Expr{
		p.axis: ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, part.At(), s), residue.At()),
		p.tap:  ir.Simplify(ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, turned, s), first), facts),
	}
	at := func(e *ir.Expr) *ir.Expr { return ir.Simplify(ir.Substitute(e, with), facts) }
	u := &ir.Value{Name: v.Name + "_phases", Type: v.Type, Body: at(v.Body), Origin: v.Origin}
	r := *v.Reduce
	r.Ranges = slices.Clone(r.Ranges)
	r.Ranges[slices.Index(r.Ranges, p.tap)] = taps
	r.Where = ir.Simplify(ir.Apply(ir.OpLt, with[p.tap], p.tap.Extent), facts)
	if !r.Where.IsConst(1) {
		u.Body = form.GuardLoads(u.Body)
	}
	for _, c := range p.rest {
		r.Where = algebra.And(r.Where, at(c))
	}
	if r.Where = ir.Simplify(r.Where, facts); r.Where.IsConst(1) {
		r.Where = nil
	}
	u.Reduce = &r
	var read []*ir.Expr
	for _, a := range v.Axes {
		if a != p.axis {
			u.Axes, read = append(u.Axes, a), append(read, a.At())
			continue
		}
		u.Axes = append(u.Axes, part, residue)
		read = append(read, ir.Apply(ir.OpFloorDiv, a.At(), s), ir.Apply(ir.OpMod, a.At(), s))
	}
	fresh := g.NewAxes(u.Shape())
	rename := map[*ir.Range]*ir.Expr{}
	for d, a := range u.Axes {
		fresh[d].Name = a.Name
		rename[a] = fresh[d].At()
	}
	u.Axes = fresh
	u.Body = ir.Substitute(u.Body, rename)
	if r.Where != nil {
		u.Reduce.Where = ir.Substitute(r.Where, rename)
	}
	g.Adopt(u)
	v.Reduce, v.Body = nil, ir.Load(u, read, nil).At(v.Body.Span)
	return u
}
