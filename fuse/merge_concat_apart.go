package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Parts of a concatenation that no other kernel computes, such as the sines and cosines of an encoding, may be computed in two ways. One
// kernel chooses one of them at each element, and the threads of a warp compute all that any of them chooses. Or a kernel has a point for each element of a part, and stores one element
// of each part there: that is less work, but threads then store short runs of memory.

// savedApart estimates the seconds that the second way saves, for parts of one shape: none where it takes longer. Parts of several shapes
// would be several kernels.
func (p *program) savedApart(together *ir.Value, parts []*ir.Value, axis int) float64 {
	shape := parts[0].Axes[axis].Extent
	if p.g.OneKernel || slices.ContainsFunc(parts, func(part *ir.Value) bool { return !ir.SameSize(part.Axes[axis].Extent, shape) }) {
		return 0
	}
	const lanes = 32
	chosen := min(1, (lanes/algebra.PointsAt(parts[0].Axes[axis:], p.sizes)+1)/float64(len(parts)))
	return p.timeOf([]*ir.Value{together}, 0, chosen) - p.timeOf(parts, axis, 1)
}

// timeOf estimates the seconds of a kernel that computes values of one shape, or a share of their expressions, and stores runs of them that
// begin at an axis.
func (p *program) timeOf(values []*ir.Value, axis int, share float64) float64 {
	const perSlot = 2 // operations of a device's rate
	var bytes, slots, special float64
	read := map[*ir.Value]bool{}
	for _, v := range values {
		points, computed := algebra.PointsAt(v.Axes, p.sizes), form.CostOf(v.Body)
		slots += points * float64(arithmeticSlots(v.Body))
		special += points * float64(computed.Special)
		bytes += p.sectorBytes(v, axis)
		for _, l := range v.Loads() {
			if !read[l.From] {
				bytes += min(points*float64(l.Type.Size()), algebra.BytesAt(l.From, p.sizes))
			}
			read[l.From] = true
		}
	}
	return p.device.Time(bytes, share*perSlot*slots, share*special)
}

// arithmeticSlots is the slots of all parts that an expression chooses from. What reads elements and chooses among these is left out.
func arithmeticSlots(e *ir.Expr) (slots int) {
	ir.Walk(e, func(e *ir.Expr) bool {
		if e.Type != ir.Index && e.Type != ir.Bool && e.Op != ir.OpLoad && e.Op != ir.OpSelect {
			slots += form.OwnSlots(e)
		}
		return e.Op != ir.OpLoad
	})
	return slots
}

// sectorBytes is the bytes of the sectors in which runs of memory from an axis on lie.
func (p *program) sectorBytes(v *ir.Value, axis int) float64 {
	runs := algebra.PointsAt(v.Axes[:axis], p.sizes)
	return algebra.BytesAt(v, p.sizes) + runs*float64(forecast.SectorBytes-v.Type.Size())
}
