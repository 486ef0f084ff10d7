package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// stagedBytes is the shared memory of a block for its rows, of which several blocks are resident.
const stagedBytes = 32 << 10

// stageRows has what a body of rows that share warps reads and stores in the order of memory pass
// through shared memory. Each access of a warp would go to as many places as it has rows, for some
// bytes of each; but rows of a block are next to each other, and pass in whole vectors, aligned
// whatever the length of a row. Several threads with vectors are as fast without, and so is one that
// has few elements or stores none: what it reads next is in the cache.
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
		if r := algebra.ReadIn(l.Def); r != nil && l.Wide && fits(r.Args[0], r.Guard, r.Type) {
			v.Staged = append(v.Staged, l)
		}
	}
	for _, sec := range v.Sections {
		for _, st := range sec.Stores {
			st.Staged = st.Wide && fits(st.Offset, st.Guard, st.Arg.Type)
		}
	}
}

// storesWide reports whether a body stores columns.
func storesWide(v *ir.Variant) bool {
	return slices.ContainsFunc(v.Sections, func(sec *ir.Section) bool {
		return slices.ContainsFunc(sec.Stores, func(st *ir.Store) bool { return st.Wide })
	})
}

// inOrder reports whether an offset goes through rows and columns in the order of memory, from the
// beginning of the tensor.
func (lo rowKernel) inOrder(offset *ir.Expr) bool {
	ranges := slices.Concat(lo.k.Rows, lo.k.Cols)
	if ir.Has(offset, ir.OpLocal) || ir.Contiguous(offset, ranges, ir.Facts{Positive: true}) < len(ranges) {
		return false
	}
	first := map[*ir.Range]*ir.Expr{}
	for _, r := range ranges {
		first[r] = ir.IntConst(0)
	}
	at := ir.Simplify(ir.Substitute(offset, first), lo.facts)
	return at.Op == ir.OpConst && at.Int == 0
}
