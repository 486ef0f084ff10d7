package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// Turned rows. A kernel may read tensors that are contiguous along its rows, and store one that is contiguous along
// its columns, or the reverse. A norm over channels whose result has the channels last is an example. Whether
// neighbouring threads take rows or columns, one of the two accesses touches a line for each element. So a block takes
// some neighbouring rows, and what is contiguous along the rows passes through shared memory, where it is transposed.

// turnCandidate is the threads on a row, the vectors that each of them keeps, the single elements that it keeps if a
// row is no whole number of vectors, and the rows of a block.
type turnCandidate struct{ threads, items, elements, rows int }

// turnCandidates are in order of length. 32 rows of 16-bit elements are 64 bytes of each column, the least that
// memory moves at a time. With 16 rows, neighbouring blocks share these bytes through the L2 cache.
var turnCandidates = []turnCandidate{{8, 2, 0, 32}, {8, 4, 16, 32}, {16, 4, 16, 32}, {16, 8, 32, 32}, {32, 8, 32, 16}}

// turnLeast is the least columns for which turned rows pay. With fewer, neighbouring rows are so close in
// memory that the stores of a warp share lines in the cache.
const turnLeast = 16

// turnVariants are the variants of a kernel with turned rows; none if nothing has to be turned, or if it does not
// pay. Of the variants for one length, those come first that access memory in vectors along the rows.
func (lo rowKernel) turnVariants() (out []*ir.Variant) {
	if !lo.mayTurn() {
		return nil
	}
	sections, length := lo.passes(false), algebra.Product(lo.k.Cols)
	row := along{sections: sections, lane: algebra.Innermost(lo.k.Cols), vector: lo.vector()}
	reach := map[bool]int{} // longest rows so far: of vectors, and of single elements
	for _, c := range turnCandidates {
		for _, wide := range []bool{true, false} { // along the rows
			for _, v := range lo.turned(c, row, length, wide) {
				longest, single := atOnce(v.Schedule), v.Schedule.Vector == 1
				if n := length; n.Op == ir.OpConst && n.Int <= int64(reach[single]) {
					continue
				}
				out = append(out, v)
				if !wide {
					reach[single] = longest
				}
			}
		}
	}
	slices.SortStableFunc(out, func(a, b *ir.Variant) int { // single elements after all vectors
		return min(b.Schedule.Vector, 2) - min(a.Schedule.Vector, 2)
	})
	return out
}

// mayTurn reports whether the threads of a block may share what its rows read and store.
func (lo rowKernel) mayTurn() bool {
	k := lo.k
	return len(k.Rows) > 0 && len(k.Cols) > 0 && !lo.hasScan() && !lo.paired && !lo.unit && len(k.Accumulated) == 0 && len(lo.parts) == 0 && lo.taps == nil
}

// turned are the variants of a candidate.
func (lo rowKernel) turned(c turnCandidate, row along, length *ir.Expr, wide bool) []*ir.Variant {
	variants := lo.aligned(row, true, func(vector int) (ir.Schedule, *ir.Expr) {
		s := ir.Schedule{Mapping: ir.RowMapping, Threads: c.threads * c.rows, RowThreads: c.threads, Vector: vector, Items: c.items, TileM: c.rows}
		if vector == 1 {
			s.Items = c.elements
		}
		s.MinBlocks = residentThreads / s.Threads
		return s, algebra.And(ir.Apply(ir.OpLe, ir.IntConst(turnLeast), length), ir.Apply(ir.OpLe, length, ir.IntConst(int64(atOnce(s)))))
	})
	return slices.DeleteFunc(variants, func(v *ir.Variant) bool {
		if v.Schedule.Items == 0 || !lo.turn(v, row.lane, wide) {
			return true
		}
		room := rowRegisters(v.Schedule.Threads) / float64(v.Schedule.Items*v.Schedule.Vector)
		if held(v) > room { // values are computed again from what is in shared memory
			v.Keep = slices.Clone(v.Staged)
		}
		return held(v) > room || ir.TurnedBytes(v) > min(lo.device.SharedBlock, turnedShared) ||
			ir.Decide(algebra.OrTrue(v.When), ir.Facts{}) == ir.False
	})
}

// held is the registers that a column of a row takes in a thread between passes. Other reads of a pass come from the
// cache, a vector at a time.
func held(v *ir.Variant) (registers float64) {
	for _, l := range v.Keep {
		registers += registersOf(l)
	}
	return registers
}

// turnedShared is the shared memory of a block for its tiles; two such blocks fit a multiprocessor.
const turnedShared = 100 << 10

// turn marks the reads and stores of a body that are contiguous along the rows, and keeps these reads in registers
// between passes. It reports whether there are any, and also equally large accesses along the columns. wide says
// whether a variant may require sizes to be multiples of a vector for the sake of the marked accesses.
func (lo rowKernel) turn(v *ir.Variant, lane *ir.Range, wide bool) bool {
	across, straight, turned := algebra.Innermost(lo.k.Rows), false, false
	// turns reports whether an access is contiguous along the rows. An access that does not vary with both rows and
	// columns is small, and does not count.
	turns := func(offset, guard *ir.Expr) bool {
		switch {
		case !ir.DependsOn(offset, across) || !ir.DependsOn(offset, lane):
			return false
		case algebra.UnitStrideOf(offset, lane):
			straight = true
			return false
		}
		return algebra.UnitStrideOf(offset, across) && !ir.Has(offset, ir.OpRead, ir.OpLocal) && !ir.Has(guard, ir.OpRead, ir.OpLocal)
	}
	vectors := func(offset *ir.Expr) bool { // none crosses the end of the row range, where the next row may be elsewhere in memory
		n := int64(v.Schedule.Vector)
		return lo.alignAlong(v, offset, across, wide) &&
			(ir.Multiple(across.Extent, n, lo.inside(ir.RowLevel)) || ir.Multiple(across.Extent, n, v.Facts))
	}
	for _, l := range v.Locals {
		if r := algebra.ReadIn(l.Def); r != nil && l.Level == ir.FullLevel && turns(r.Args[0], r.Guard) {
			l.Wide = (r.Guard == nil || !ir.DependsOn(r.Guard, across)) && vectors(r.Args[0])
			turned, v.Staged = true, append(v.Staged, l)
			if !slices.Contains(v.Keep, l) {
				v.Keep = append(v.Keep, l)
			}
		}
	}
	for _, sec := range v.Sections {
		for _, st := range sec.Stores {
			if sec.Level == ir.FullLevel && st.Guard == nil && turns(st.Offset, nil) {
				st.Wide = vectors(st.Offset)
				turned, st.Staged = true, true
			}
		}
	}
	v.Across = across
	return straight && turned
}
