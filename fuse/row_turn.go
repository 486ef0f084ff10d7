package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// Rows that are turned. Where a kernel reads along its rows and stores along its columns, as a norm over channels does
// whose result has the channels last, one of the two goes across the lines of memory whichever way threads lie. So a
// block takes some neighbouring rows, and what runs along these passes through shared memory, where it is turned.

// turnCandidate is threads on a row, vectors that each of them keeps, single elements where a row is no whole number of
// vectors, and rows of a block.
type turnCandidate struct{ threads, items, elements, rows int }

// turnCandidates are in order of length. 32 rows of 16-bit elements are 64 bytes of each column, which is what memory
// moves at least; with 16, neighbouring blocks share them through the L2 cache.
var turnCandidates = []turnCandidate{{8, 2, 0, 32}, {8, 4, 16, 32}, {16, 4, 16, 32}, {16, 8, 32, 32}, {32, 8, 32, 16}}

// turnLeast is the columns from which turned rows pay. With fewer, the places of neighbouring rows lie so close
// together that a thread's stores meet in the cache.
const turnLeast = 16

// turnVariants are the variants of a kernel with turned rows; none where nothing is to be turned, or nothing is to be
// gained. Of those for one length, what is read and stored in vectors along the rows comes first.
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
		if v.Schedule.Items == 0 || v.Schedule.TileM < v.Schedule.Vector || !lo.turn(v, row.lane, wide) {
			return true
		}
		room := rowRegisters(v.Schedule.Threads) / float64(v.Schedule.Items*v.Schedule.Vector)
		if held(v) > room { // values are computed again of what is in shared memory
			v.Keep = slices.Clone(v.Staged)
		}
		return held(v) > room || ir.TurnedBytes(v) > min(lo.device.SharedBlock, turnedShared) ||
			ir.Decide(algebra.OrTrue(v.When), ir.Facts{}) == ir.False
	})
}

// held is the registers that a column of a row takes in a thread between passes. What else a pass reads comes from the
// cache, a vector at a time.
func held(v *ir.Variant) (registers float64) {
	for _, l := range v.Keep {
		registers += registersOf(l)
	}
	return registers
}

// turnedShared is the shared memory of a block for its tiles: two blocks have room on a multiprocessor.
const turnedShared = 100 << 10

// turn marks the reads and stores of a body that run along the rows, and keeps the reads in registers between passes. It
// reports whether there are any, beside others as large that run along the columns. wide is whether the sizes may be
// asked to be multiples of a vector for the sake of these.
func (lo rowKernel) turn(v *ir.Variant, lane *ir.Range, wide bool) bool {
	across, straight, turned := algebra.Innermost(lo.k.Rows), false, false
	// turns reports whether an access runs along the rows; those that do not vary with rows and columns both are small.
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
	for _, l := range v.Locals {
		if r := algebra.ReadIn(l.Def); r != nil && l.Level == ir.FullLevel && turns(r.Args[0], r.Guard) {
			l.Wide = (r.Guard == nil || !ir.DependsOn(r.Guard, across)) && lo.alignAlong(v, r.Args[0], across, wide)
			turned, v.Staged = true, append(v.Staged, l)
			if !slices.Contains(v.Keep, l) {
				v.Keep = append(v.Keep, l)
			}
		}
	}
	for _, sec := range v.Sections {
		for _, st := range sec.Stores {
			if sec.Level == ir.FullLevel && st.Guard == nil && turns(st.Offset, nil) {
				st.Wide = lo.alignAlong(v, st.Offset, across, wide)
				turned, st.Staged = true, true
			}
		}
	}
	v.Across = across
	return straight && turned
}
