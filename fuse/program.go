package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// program is what planning knows about a graph and a device. It is the same for all regions and kernels,
// and does not change once the graph's values are known.
type program struct {
	g       *ir.Graph
	device  ir.Device
	facts   ir.Facts                 // the graph's
	sizes   map[string]int64         // default sizes, at which amounts are compared
	weights map[*ir.Value]float64    // bytes of values at these sizes, computed when first needed
	loads   map[*ir.Value][]*ir.Expr // loads of each value
	bounds  map[*ir.Value][]*bounded // bounds of the masks of streams, by the maximum whose body holds the mask
	parts   map[*ir.Value]concatPart // the values that are stored as parts of others
	updates map[*ir.Value]*ir.Value  // next values of states, and the inputs that hold the present ones
	checks  map[*ir.Value]bool       // values that are needed for checks only
	only    *ir.Expr                 // bounds of the sizes at which the plan runs; nil for none
}

func newProgram(g *ir.Graph, device ir.Device) *program {
	p := &program{g: g, device: device, facts: g.Facts(), sizes: algebra.DefaultSizes(g), weights: map[*ir.Value]float64{},
		loads: map[*ir.Value][]*ir.Expr{}, parts: map[*ir.Value]concatPart{}, updates: map[*ir.Value]*ir.Value{}}
	for _, o := range g.Outputs {
		if o.State != "" {
			p.updates[o.Value] = g.InputNamed(o.State)
		}
	}
	return p
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

// Every kernel has a variant for every size that its graph admits. A list of variants is made long, and
// then loses members: those that literal sizes rule out, those after one that takes all their sizes, and
// those that cannot do what a later step needs. The rest may not cover all sizes, so a step removes
// variants through without, and a kernel gets its variants through cover only; both check with ir.Covers.

// cover gives a kernel its variants, except those that never run. A kernel that is like another one has the
// variants of that.
func (p *program) cover(k *ir.Kernel, variants []*ir.Variant) {
	if k.Like == nil {
		variants = reachable(p.possible(variants))
	}
	if !ir.Covers(variants, p.facts) {
		panic("BUG: kernel " + k.Name + " has no variant for some sizes")
	}
	for _, v := range variants {
		v.Strategy = ir.StrategyOf(k, v.Schedule)
	}
	k.Variants = variants
}

// possible leaves out the variants that hold at no size at which the plan runs, and from the conditions of the
// others what holds at all of these sizes.
func (p *program) possible(variants []*ir.Variant) (out []*ir.Variant) {
	if p.only == nil {
		return variants
	}
	for _, v := range variants {
		if v.When != nil {
			when := ir.SimplifyGiven(v.When, p.only, p.facts)
			if when.IsConst(0) {
				continue
			}
			own := *v
			own.When = when
			if when.IsConst(1) {
				own.When = nil
			}
			v = &own
		}
		out = append(out, v)
	}
	return out
}

// reachable drops variants all of whose sizes another variant before them takes: for rows of constant
// length all but the first candidate that is long enough, and tiles through mma.sync whose sizes
// warpgroups take.
func reachable(in []*ir.Variant) (out []*ir.Variant) {
	for _, v := range in {
		taken := slices.ContainsFunc(out, func(first *ir.Variant) bool {
			return ir.Narrower(v.When, first.When)
		})
		if !taken {
			out = append(out, v)
		}
	}
	return out
}

// without returns the variants for which drop is false; nil where they do not cover all sizes.
func (p *program) without(variants []*ir.Variant, drop func(*ir.Variant) bool) []*ir.Variant {
	left := slices.DeleteFunc(slices.Clone(variants), drop)
	if !ir.Covers(left, p.facts) {
		return nil
	}
	return left
}

func holdsAt(when *ir.Expr, sizes map[string]int64) bool {
	if when == nil {
		return true
	}
	v, ok := ir.EvalSize(when, sizes)
	return ok && v != 0
}

// bounded is a part of a mask and its bounds.
type bounded struct {
	expr      *ir.Expr    // an integer or a bool, over the ranges of the value with the mask
	along     *ir.Range   // the one of these ranges that tiles divide
	others    []*ir.Range // other ranges that expr depends on: axes of the bounds, before the axis of the groups
	low, high *ir.Value   // the least and the greatest value in each group
}

// named returns the value of a name; nil where there is none.
func (p *program) named(name string) *ir.Value {
	for _, v := range p.g.Values {
		if v.Name == name {
			return v
		}
	}
	return nil
}

// concatPart says where a part is stored: in the memory of whole, from an index along an axis on.
type concatPart struct {
	whole *ir.Value
	axis  int
	from  *ir.Expr // over symbols
}

// partIndices are the indices of a value, those of a part in the memory of its whole.
func (p *program) partIndices(v *ir.Value, at []*ir.Expr) (whole *ir.Value, indices []*ir.Expr) {
	place, ok := p.parts[v]
	if !ok {
		return v, at
	}
	at = slices.Clone(at)
	at[place.axis] = ir.Apply(ir.OpAdd, at[place.axis], place.from)
	return place.whole, at
}
