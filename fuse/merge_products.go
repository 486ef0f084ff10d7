package fuse

import (
	"math"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// fillsDevice refuses to put two products into one kernel whose tiles would leave the device idle for longer than a kernel
// saves.
func (m *merging) fillsDevice() *form.Refusal {
	product := m.product(m.wholeA)
	if product == nil || m.product(m.wholeB) == nil || m.al.streams != nil || m.leavesIdle(product) <= m.saving(m.wholeA, m.wholeB) {
		return nil
	}
	return form.Refuse(ir.ReasonNoGain, product.Origin.Span,
		"both products in one kernel have too few tiles for the device; alone, each divides its sums among more blocks")
}

// Figures of products that share a kernel.
const (
	columnSeconds = 4.5e-9 // about how long a multiprocessor takes to multiply a column of a tile of 128 x 128
	idleTile      = 128    // rows of a tile, and its columns of both products together
	wholeColumns  = 1024   // columns that one block adds up in any case
)

// leavesIdle is about how many seconds longer two products take in one kernel than apart, at the program's usual sizes: each
// tile is then one block's, and its sum is not divided among blocks (split-K).
func (p *program) leavesIdle(v *ir.Value) float64 {
	sizes, last := p.sizes, len(v.Axes)-1
	tiles := math.Ceil(algebra.Estimate(v.Axes[last].Extent, sizes) / (idleTile / 2))
	for d, a := range v.Axes[:last] {
		n := algebra.Estimate(a.Extent, sizes)
		if d == last-1 {
			n = math.Ceil(n / idleTile)
		}
		tiles *= n
	}
	idle := 1 - min(1, tiles/float64(p.device.SMs))
	return idle * columnSeconds * max(0, algebra.PointsAt(v.Reduce.Ranges, sizes)-wholeColumns)
}
