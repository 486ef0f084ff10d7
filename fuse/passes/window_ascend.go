package passes

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// ascendWindows turns the axes of sums of products along which windows go backwards, as in the gradient of the weights of a
// transposed convolution, which meets an input at p - k: tensor cores read windows that go forwards as they lie in memory. The sum
// becomes a value whose axis has the opposite order, and what was the sum reads it from the end.
func ascendWindows(g *ir.Graph) {
	if !mayAddKernels(g) {
		return
	}
	sizes := algebra.DefaultSizes(g)
	insertBefore(g, func(v *ir.Value) []*ir.Value {
		if v.Reduce == nil || !multiplyOnTiles(v, sizes) {
			return nil
		}
		at, turned := ir.Indices(v.Axes), map[*ir.Range]*ir.Expr{}
		for d, a := range v.Axes {
			if descends(v, a) {
				at[d] = ir.Apply(ir.OpSub, lastOf(a.Extent), a.At())
				turned[a] = at[d]
			}
		}
		if len(turned) == 0 {
			return nil
		}
		reduction := *v.Reduce
		if reduction.Where != nil {
			reduction.Where = ir.Simplify(ir.Substitute(reduction.Where, turned), g.Facts())
		}
		u := freshAxes(g, &ir.Value{Name: v.Name + "_turned", Type: v.Type, Axes: v.Axes, Reduce: &reduction, Origin: v.Origin,
			Body: ir.Simplify(ir.Substitute(v.Body, turned), g.Facts())})
		v.Reduce, v.Body = nil, ir.Load(u, at, nil).At(v.Body.Span)
		return []*ir.Value{u}
	})
}

// descends reports whether a place that a factor reads comes earlier as an axis grows, and later as what is summed over does.
func descends(v *ir.Value, axis *ir.Range) bool {
	for _, l := range loadsMultiplied(v) {
		for _, at := range l.Args {
			if c, ok := coefficient(at, axis); !ok || c >= 0 {
				continue
			}
			for _, r := range v.Reduce.Ranges {
				if c, ok := coefficient(at, r); ok && c > 0 {
					return true
				}
			}
		}
	}
	return false
}
