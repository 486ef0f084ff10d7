package fuse

import (
	"math"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/ir"
)

// Slabs (ir.Schedule.LookBack). In memory, the columns of a reduction may lie between the outer ranges
// of its rows and the innermost one. All columns for one point of the outer ranges are then one piece
// of memory, a slab. Blocks take the slabs in the order of memory, a round of reads each, and post
// what they have folded. A block that comes later adds up the parts of a slab and computes its
// results. This pays if there are many slabs, because blocks wait for the parts of the last ones. The
// sizes below are measured.

const (
	slabBlocks   = 3 * forecast.SplitBlocks // fewest blocks in all
	slabMost     = forecast.FullDevice      // most blocks of a slab: as many as run at once
	slabParts    = 4                        // fewest parts of a slab's columns, each of which one block posts
	slabLookBack = 384                      // how many blocks later a slab's results are folded: more than run at once
)

// slabVariants are the variants for sizes with many slabs. They are for light work: if threads
// need more registers, it is faster to give each thread all columns of its rows.
func (lo columnKernel) slabVariants(sections []*ir.Section, lane *ir.Range, vector int, words float64) []*ir.Variant {
	if !lo.looksBack(sections) || len(lo.k.Rows) < 2 || stateWords(sections) > 1 || words > 1 || lo.foldWork() > chainWork || !lo.between() {
		return nil
	}
	schedule := func(vector int) ir.Schedule {
		s := ir.Schedule{Mapping: ir.FlatMapping, Vector: vector}
		lo.chain(&s, sections, words)
		if s.Threads == forecast.ChainThreads { // smaller blocks, with more work for a thread, find room sooner
			s = halved(s)
		}
		s.Chain, s.LookBack = 0, slabLookBack
		return s
	}
	when := lo.manySlabs(schedule(vector), lane) // the same condition for vectors and for single elements
	return lo.aligned(along{sections: sections, lane: lane, vector: vector}, false, func(vector int) (ir.Schedule, *ir.Expr) { return schedule(vector), when })
}

// manySlabs is the condition that the sizes give a schedule enough slabs and enough parts of
// each.
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

// strideAt is the stride of an offset along a range, at the default sizes; infinite if it is not
// the same everywhere.
func (lo columnKernel) strideAt(offset *ir.Expr, r *ir.Range) float64 {
	stride, ok := ir.Stride(offset, r, ir.Facts{Positive: true})
	if !ok {
		return math.Inf(1)
	}
	return lo.estimate(stride)
}
