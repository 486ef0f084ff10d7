package fuse

import (
	"math"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/ir"
)

// Slabs (ir.Schedule.LookBack). Where the columns of a reduction lie between ranges of its rows, those
// of a slab, of all ranges of rows but the innermost, are in one piece of memory, and blocks of
// one round of reads take them in the order of memory. There have to be many, so that the last
// results, for which blocks wait, are few; measured, that is so at the sizes below.

const (
	slabBlocks   = 3 * forecast.SplitBlocks // blocks from which they are worth it,
	slabMost     = forecast.FullDevice      // as many of a slab as are there at once, or fewer,
	slabParts    = 4                        // and in so many parts: each posts what it has folded
	slabLookBack = 384                      // blocks behind a slab's that have its results: more than are there at once
)

// slabVariants are those for sizes of many slabs. They are for light work: threads that have more
// to hold are slower than those that have all columns of their rows.
func (lo columnKernel) slabVariants(sections []*ir.Section, lane *ir.Range, vector int, words float64) []*ir.Variant {
	if !lo.looksBack(sections) || len(lo.k.Rows) < 2 || stateWords(sections) > 1 || words > 1 || lo.foldWork() > chainWork || !lo.between() {
		return nil
	}
	schedule := func(vector int) ir.Schedule {
		s := ir.Schedule{Mapping: ir.FlatMapping, Vector: vector}
		lo.chain(&s, sections, words)
		if s.Threads == forecast.ChainThreads { // fewer threads, with more to do, find their place
			s = halved(s)
		}
		s.Chain, s.LookBack = 0, slabLookBack
		return s
	}
	when := lo.manySlabs(schedule(vector), lane) // the same for rows that are not aligned
	return lo.aligned(along{sections: sections, lane: lane, vector: vector}, false, func(vector int) (ir.Schedule, *ir.Expr) { return schedule(vector), when })
}

// manySlabs is the condition under which a schedule has slabs, and parts, enough.
func (lo columnKernel) manySlabs(s ir.Schedule, lane *ir.Range) *ir.Expr {
	slabs := algebra.Product(lo.k.Rows[:len(lo.k.Rows)-1])
	parts := algebra.CeilDiv(algebra.Product(lo.k.Cols), int64(s.ColThreads*s.Unroll))
	slab := ir.Apply(ir.OpMul, algebra.CeilDiv(lane.Extent, int64(s.Vector*s.Threads/s.ColThreads)), parts)
	return algebra.And(algebra.And(ir.Apply(ir.OpLe, ir.IntConst(slabParts), parts), ir.Apply(ir.OpLe, slab, ir.IntConst(slabMost))),
		ir.Apply(ir.OpLe, ir.IntConst(slabBlocks), ir.Apply(ir.OpMul, slabs, slab)))
}

// between reports whether the columns of all reads of a pass lie between the innermost range of
// the rows and the others, at the default sizes.
func (lo columnKernel) between() bool {
	found, all := false, true
	for _, root := range lo.roots() {
		ir.Walk(*root.expr, func(e *ir.Expr) bool {
			if e.Op != ir.OpRead || !algebra.DependsOnAny(e.Args[0], algebra.RangeSet(lo.k.Cols)) {
				return true
			}
			most, least := 0.0, math.Inf(1)
			for _, r := range lo.k.Cols {
				most = max(most, lo.strideAt(e.Args[0], r))
			}
			for _, r := range lo.k.Rows[:len(lo.k.Rows)-1] {
				least = min(least, lo.strideAt(e.Args[0], r))
			}
			found, all = true, all && most < least
			return true
		})
	}
	return found && all
}

// strideAt is how far apart elements for neighbours of a range are, at the default sizes; without
// bound where that differs from one to the next.
func (lo columnKernel) strideAt(offset *ir.Expr, r *ir.Range) float64 {
	stride, ok := ir.Stride(offset, r, ir.Facts{Positive: true})
	if !ok {
		return math.Inf(1)
	}
	return lo.estimate(stride)
}
