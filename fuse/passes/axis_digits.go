package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// The gradient of a convolution whose windows do not overlap sums, for each place of its input, over channels alone: those
// of the window that has the place, with the weights of the place in it. So the place p is read as p / s and p % s, and the
// rows of the product are (p / s) on one side and (p % s) on the other. With steps larger than the window it is p / s alone. What
// is past the end of the axis, if the last quotient has any, is not outside of what is read.

// splitAxes rewrites sums of products that know the place on an axis by its quotient and its remainder only, into sums with
// an axis for each, from which the original reads.
func splitAxes(g *ir.Graph) {
	sizes := algebra.DefaultSizes(g)
	insertBefore(g, func(v *ir.Value) []*ir.Value {
		if !multiplyOnTiles(v, sizes) {
			return nil
		}
		return axesIn(g, v)
	})
}

// axesIn splits each axis of a value where that is possible, and returns the new values, which come before it.
func axesIn(g *ir.Graph, v *ir.Value) []*ir.Value {
	for _, a := range v.Axes {
		d := digitsOf(v, a)
		if !d.quotient || !d.apart {
			continue
		}
		u := d.split(g, v, a)
		return append(axesIn(g, u), u)
	}
	return nil
}

// digits is how a value knows the place on an axis.
type digits struct {
	by             int64 // what the place is divided by; 0 where the value knows more of it
	quotient, rest bool  // whether it knows the quotient, and the remainder
	apart          bool  // whether no read has both, as one of axes that belong together has: heads and their features
}

// digitsOf finds them.
func digitsOf(v *ir.Value, a *ir.Range) (d digits) {
	exprs := []*ir.Expr{v.Body}
	if v.Reduce.Where != nil {
		exprs = append(exprs, v.Reduce.Where)
	}
	known := true
	d.apart = true
	for _, e := range exprs {
		ir.Walk(e, func(e *ir.Expr) bool {
			if e.Op == ir.OpLoad {
				q, r := hasDigit(e, ir.OpFloorDiv, a), hasDigit(e, ir.OpMod, a)
				d.apart = d.apart && !(q && r)
			}
			if by, ok := digitOf(e, a); ok {
				known = known && (d.by == 0 || d.by == by)
				d.by = by
				d.quotient, d.rest = d.quotient || e.Op == ir.OpFloorDiv, d.rest || e.Op == ir.OpMod
				return false
			}
			known = known && !(e.Op == ir.OpRange && e.Range == a)
			return known
		})
	}
	if !known {
		return digits{}
	}
	return d
}

// digitOf is the number that an axis is divided by in a / n or a % n.
func digitOf(e *ir.Expr, a *ir.Range) (int64, bool) {
	if e.Op != ir.OpFloorDiv && e.Op != ir.OpMod || e.Args[0].Op != ir.OpRange || e.Args[0].Range != a || e.Args[1].Op != ir.OpConst {
		return 0, false
	}
	return e.Args[1].Int, e.Args[1].Int > 1
}

// hasDigit reports whether an expression has the quotient, or the remainder, of an axis.
func hasDigit(e *ir.Expr, op ir.Op, a *ir.Range) bool {
	return ir.Contains(e, func(e *ir.Expr) bool {
		_, ok := digitOf(e, a)
		return ok && e.Op == op
	})
}

// split moves the sum to a value with an axis for each digit, makes the original read from it, and returns it.
func (d digits) split(g *ir.Graph, v *ir.Value, a *ir.Range) *ir.Value {
	by := ir.IntConst(d.by)
	own := []*ir.Range{g.NewRange(a.Name, ir.Simplify(algebra.CeilDiv(a.Extent, d.by), g.Facts()))}
	place := ir.Apply(ir.OpMul, own[0].At(), by)
	at := []*ir.Expr{ir.Apply(ir.OpFloorDiv, a.At(), by)}
	if d.rest {
		own = append(own, g.NewRange(a.Name+"_rest", by))
		place = ir.Apply(ir.OpAdd, place, own[1].At())
		at = append(at, ir.Apply(ir.OpMod, a.At(), by))
	}
	with := func(e *ir.Expr) *ir.Expr {
		return ir.Simplify(ir.Substitute(e, map[*ir.Range]*ir.Expr{a: place}), g.Facts())
	}
	r := *v.Reduce
	r.Ranges = slices.Clone(r.Ranges)
	if r.Where != nil {
		r.Where = with(r.Where)
	}
	u := &ir.Value{Name: v.Name + "_digits", Type: v.Type, Body: with(v.Body), Reduce: &r, Origin: v.Origin}
	var index []*ir.Expr
	for _, x := range v.Axes {
		if x == a {
			u.Axes, index = append(u.Axes, own...), append(index, at...)
		} else {
			u.Axes, index = append(u.Axes, x), append(index, x.At())
		}
	}
	u = freshAxes(g, u)
	v.Reduce, v.Body = nil, ir.Load(u, index, nil).At(v.Body.Span)
	return u
}
