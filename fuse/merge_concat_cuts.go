package fuse

import (
	"slices"

	"github.com/fusec/fusec/ir"
)

// axisCuts is an axis of a value, and the indices along it between which the value is the same expression.
type axisCuts struct {
	*program
	v    *ir.Value
	axis int
	ends []*ir.Expr // in order, from 0 to the axis's extent
}

// cutAxis finds the indices along an axis at which conditions of a value change; nil where there are none or too many,
// or where their order is not known.
func (p *program) cutAxis(v *ir.Value, axis int) *axisCuts {
	r := v.Axes[axis]
	c := &axisCuts{p, v, axis, []*ir.Expr{ir.IntConst(0), r.Extent}}
	known := true
	ir.Walk(v.Body, func(e *ir.Expr) bool {
		for _, at := range cutsOf(e, r) {
			known = known && c.insert(ir.Simplify(at, p.facts))
		}
		return known
	})
	if !known || len(c.ends) <= 2 || len(c.ends) > mostConcatParts+1 {
		return nil
	}
	return c
}

// cutsOf lists the indices at which a condition on a range alone changes.
func cutsOf(e *ir.Expr, r *ir.Range) []*ir.Expr {
	if e.Op < ir.OpLt || e.Op > ir.OpNe {
		return nil
	}
	op, a, b := e.Op, position(e.Args[0]), position(e.Args[1])
	if b.Op == ir.OpRange {
		a, b = b, a
		op = map[ir.Op]ir.Op{ir.OpLt: ir.OpGt, ir.OpLe: ir.OpGe, ir.OpGt: ir.OpLt, ir.OpGe: ir.OpLe, ir.OpEq: ir.OpEq, ir.OpNe: ir.OpNe}[op]
	}
	if a.Op != ir.OpRange || a.Range != r || b.Type != ir.Index || len(ir.FreeRanges(b)) > 0 {
		return nil
	}
	next := ir.Apply(ir.OpAdd, b, ir.IntConst(1))
	switch op {
	case ir.OpLt, ir.OpGe:
		return []*ir.Expr{b}
	case ir.OpLe, ir.OpGt:
		return []*ir.Expr{next}
	}
	return []*ir.Expr{b, next}
}

// position is an index that is compared, without a cast to a tensor's type.
func position(e *ir.Expr) *ir.Expr {
	if e.Op == ir.OpCast && e.Args[0].Type == ir.Index {
		return e.Args[0]
	}
	return e
}

// insert adds an index to those that are known; false where its place among them is not known.
func (c *axisCuts) insert(at *ir.Expr) bool {
	atMost := func(a, b *ir.Expr) bool { return ir.Decide(ir.Apply(ir.OpLe, a, b), c.facts) == ir.True }
	for i, end := range c.ends {
		switch {
		case ir.SameSize(at, end) || i == 0 && atMost(at, end):
			return true
		case atMost(at, end):
			c.ends = slices.Insert(c.ends, i, at)
			return true
		case !atMost(end, at):
			return false
		}
	}
	return true // past the end of the axis
}

// part makes the value with the elements between two of the indices.
func (c *axisCuts) part(first, last int) *ir.Value {
	v, from, to := c.v, c.ends[first], c.ends[last]
	shape := v.Shape()
	shape[c.axis] = ir.Simplify(ir.Apply(ir.OpSub, to, from), c.facts)
	axes := c.g.NewAxes(shape)
	old := v.Axes[c.axis].At()
	inside := ir.Apply(ir.OpAnd, ir.Apply(ir.OpLe, from, old), ir.Apply(ir.OpLt, old, to))
	body, with := ir.SimplifyGiven(v.Body, inside, c.facts), map[*ir.Range]*ir.Expr{}
	for d, r := range v.Axes {
		with[r] = axes[d].At()
	}
	with[v.Axes[c.axis]] = ir.Apply(ir.OpAdd, axes[c.axis].At(), from)
	facts := c.facts
	facts.Within = axes
	body = ir.Simplify(ir.Substitute(body, with), facts)
	return &ir.Value{Name: v.Name + "_part", Type: v.Type, Axes: axes, Body: body, Origin: v.Origin}
}
