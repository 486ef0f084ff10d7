package passes

import (
	"math"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/ir"
)

// Figures of sums over windows that are as long as planes, as gradients of weights are.
const (
	planeTaps    = 8       // least taps along an axis
	planeColumns = 1 << 14 // least points of a sum that is cut,
	planePart    = 1 << 11 // and of a part of it
	planeRows    = 64      // of a tile, of weights
	planePlaces  = 128     // and of places of the window
)

// splitWindowSums cuts long sums of windowed products with few results into partial ones, whose tiles then fill the device. The
// gradient of a convolution's weights has few tiles, each a sum over all places of all images. Axes of windows are cut, because
// the kernels of such products count the taps that a part has. It decides for the program's default sizes.
func splitWindowSums(g *ir.Graph) {
	if !mayAddKernels(g) {
		return
	}
	sizes := algebra.DefaultSizes(g)
	insertBefore(g, func(v *ir.Value) []*ir.Value {
		p := windowedProduct(v)
		if p == nil || p.isExact(g) {
			return nil
		}
		tap := p.longTap(sizes)
		if tap == nil {
			return nil
		}
		taps := algebra.Estimate(tap.Extent, sizes)
		parts := math.Min(p.parts(sizes), taps)
		if parts < 2 {
			return nil
		}
		reduce := *v.Reduce
		reduce.Ranges = append([]*ir.Range{tap}, slices.DeleteFunc(slices.Clone(reduce.Ranges), func(r *ir.Range) bool { return r == tap })...)
		v.Reduce = &reduce
		made := splitReduction(g, v, chunksOf(v, int64(math.Ceil(taps/parts))))
		part := made[0].Reduce
		if part.Where = ir.Simplify(part.Where, g.Facts()); part.Where != nil && part.Where.IsConst(1) {
			part.Where = nil // parts are whole: no taps are to be counted
		}
		return made
	})
}

// longTap is the first reduced range that is as long as a plane; nil where windows are short along every axis.
func (p *windowed) longTap(sizes map[string]int64) *ir.Range {
	for _, s := range p.input.spans {
		if s.tap != nil && slices.Contains(p.v.Reduce.Ranges, s.tap) && algebra.Estimate(s.tap.Extent, sizes) >= planeTaps {
			return s.tap
		}
	}
	return nil
}

// parts is into how many parts a sum is cut, so that each tile of each part has a multiprocessor.
func (p *windowed) parts(sizes map[string]int64) float64 {
	columns := algebra.PointsAt(p.v.Reduce.Ranges, sizes)
	if columns < planeColumns {
		return 1
	}
	own, both, places := algebra.PointsAt(p.own, sizes), algebra.PointsAt(p.both, sizes), 1.0
	for _, r := range p.v.Axes {
		if !slices.Contains(p.own, r) && !slices.Contains(p.both, r) {
			places *= inBoxes(algebra.Estimate(r.Extent, sizes))
		}
	}
	tiles := both * math.Ceil(own/planeRows) * math.Ceil(places/planePlaces)
	return math.Floor(math.Min(forecast.FullDevice/2/tiles, columns/planePart))
}

// inBoxes is the points of an axis in tiles, whose sides are powers of two: more than it has where it is short.
func inBoxes(points float64) float64 {
	const short = 16
	if points > short {
		return points
	}
	return math.Exp2(math.Ceil(math.Log2(max(points, 1))))
}
