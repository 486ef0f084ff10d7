package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// program is what planning knows of a graph and a device: the same for all regions and kernels, and not
// changed once the graph's values are known.
type program struct {
	g       *ir.Graph
	device  ir.Device
	facts   ir.Facts                 // the graph's
	sizes   map[string]int64         // that amounts are compared at
	weights map[*ir.Value]float64    // the bytes of values at these sizes, as they are asked for
	loads   map[*ir.Value][]*ir.Expr // of each value
	bounds  map[*ir.Value][]*bounded // of the masks of streams, by the maximum with the mask
}

func newProgram(g *ir.Graph, device ir.Device) *program {
	return &program{g: g, device: device, facts: g.Facts(), sizes: algebra.DefaultSizes(g),
		weights: map[*ir.Value]float64{}, loads: map[*ir.Value][]*ir.Expr{}}
}

// estimate evaluates a size at the graph's default sizes.
func (p *program) estimate(e *ir.Expr) float64 {
	if e == nil {
		return 0
	}
	return algebra.Estimate(e, p.sizes)
}

// bytes is the estimated size of a value in memory.
func (p *program) bytes(v *ir.Value) float64 {
	n, ok := p.weights[v]
	if !ok {
		n = algebra.BytesAt(v, p.sizes)
		p.weights[v] = n
	}
	return n
}

// Every kernel has a variant for every size that its graph admits. Lists of variants are made long, and
// then lose members: those that literal sizes rule out, those behind one that takes all their sizes,
// those that cannot do what a later step asks of them. What such a step leaves may be too little, so it
// prunes by without, and a kernel gets its variants from cover alone; both ask ir.Covers.

// cover gives a kernel its variants, but for those that never run.
func (p *program) cover(k *ir.Kernel, variants []*ir.Variant) {
	variants = reachable(variants)
	if !ir.Covers(variants, p.facts) {
		panic("BUG: kernel " + k.Name + " has no variant for some sizes")
	}
	for _, v := range variants {
		v.Strategy = ir.StrategyOf(k, v.Schedule)
	}
	k.Variants = variants
}

// without returns the variants that drop does not want; nil where these leave sizes without any.
func (p *program) without(variants []*ir.Variant, drop func(*ir.Variant) bool) []*ir.Variant {
	left := slices.DeleteFunc(slices.Clone(variants), drop)
	if !ir.Covers(left, p.facts) {
		return nil
	}
	return left
}

// bounded is a part of a mask and its bounds.
type bounded struct {
	expr      *ir.Expr    // an integer or a bool, over the ranges of the value with the mask
	along     *ir.Range   // of those ranges, the one that tiles cut
	others    []*ir.Range // that expr depends on: axes of the bounds, before that of the groups
	low, high *ir.Value   // the least and the greatest of each group
}
