package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// stagedBytes is the shared memory of a block for its rows; several such blocks fit on a multiprocessor.
const stagedBytes = 32 << 10

// stageRows marks the reads and stores that go through shared memory, in bodies whose rows share warps. Without
// it, each access of a warp would touch a few bytes at as many places as the warp has rows. But the rows of a
// block are neighbours in memory, so they can be copied together in whole, aligned vectors, whatever the length
// of a row. It does not help where several threads read a row in vectors. Nor does it where one thread has few
// elements or stores none, because its next reads are then in the cache.
func (lo rowKernel) stageRows(v *ir.Variant) {
	s := v.Schedule
	if s.RowThreads >= warpThreads || s.RowThreads > 1 && s.Vector > 1 || s.RowThreads == 1 && (atOnce(s) <= lo.vector() || !storesWide(v)) {
		return
	}
	room := stagedBytes
	fits := func(offset, guard *ir.Expr, t ir.DType) bool {
		bytes := s.Threads * s.Items * s.Vector * t.Size()
		if guard != nil || bytes > room || !lo.inOrder(offset) {
			return false
		}
		room -= bytes
		return true
	}
	for _, l := range v.Locals {
		if r := algebra.ReadIn(l.Def); r != nil && l.Wide && !lo.replaces(r.Arg) && fits(r.Args[0], r.Guard, r.Type) {
			v.Staged = append(v.Staged, l)
		}
	}
	for _, sec := range v.Sections {
		for _, st := range sec.Stores {
			st.Staged = st.Wide && fits(st.Offset, st.Guard, st.Arg.Type)
		}
	}
}

// inOrder reports whether an offset is the position among rows and columns: the tensor is read from its beginning,
// in the order of memory.
func (lo rowKernel) inOrder(offset *ir.Expr) bool {
	ranges := slices.Concat(lo.k.Rows, lo.k.Cols)
	if ir.Has(offset, ir.OpLocal) || ir.Contiguous(offset, ranges, ir.Facts{Positive: true}) < len(ranges) {
		return false
	}
	at := ir.Simplify(ir.AtZero(offset, ranges...), lo.facts)
	return at.Op == ir.OpConst && at.Int == 0
}
