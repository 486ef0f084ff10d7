package fuse

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/ir"
)

// Figures of scans along columns that are not the neighbours in memory.
const (
	groupScanLanes     = 32 // neighbouring rows that a group of threads has
	groupScanVector    = 4  // of these rows, at most, in one thread
	groupScanRegisters = 56 // of a thread, for its part of a tile

	pipelinedScanThreads = 64      // of a block, each with rows to itself
	pipelinedScanVector  = 4       // of them at most
	pipelinedScanColumns = 8       // of a stage
	pipelinedScanBytes   = 1 << 10 // that are being copied for a thread
	pipelinedScanStages  = 2       // at least
)

// A groupScan is the shape of a block whose threads scan tiles of columns together: its threads, the most columns
// that a thread has at a time, the fewest columns of a row that it is for, and the most neighbouring rows. With
// more rows than that, one thread for each row keeps memory busy. A tile is never longer than a row.
type groupScan struct{ threads, columns, least, rows int }

var groupScanShapes = []groupScan{{512, 8, 512, 16384}, {512, 4, 129, 8192}, {128, 4, 0, 8192}}

// groupScans are the variants in which groups of threads share rows and scan a tile of columns together, for sizes at
// which a thread for each row is not enough to keep memory busy.
func (lo columnKernel) groupScans(sections []*ir.Section, lane *ir.Range) (out []*ir.Variant) {
	if !lo.hasScan() || lane == nil {
		return nil
	}
	words := lo.rowWords(sections)
	rows, columns := algebra.Product(lo.k.Rows), algebra.Product(lo.k.Cols)
	for _, g := range groupScanShapes {
		few := ir.Apply(ir.OpLe, rows, ir.IntConst(int64(g.rows)))
		out = append(out, lo.aligned(along{sections: sections, lane: lane, vector: min(groupScanVector, lo.vector())}, false, func(vector int) (ir.Schedule, *ir.Expr) {
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

// pipelinedScans are the variants in which each thread scans its own rows, with many of their next columns being
// copied to shared memory. There are none where the device has no such copies, or where a column has a read that
// cannot be copied so.
func (lo columnKernel) pipelinedScans(sections []*ir.Section, lane *ir.Range) []*ir.Variant {
	if !lo.hasScan() || lane == nil || !lo.device.AsyncCopies() {
		return nil
	}
	variants := lo.aligned(along{sections: sections, lane: lane, vector: min(pipelinedScanVector, lo.vector())}, false, func(vector int) (ir.Schedule, *ir.Expr) {
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

// prefetchable lists the reads of each column, and the bytes of a thread's reads in one column. The bytes are 0 where
// a read is not a vector of a size that a copy may have, at an offset that is known beforehand.
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
