package passes

import (
	"maps"

	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Kernels of products need a row and a column, and those of convolutions a place on each axis of an image. A point that is all that is read of
// such an axis is computed as one of a few.

// keepProduct leaves a sum of products the axes without which its kernel would be another. Products of inputs alone may be those of a matrix and
// a vector; others may belong to attention. Convolutions may be sums at one place of each image.
func (c *cropper) keepProduct(v *ir.Value, parts []*cropped) {
	m, n := form.Crossing(v)
	if m == nil {
		return
	}
	if c.readsComputed(v) {
		for _, sides := range [][2]map[*ir.Range]bool{{m, n}, {n, m}} {
			own := maps.Clone(sides[0])
			maps.DeleteFunc(own, func(r *ir.Range, _ bool) bool { return sides[1][r] })
			if last, all := c.points(v, parts, own); all {
				c.widen(v, last, parts)
			}
		}
	}
	places := c.places(v)
	if _, all := c.points(v, parts, places); !all {
		for d, r := range v.Axes {
			if places[r] && isPoint(parts[d]) {
				c.widen(v, d, parts)
			}
		}
	}
}

// readsComputed reports whether a value reads others than inputs.
func (c *cropper) readsComputed(v *ir.Value) bool {
	for _, l := range c.loads[v] {
		if !l.From.IsInput() {
			return true
		}
	}
	return false
}

// points reports whether of all of some axes single points are left, and which the last of these axes is.
func (c *cropper) points(v *ir.Value, parts []*cropped, axes map[*ir.Range]bool) (last int, all bool) {
	all = true
	for d, r := range v.Axes {
		if axes[r] {
			last, all = d, all && isPoint(parts[d])
		}
	}
	return last, all && len(axes) > 0
}

// isPoint reports whether a part is a point, for which no axis is left.
func isPoint(p *cropped) bool { return p != nil && p.own == nil }

// places are the axes along which a value reads windows: an index goes through the points of one, and through terms of the sum.
func (c *cropper) places(v *ir.Value) map[*ir.Range]bool {
	places := map[*ir.Range]bool{}
	for _, l := range c.loads[v] {
		for _, at := range l.Args {
			free := ir.FreeRanges(at)
			for _, term := range v.Reduce.Ranges {
				for _, r := range v.Axes {
					if free[r] && free[term] {
						places[r] = true
					}
				}
			}
		}
	}
	return places
}

// widen makes some points of one, those of a vector, or all of its axis where that is not much longer.
func (c *cropper) widen(v *ir.Value, d int, parts []*cropped) {
	p, extent := parts[d], v.Axes[d].Extent
	if parts[d] = nil; p.low.Op != ir.OpConst || extent.Op != ir.OpConst {
		return
	}
	if first, width := multipleOf(forecast.WidestVector, p.low, p.high, extent); c.isLess(width, extent) {
		parts[d] = &cropped{p.low, p.high, first, width, c.g.NewRange(v.Axes[d].Name, width)}
	}
}
