package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// The input of a convolution may be read through a view: half of the channels of a tensor, one enlarged by repetition,
// or one with its border mirrored. Tensor cores read windows of what lies in memory as the windows move over it, so a
// view becomes a value of its own, over the places at which windows read it.

// layViews makes values of the views through which windowed products read their inputs, where the products are large
// enough for their operands to be laid out. It decides for the program's default sizes.
func layViews(g *ir.Graph) {
	if !mayAddKernels(g) {
		return
	}
	sizes := algebra.DefaultSizes(g)
	insertBefore(g, func(v *ir.Value) []*ir.Value {
		factors := loadsMultiplied(v)
		if factors == nil || v.Reduce.Where != nil || ir.Equal(factors[0], factors[1]) || windowedProduct(v) != nil {
			return nil
		}
		for i, load := range factors {
			if view := viewOf(g, v, load, factors[1-i]); view != nil && replaceByView(v, load, view, sizes) {
				g.Adopt(view.From)
				return []*ir.Value{view.From}
			}
		}
		return nil
	})
}

// replaceByView makes a product read a view in place of a load, where it then is a windowed product that is worth
// laying operands out for.
func replaceByView(v *ir.Value, load, view *ir.Expr, sizes map[string]int64) bool {
	old := v.Body
	v.Body = replaceLoad(old, load, view)
	if p := windowedProduct(v); p != nil && p.input.load.From == view.From && moves(p.input) && p.worth(sizes) {
		return true
	}
	v.Body = old
	return false
}

// viewOf is a load of a new value that holds what another load reads, over one axis for each place along which windows
// or the channels go; nil where a place depends on other ranges than one axis of the result and one tap.
func viewOf(g *ir.Graph, v *ir.Value, load, weight *ir.Expr) *ir.Expr {
	if load.Fill != nil && len(ir.FreeRanges(load.Fill)) > 0 {
		return nil
	}
	reduced, seen := algebra.RangeSet(v.Reduce.Ranges), map[*ir.Range]bool{}
	var shape, at []*ir.Expr // of the new value, and where it is read
	from := make([]func(place *ir.Expr) *ir.Expr, len(load.Args))
	for d, index := range load.Args {
		var ranges []*ir.Range
		for _, r := range algebra.AllRanges(v) {
			if !ir.DependsOn(index, r) {
				continue
			}
			if seen[r] {
				return nil
			}
			seen[r] = true
			ranges = append(ranges, r)
		}
		var place *ir.Expr
		switch len(ranges) {
		case 0:
			continue
		case 1:
			place, from[d] = ranges[0].At(), func(p *ir.Expr) *ir.Expr {
				return ir.Substitute(index, map[*ir.Range]*ir.Expr{ranges[0]: p})
			}
		case 2:
			output, tap := ranges[0], ranges[1]
			if reduced[output] || !reduced[tap] || ir.DependsOn(weight, output) {
				return nil
			}
			if place, from[d] = placeOf(index, output, tap, g.Facts()); place == nil {
				return nil
			}
		default:
			return nil
		}
		shape, at = append(shape, extentOfPlaces(place, g.Facts())), append(at, place)
	}
	axes := g.NewAxes(shape)
	indices, k := slices.Clone(load.Args), 0
	for d, index := range from {
		if index != nil {
			indices[d] = ir.Simplify(index(axes[k].At()), g.Facts())
			k++
		}
	}
	body := ir.Load(load.From, indices, load.Fill)
	value := &ir.Value{Name: v.Name + "_view", Type: body.Type, Axes: axes, Body: body, Origin: v.Origin}
	return ir.Load(value, at, nil).At(load.Span)
}

// placeOf is the place output*stride + tap*dilation of which an index is a function, and that function; nil where
// it is a function of no such place.
func placeOf(index *ir.Expr, output, tap *ir.Range, facts ir.Facts) (place *ir.Expr, from func(*ir.Expr) *ir.Expr) {
	ir.Walk(index, func(e *ir.Expr) bool {
		if from != nil || !ir.DependsOn(e, output) || !ir.DependsOn(e, tap) {
			return false
		}
		stride, ok := constantStride(e, output)
		dilation, okTap := constantStride(e, tap)
		if !ok || !okTap || stride != 1 && dilation != 1 {
			return true
		}
		along, other, step := output, tap, dilation // index as a function of the place is found by eliminating one range
		if stride != 1 {
			along, other, step = tap, output, stride
		}
		of := func(p *ir.Expr) *ir.Expr {
			rest := ir.Apply(ir.OpSub, p, ir.Apply(ir.OpMul, other.At(), ir.IntConst(step)))
			return ir.Simplify(ir.Substitute(index, map[*ir.Range]*ir.Expr{along: rest}), facts)
		}
		if ir.DependsOn(of(ir.Sym("place")), other) {
			return true
		}
		from = of
		place = ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, output.At(), ir.IntConst(stride)), ir.Apply(ir.OpMul, tap.At(), ir.IntConst(dilation)))
		place = ir.Simplify(place, facts)
		return false
	})
	return place, from
}

// extentOfPlaces is one more than the last place.
func extentOfPlaces(place *ir.Expr, facts ir.Facts) *ir.Expr {
	last := map[*ir.Range]*ir.Expr{}
	for r := range ir.FreeRanges(place) {
		last[r] = lastOf(r.Extent)
	}
	return ir.Simplify(ir.Apply(ir.OpAdd, ir.Substitute(place, last), ir.IntConst(1)), facts)
}
