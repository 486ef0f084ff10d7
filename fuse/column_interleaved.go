package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// Figures of the interleaved mapping.
const (
	interleavedMost    = 31       // elements of a point at most; more are a side of a tile
	interleavedLanes   = 1024     // points of a block at most
	interleavedLeast   = 64       // points of a block at least
	interleavedSkew    = 4        // bytes of a point, of each tensor, that are left out at most: see codegen/skeleton/runs.cuh
	interleavedShared  = 16 << 10 // bytes of shared memory of a block, so that many blocks fit a multiprocessor
	interleavedThreads = 256
)

// interleavedVariants makes the variants of a pointwise kernel that reads a tensor whose elements for neighbouring lanes
// have those of a short range between them, as the taps of a convolution's weights or the colours of an image do where the
// result has each by itself; none for other kernels. Single reads of such elements would ask for a line of memory for a few
// lanes only, so a block copies the whole run of memory that its lanes cover to shared memory.
func (lo columnKernel) interleavedVariants(sections []*ir.Section, lane *ir.Range) []*ir.Variant {
	if len(lo.k.Cols) > 0 || len(lo.k.Rows) < 2 {
		return nil
	}
	for _, r := range lo.k.Rows[:len(lo.k.Rows)-1] {
		if r.Extent.Op != ir.OpConst || r.Extent.Int < 2 || r.Extent.Int > interleavedMost {
			continue
		}
		run := &interleaved{columnKernel: lo, lane: lane, across: r}
		run.joined = lo.g.NewRange(lane.Name, ir.Simplify(ir.Apply(ir.OpMul, lane.Extent, r.Extent), lo.facts))
		if out := run.variants(sections); len(out) > 0 {
			return out
		}
	}
	return nil
}

// interleaved is a kernel some of whose reads are contiguous over two ranges together: the elements of across lie next to
// each other, and behind them those of the next lane. joined is both ranges in one.
type interleaved struct {
	columnKernel
	lane, across, joined *ir.Range
}

// variants are those for sizes at which the runs of memory are copied in vectors, and those for all other sizes.
func (lo *interleaved) variants(sections []*ir.Section) []*ir.Variant {
	return wideFirst(func(assume bool) []*ir.Variant { return lo.reading(sections, assume) })
}

// reading makes the variants. assume says whether they may require sizes to be multiples of a vector, so that runs are
// copied in vectors.
func (lo *interleaved) reading(sections []*ir.Section, assume bool) (out []*ir.Variant) {
	each := int(lo.across.Extent.Int)
	variants := lo.aligned(along{sections: sections, lane: lo.lane, vector: lo.vector()}, false, func(vector int) (ir.Schedule, *ir.Expr) {
		return ir.Schedule{Mapping: ir.InterleavedMapping, Threads: interleavedThreads, Vector: vector, TileM: each},
			ir.Apply(ir.OpLe, ir.IntConst(tileLeast), lo.lane.Extent)
	})
	for _, v := range variants {
		if !lo.stage(v, assume) {
			return nil
		}
		if ir.Decide(algebra.OrTrue(v.When), ir.Facts{}) != ir.False {
			out = append(out, v)
		}
	}
	return out
}

// stage marks the reads whose run of memory a block copies, and sets the points and the threads of a block.
func (lo *interleaved) stage(v *ir.Variant, assume bool) bool {
	bytes := 0
	for _, l := range v.Locals {
		r := algebra.ReadIn(l.Def)
		if r == nil || r.Guard != nil || l.Wide || lo.variesThroughLocals(r.Args[0], lo.lane) || ir.Has(r.Args[0], ir.OpRead, ir.OpLocal) {
			continue
		}
		together := lo.together(r.Args[0])
		if !algebra.UnitStrideOf(together, lo.joined) {
			continue
		}
		bytes += r.Type.Size()
		l.Wide = lo.alignAlong(v, together, lo.joined, assume)
		v.Staged = append(v.Staged, l)
	}
	v.Across = lo.across
	return len(v.Staged) > 0 && lo.runs(v, lo.lane, bytes)
}

// runs sets how many points of a range a block has, each with so many bytes of all staged reads, and its threads. It returns
// false where the least number of points does not fit shared memory.
func (lo columnKernel) runs(v *ir.Variant, r *ir.Range, bytes int) bool {
	s := &v.Schedule
	point := s.TileM*bytes + interleavedSkew*len(v.Staged)
	s.TileN = interleavedLanes
	for s.TileN > interleavedLeast && (s.TileN*point > interleavedShared || r.Extent.Op == ir.OpConst && r.Extent.Int <= int64(s.TileN/2)) {
		s.TileN /= 2
	}
	for s.Threads > 64 && s.Threads*s.Vector > s.TileN*s.TileM {
		s.Threads /= 2
	}
	return s.TileN*point <= tileShared
}

// together writes an offset over both ranges in one.
func (lo *interleaved) together(offset *ir.Expr) *ir.Expr {
	facts := lo.inside(ir.FullLevel)
	facts.Within = append(slices.Clone(facts.Within), lo.joined)
	return ir.Simplify(ir.Substitute(offset, ir.Digits([]*ir.Range{lo.lane, lo.across}, lo.joined.At())), facts)
}
