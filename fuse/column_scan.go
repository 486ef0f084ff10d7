package fuse

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/ir"
)

// Figures of scans along columns that are not the neighbours in memory.
const (
	groupScanLanes     = 32 // neighbouring rows of a group of threads
	groupScanVector    = 4  // of them a thread has at most
	groupScanRegisters = 56 // of a thread, for its part of a tile

	pipelinedScanThreads = 64      // of a block, each with rows to itself
	pipelinedScanVector  = 4       // of them at most
	pipelinedScanColumns = 8       // of a stage
	pipelinedScanBytes   = 1 << 10 // on their way to a thread
	pipelinedScanStages  = 2       // at least
)

// A groupScan is the shape of a block whose threads scan tiles of columns together: the
// threads, the columns that one of them has in hand at most, how many columns a row has at
// least, and how many neighbouring rows there are at most: more keep memory busy by single
// threads. Tiles of short rows are no longer than those.
type groupScan struct{ threads, columns, least, rows int }

var groupScanShapes = []groupScan{{512, 8, 512, 16384}, {512, 4, 129, 8192}, {128, 4, 0, 8192}}

// groupScans are the variants of such a scan by groups of threads, which share rows and
// scan a tile of columns together: rows alone are too few threads to keep memory busy.
func (lo columnKernel) groupScans(sections []*ir.Section, lane *ir.Range) (out []*ir.Variant) {
	if !lo.hasScan() || lane == nil {
		return nil
	}
	words := lo.rowWords(sections)
	rows, columns := algebra.Product(lo.k.Rows), algebra.Product(lo.k.Cols)
	for _, g := range groupScanShapes {
		few := ir.Apply(ir.OpLe, rows, ir.IntConst(int64(g.rows)))
		out = append(out, lo.aligned(along{sections, lane, min(groupScanVector, lo.vector())}, false, func(vector int) (ir.Schedule, *ir.Expr) {
			s := ir.Schedule{Mapping: ir.FlatMapping, Threads: g.threads, Vector: vector, Unroll: g.columns, MinBlocks: 1}
			s.ColThreads = s.Threads * vector / groupScanLanes
			for s.Unroll > 1 && words*float64(s.Unroll*vector) > groupScanRegisters {
				s.Unroll /= 2
			}
			return s, algebra.And(ir.Apply(ir.OpLe, ir.IntConst(int64(g.least)), columns), few)
		})...)
	}
	return out
}

// pipelinedScans are the variants of such a scan by threads that have rows to themselves, and
// many columns of them on their way to shared memory: none where the device has no such
// copies, or something else is read for each column.
func (lo columnKernel) pipelinedScans(sections []*ir.Section, lane *ir.Range) []*ir.Variant {
	if !lo.hasScan() || lane == nil || !lo.device.AsyncCopies() {
		return nil
	}
	variants := lo.aligned(along{sections, lane, min(pipelinedScanVector, lo.vector())}, false, func(vector int) (ir.Schedule, *ir.Expr) {
		return ir.Schedule{Mapping: ir.FlatMapping, Threads: pipelinedScanThreads, Vector: vector, Unroll: pipelinedScanColumns}, nil
	})
	var out []*ir.Variant
	for _, v := range variants {
		staged, bytes := lo.prefetchable(v)
		if bytes == 0 {
			continue
		}
		v.Staged, v.Schedule.Stages = staged, max(pipelinedScanStages, pipelinedScanBytes/(pipelinedScanColumns*bytes))
		out = append(out, v)
	}
	return out
}

// prefetchable is the reads of each column, and the bytes of a thread's in one: 0 where one
// of them is not a vector of as many bytes as a copy has, from a place that is known.
func (lo columnKernel) prefetchable(v *ir.Variant) (staged []*ir.Local, bytes int) {
	for _, l := range v.Locals {
		r := algebra.ReadIn(l.Def)
		if l.Level != ir.FullLevel || r == nil {
			if l.Level == ir.FullLevel && algebra.ReadsMemory(l.Def) {
				return nil, 0
			}
			continue
		}
		size := v.Schedule.Vector * r.Type.Size()
		if !l.Wide || r.Guard != nil || algebra.ReadsMemory(r.Args[0]) || ir.Has(r.Args[0], ir.OpLocal) || size%4 != 0 || size > forecast.AccessBytes {
			return nil, 0
		}
		staged = append(staged, l)
		bytes += size
	}
	return staged, bytes
}
