package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// The input of a convolution may be read through a view: half of the channels of a tensor, one enlarged by repetition,
// or one with its border mirrored. Tensor cores read windows of what lies in memory as the windows move over it, so a
// view becomes a value of its own, over the places at which windows read it.

// readByWindows is the values of which products with weights read windows, with the axes along which these move.
func readByWindows(g *ir.Graph) map[*ir.Value]map[int]bool {
	out := map[*ir.Value]map[int]bool{}
	for _, v := range g.Values {
		factors := loadsMultiplied(v)
		if factors == nil {
			continue
		}
		if a, b := form.AxesIn(v, factors[0]), form.AxesIn(v, factors[1]); algebra.Subset(a, b) || algebra.Subset(b, a) {
			continue // no weights of several results
		}
		for _, load := range factors {
			for _, d := range form.WindowAxes(v, load) {
				if out[load.From] == nil {
					out[load.From] = map[int]bool{}
				}
				out[load.From][d] = true
			}
		}
	}
	return out
}

// movesAlong reports whether a view's indices move along some of its axes, each along one: windows of the view are then windows of what it reads.
func movesAlong(v *ir.Value, axes map[int]bool) bool {
	if v.Body.Op != ir.OpLoad {
		return true
	}
	for d := range axes {
		r, found := v.Axes[d], false
		for _, at := range v.Body.Args {
			if !ir.DependsOn(at, r) {
				continue
			}
			stride, ok := ir.Stride(at, r, ir.Facts{Positive: true})
			if !ok || stride.Op != ir.OpConst || stride.Int < 1 || found || len(ir.FreeRanges(at)) > 1 {
				return false
			}
			found = true
		}
	}
	return true
}

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

// viewOf is a load of a new value that holds what another load reads, over one axis for each place along which windows go, and for each range that
// is part of no place; nil where an index depends on an output and a tap in another way. Several indices may depend on one place, as those of a channel
// and of a pixel do where channels are spread over pixels.
func viewOf(g *ir.Graph, v *ir.Value, load, weight *ir.Expr) *ir.Expr {
	if load.Fill != nil && len(ir.FreeRanges(load.Fill)) > 0 {
		return nil
	}
	places := placesOfView(v, load, weight, g.Facts())
	if places == nil {
		return nil
	}
	var shape, at []*ir.Expr // of the new value, and where it is read
	for _, p := range places {
		shape, at = append(shape, extentOfPlaces(p.at, g.Facts())), append(at, p.at)
	}
	axes := g.NewAxes(shape)
	indices := slices.Clone(load.Args)
	for d := range indices {
		for n, p := range places {
			var ok bool
			if indices[d], ok = p.from(indices[d], axes[n].At(), g.Facts()); !ok {
				return nil
			}
		}
		indices[d] = ir.Simplify(indices[d], g.Facts())
	}
	body := ir.Load(load.From, indices, load.Fill)
	value := &ir.Value{Name: v.Name + "_view", Type: body.Type, Axes: axes, Body: body, Origin: v.Origin}
	return ir.Load(value, at, nil).At(load.Span)
}

// A viewPlace is a place along which windows go, of an output and a tap, or a range that is part of no window.
type viewPlace struct {
	at          *ir.Expr
	output, tap *ir.Range // tap is nil for a range
}

// placesOfView are the places and ranges that the indices of a load depend on, in the order of these indices; nil where there are none.
func placesOfView(v *ir.Value, load, weight *ir.Expr, facts ir.Facts) (out []viewPlace) {
	reduced, seen := algebra.RangeSet(v.Reduce.Ranges), map[*ir.Range]bool{}
	for _, index := range load.Args {
		var alone, windows []viewPlace
		for _, output := range algebra.AllRanges(v) {
			if !ir.DependsOn(index, output) || seen[output] || reduced[output] || ir.DependsOn(weight, output) {
				continue
			}
			for _, tap := range v.Reduce.Ranges {
				if !ir.DependsOn(index, tap) || seen[tap] || seen[output] {
					continue
				}
				if place, from := placeOf(index, output, tap, facts); from != nil {
					windows = append(windows, viewPlace{place, output, tap})
					seen[output], seen[tap] = true, true
				}
			}
		}
		for _, r := range algebra.AllRanges(v) {
			if ir.DependsOn(index, r) && !seen[r] {
				alone, seen[r] = append(alone, viewPlace{at: r.At(), output: r}), true
			}
		}
		out = append(append(out, alone...), windows...)
	}
	return out
}

// from is an index as a function of a place; ok is false where it is none.
func (p viewPlace) from(index, place *ir.Expr, facts ir.Facts) (as *ir.Expr, ok bool) {
	if p.tap == nil {
		return ir.Substitute(index, map[*ir.Range]*ir.Expr{p.output: place}), true
	}
	if !ir.DependsOn(index, p.output) && !ir.DependsOn(index, p.tap) {
		return index, true
	}
	for ir.DependsOn(index, p.output) || ir.DependsOn(index, p.tap) {
		at, from := placeOf(index, p.output, p.tap, facts)
		if from == nil || !ir.Equal(at, p.at) {
			return nil, false
		}
		index = from(place)
	}
	return index, true
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
