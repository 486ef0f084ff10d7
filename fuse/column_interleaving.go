package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// interleavingVariants makes the variants of a pointwise kernel whose results alternate along a short innermost range, where
// what it reads runs along the range around it: the planes of colours that become pixels, or the gradients of a convolution's
// taps that go to where its weights have them. A block has some points of the outer range and all of the inner one. It reads
// along the outer range, and stores what lies side by side; none for other kernels.
func (lo columnKernel) interleavingVariants(sections []*ir.Section, lane *ir.Range, vector int) []*ir.Variant {
	n := len(lo.k.Rows)
	if len(lo.k.Cols) > 0 || n < 2 || len(lo.parts) > 0 || lo.gathers() ||
		lane.Extent.Op != ir.OpConst || lane.Extent.Int < 2 || lane.Extent.Int > interleavedMost {
		return nil
	}
	own := &interleaving{columnKernel: lo, lane: lane, along: lo.k.Rows[n-2]}
	var out []*ir.Variant
	for _, c := range []struct {
		vector int
		assume bool
	}{{vector, true}, {vector, false}, {1, false}} {
		v := own.variant(sections, c.vector, c.assume)
		if v != nil && !slices.ContainsFunc(out, func(o *ir.Variant) bool { return ir.Equal(o.When, v.When) }) {
			out = append(out, v)
		}
	}
	return out
}

// interleaving is a kernel some of whose reads run along one range, and all of whose stores go through the points of that range
// with those of the lane between them.
type interleaving struct {
	columnKernel
	lane, along *ir.Range
}

// variant is the variant that stores vectors; nil where the kernel has no such reads or stores. Blocks begin at whole vectors if
// the points of both ranges together are a whole number of vectors. assume says whether sizes may be required to be multiples of
// a vector, so that reads are vectors too.
func (lo *interleaving) variant(sections []*ir.Section, vector int, assume bool) *ir.Variant {
	b := newBody(lo.kernel)
	v := &ir.Variant{Sections: b.sections(sections), Locals: b.locals,
		Schedule: ir.Schedule{Mapping: ir.InterleavingMapping, Threads: interleavedThreads, Vector: vector, TileM: int(lo.lane.Extent.Int)}}
	v.When = ir.Apply(ir.OpLe, ir.IntConst(tileLeast), lo.along.Extent)
	both := ir.Apply(ir.OpMul, lo.along.Extent, lo.lane.Extent)
	if len(lo.k.Rows) > 2 && !ir.Multiple(both, int64(vector), lo.positive()) {
		v.Facts = algebra.Assuming(ir.Facts{}, algebra.MultiplesIn(int64(vector), lo.along.Extent))
		v.When = algebra.And(v.When, algebra.Divisible(v.Facts))
		if !ir.Multiple(both, int64(vector), v.Facts) {
			return nil
		}
	}
	for _, s := range v.Sections {
		for _, st := range s.Stores {
			if !lo.runsFlattened(st.Guard, st.Offset, vector) {
				return nil
			}
			st.Wide = true
		}
	}
	if !lo.stage(v, assume) || ir.Decide(v.When, ir.Facts{}) == ir.False {
		return nil
	}
	return v
}

// stage marks the reads that a block brings along the outer range, and sets how many points it has. It returns false where there
// are none, or where other reads are far apart.
func (lo *interleaving) stage(v *ir.Variant, assume bool) bool {
	bytes, cost := 0, 0
	for _, l := range v.Locals {
		r := algebra.ReadIn(l.Def)
		if r == nil {
			continue
		}
		if l.Wide = lo.runsFlattened(r.Guard, r.Args[0], v.Schedule.Vector); l.Wide || lo.smallArg(r.Arg) {
			continue
		}
		if r.Guard != nil || ir.Has(r.Args[0], ir.OpRead, ir.OpLocal) || !algebra.UnitStride(r, lo.along) {
			cost += lo.nearCost(r.Args[0], lo.lane)
			continue
		}
		bytes += r.Type.Size()
		l.Wide = lo.alignAlong(v, r.Args[0], lo.along, assume)
		v.Staged = append(v.Staged, l)
	}
	if len(v.Staged) == 0 || cost > mostNear {
		return false
	}
	v.Across = lo.along
	return lo.runs(v, lo.along, bytes)
}
