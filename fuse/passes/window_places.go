package passes

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Where the extent of an axis is no multiple of the stride, its phases have places past the end of the axis. What
// follows a sum over phases is then computed where these are, so that it is the epilogue of the sum, and its results
// are moved to their places when they are stored.

// placePhases makes values of what is computed from such sums, over the axes of the sums, and leaves of the original
// values a load of each element from its phase.
func placePhases(g *ir.Graph) {
	storePlaced(g)
	insertBefore(g, func(v *ir.Value) []*ir.Value {
		if v.IsInput() || v.Reduce != nil || v.Body.Op == ir.OpLoad {
			return nil
		}
		for _, l := range ir.Loads(v.Body) {
			if isRaggedSum(g, v, l) {
				return []*ir.Value{atPhases(g, v, l)}
			}
		}
		return nil
	})
}

// atPhases moves the body of a value to a new value over the axes of the tensor that a load in it reads, makes the
// original a load of that, and returns it.
func atPhases(g *ir.Graph, v *ir.Value, load *ir.Expr) *ir.Value {
	axes, places := g.NewAxes(load.From.Shape()), map[*ir.Range]*ir.Expr{}
	z := &ir.Value{Name: v.Name + "_phases", Type: v.Type, Axes: axes, Origin: v.Origin}
	for a, at := range PlacesOf(v, load) {
		axes[at.part].Name = a.Name
		if at.Stride > 1 {
			axes[at.phase].Name = a.Name + "_phase"
		}
		places[a] = at.At(z, (*ir.Range).At)
	}
	body := ir.Rewrite(v.Body, func(e *ir.Expr) *ir.Expr {
		switch {
		case e.Op != ir.OpLoad:
			return e
		case e.From == load.From && ir.Equal(e, load):
			return ir.Load(e.From, algebra.UnitIndices(axes), nil).At(e.Span)
		}
		return form.GuardLoads(e) // there are places past the end
	})
	z.Body = ir.Simplify(ir.Substitute(body, places), g.Facts())
	g.Adopt(z)
	v.Body = ir.Load(z, load.Args, nil).At(v.Body.Span)
	return z
}

// isRagged reports whether some phases of a load have places past the end of an axis.
func isRagged(v *ir.Value, load *ir.Expr, facts ir.Facts) bool {
	for a, at := range PlacesOf(v, load) {
		if at.Stride > 1 && !ir.Multiple(a.Extent, at.Stride, facts) {
			return true
		}
	}
	return false
}

// A Place is where a load reads along one axis of its reader: in one dim, or at the quotient of the axis by a stride in
// one dim and at the remainder in another.
type Place struct {
	part, phase int // dims
	Stride      int64
}

// At is the index along the reader's axis of an element of the value that it reads, where at gives the indices of that.
func (p Place) At(z *ir.Value, at func(*ir.Range) *ir.Expr) *ir.Expr {
	if p.Stride == 1 {
		return at(z.Axes[p.part])
	}
	return ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, at(z.Axes[p.part]), ir.IntConst(p.Stride)), at(z.Axes[p.phase]))
}

// PlacesOf reads the indices of a load as places along all axes of its reader, each element of which is another
// element of what is read; nil for loads of other kinds.
func PlacesOf(v *ir.Value, load *ir.Expr) map[*ir.Range]Place {
	out := map[*ir.Range]Place{}
	shape := load.From.Shape()
	phases := map[*ir.Range]int{}
	for d, at := range load.Args {
		r, stride := dividedRange(at)
		switch {
		case r == nil && at.IsConst(0) && shape[d].IsConst(1):
		case r == nil:
			return nil
		case at.Op == ir.OpMod:
			if _, twice := phases[r]; twice || !ir.SameSize(shape[d], ir.IntConst(stride)) {
				return nil
			}
			phases[r] = d
		default:
			if _, twice := out[r]; twice || !ir.SameSize(shape[d], ir.Simplify(algebra.CeilDiv(r.Extent, stride), ir.Facts{})) {
				return nil
			}
			out[r] = Place{part: d, Stride: stride}
		}
	}
	for _, a := range v.Axes {
		p, found := out[a]
		phase, split := phases[a]
		if algebra.IsUnit(a) && !found && !split {
			continue
		}
		if !found || split != (p.Stride > 1) || split && !ir.SameSize(shape[phase], ir.IntConst(p.Stride)) {
			return nil
		}
		p.phase = phase
		out[a] = p
	}
	if len(phases) == 0 || len(out) > len(v.Axes) {
		return nil
	}
	return out
}

// dividedRange is the range that an index is, or is the quotient or the remainder of by a constant, and that constant;
// nil for other indices.
func dividedRange(at *ir.Expr) (r *ir.Range, by int64) {
	switch {
	case at.Op == ir.OpRange:
		return at.Range, 1
	case (at.Op == ir.OpFloorDiv || at.Op == ir.OpMod) && at.Args[0].Op == ir.OpRange && at.Args[1].Op == ir.OpConst && at.Args[1].Int > 1:
		return at.Args[0].Range, at.Args[1].Int
	}
	return nil, 0
}
