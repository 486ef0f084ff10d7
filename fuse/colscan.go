package fuse

import "github.com/fusec/fusec/ir"

// Figures of scans along columns that are not the neighbours in memory.
const (
	groupScanThreads   = 512
	groupScanLanes     = 32    // neighbouring rows of a group of threads
	groupScanVector    = 4     // of them a thread has at most
	groupScanColumns   = 8     // a thread has in hand at most
	groupScanRegisters = 56    // of a thread, for its part of a tile
	groupScanLeast     = 512   // columns, a tile or more: fewer are left to single threads
	groupScanRows      = 65536 // bytes of neighbouring rows from which single threads keep memory busy
)

// groupScans are the variants of such a scan by groups of threads, which share rows and
// scan a tile of columns together: rows alone are too few threads to keep memory busy.
func (lo *lowering) groupScans(sections []*ir.Section, lane *ir.Range) []*ir.Variant {
	if !lo.hasScan() || lane == nil {
		return nil
	}
	words := lo.rowWords(sections)
	rows, columns := product(lo.k.Rows), product(lo.k.Cols)
	return lo.aligned(sections, lane, min(groupScanVector, lo.vector()), false, func(vector int) (ir.Schedule, *ir.Expr) {
		s := ir.Schedule{Mapping: ir.FlatMapping, Threads: groupScanThreads, Vector: vector,
			Unroll: groupScanColumns, MinBlocks: 1}
		s.ColThreads = s.Threads * vector / groupScanLanes
		for s.Unroll > 1 && words*float64(s.Unroll*vector) > groupScanRegisters {
			s.Unroll /= 2
		}
		least, few := ir.IntConst(groupScanLeast), ir.IntConst(int64(groupScanRows/lo.smallest()))
		return s, and(ir.Apply(ir.OpLe, least, columns), ir.Apply(ir.OpLe, rows, few))
	})
}
