package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/ir"
)

// Windows of few taps and channels, of which many results are computed, are written out: an element for each tap and channel of
// each place. That is less than half of what the results take, and what is left is a plain product. Through windows the copy
// engine would bring a line for each tap and place, of which the channels fill a small part.

// unfoldShare is how many times the elements of a window the results are at least.
const unfoldShare = 2

// unfolds reports whether the windows of a product that is laid out are written out.
func (p *windowed) unfolds(sizes map[string]int64) bool {
	if p.exact || len(p.both) > 0 || p.v.Reduce.Where != nil || !slices.ContainsFunc(p.input.spans, overlaps) {
		return false
	}
	channels := roundedUp(p.input.channels().Extent, p.align(), ir.Facts{})
	columns := ir.Simplify(ir.Apply(ir.OpMul, channels, algebra.Product(p.taps())), ir.Facts{})
	return columns.Op == ir.OpConst && channels.Int*int64(p.weight.Type.Size()) < forecast.LineBytes &&
		float64(unfoldShare*columns.Int) <= algebra.PointsAt(p.own, sizes)
}

// overlaps reports whether windows share elements along an axis, or leave some out there.
func overlaps(s span) bool {
	return s.tap != nil && !s.tap.Extent.IsConst(float64(s.stride)/float64(s.dilation))
}

// layUnfolded rewrites the product over new values that hold the windows and the weights, taps and channels last, and returns
// these.
func (p *windowed) layUnfolded(g *ir.Graph) (made []*ir.Value) {
	channel, taps := p.input.channels(), p.taps()
	columns := channel
	if whole := roundedUp(channel.Extent, p.align(), g.Facts()); !ir.SameSize(whole, channel.Extent) {
		columns = g.NewRange(channel.Name, whole)
	}
	var places []*ir.Range
	for _, a := range p.v.Axes {
		if ir.DependsOn(p.input.load, a) {
			places = append(places, a)
		}
	}
	weight := p.layWeight(g, taps, columns)
	if weight != nil {
		made = append(made, weight.From)
	} else {
		weight = p.weight
	}
	input := p.lay(g, "input", p.input.load, slices.Concat(places, taps, []*ir.Range{channel}), columns)
	body := p.v.Body
	p.v.Body = ir.Apply(ir.OpMul, ir.Cast(weight, body.Args[0].Type), ir.Cast(input, body.Args[1].Type)).At(body.Span)
	r := *p.v.Reduce
	r.Ranges = append(slices.Clone(taps), columns)
	p.v.Reduce = &r
	return append(made, input.From)
}

// besideWindows reports whether a load is of weights that were laid out beside windows that were written out.
func besideWindows(load *ir.Expr, reader *ir.Value) bool {
	factors := loadsMultiplied(reader)
	return factors != nil && slices.ContainsFunc(factors, func(other *ir.Expr) bool {
		return other.From != load.From && !other.From.IsInput() && other.From.Reduce == nil && holdsWindows(other, reader)
	})
}

// holdsWindows reports whether a load is of a value that holds windows that overlap or leave elements out, which its reader
// multiplies: substituted there it would be windows again.
func holdsWindows(load *ir.Expr, reader *ir.Value) bool {
	loads := ir.Loads(load.From.Body)
	if loadsMultiplied(reader) == nil || len(loads) != 1 || load.Fill != nil ||
		slices.ContainsFunc(load.Args, func(at *ir.Expr) bool { return at.Op != ir.OpRange && !at.IsConst(0) }) {
		return false
	}
	axes := load.From.Axes
	return slices.ContainsFunc(loads[0].Args, func(at *ir.Expr) bool {
		free := ir.FreeRanges(at)
		if len(free) != 2 {
			return false
		}
		var along []*ir.Range
		for _, a := range axes {
			if free[a] {
				along = append(along, a)
			}
		}
		if len(along) != 2 || along[1].Extent.Op != ir.OpConst {
			return false
		}
		stride, ok := constantStride(at, along[0])
		step, fine := constantStride(at, along[1])
		return ok && fine && stride != step*along[1].Extent.Int // else it is a reshape
	})
}
