package fuse

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/ir"
)

// accumulateCandidates are the shapes of blocks that accumulate over rows of any length: threads of a
// block, threads on one row, and vectors that each of them has of a row.
var accumulateCandidates = []struct{ threads, rowThreads, items int }{
	{256, 32, 1}, {256, 32, 2}, {128, 128, 1}, {128, 128, 2}, {256, 256, 2}, {512, 512, 2}, {512, 512, 4}, {1024, 1024, 2},
}

// accumulateVariants are the variants of row-chunk accumulation: the same threads go through all rows of a chunk, and
// keep the running values of their columns in registers while there is room, else in memory.
func (lo rowKernel) accumulateVariants() []*ir.Variant {
	var out []*ir.Variant
	persistent, looped := lo.passes(false), lo.passes(true)
	length, lane, vector := algebra.Product(lo.k.Cols), algebra.Innermost(lo.k.Cols), lo.vector()
	need := lo.rowWords(persistent) + float64(len(lo.partial))
	reach := 0
	for _, r := range accumulateCandidates {
		columns := func(vector int) int { return r.rowThreads * r.items * vector }
		if columns(vector) <= reach || need*float64(r.items*vector) > float64(min(forecast.RegistersSM/r.threads, mostRegisters)-accumulateRegisters) {
			continue
		}
		reach = columns(vector)
		out = append(out, lo.aligned(along{sections: persistent, lane: lane, vector: vector}, true, func(vector int) (ir.Schedule, *ir.Expr) {
			s := ir.Schedule{Mapping: ir.RowMapping, Threads: r.threads, RowThreads: r.rowThreads, Vector: vector, Items: r.items, MinBlocks: 1}
			return s, ir.Apply(ir.OpLe, length, ir.IntConst(int64(columns(vector))))
		})...)
	}
	for _, v := range out {
		lo.accumulatePipelined(v)
	}
	return append(out, lo.aligned(along{sections: looped, lane: lane, vector: vector}, false, func(vector int) (ir.Schedule, *ir.Expr) {
		s := lo.looped(looped, accumulateThreads, vector)
		s.MinBlocks = 1
		return s, nil
	})...)
}

// accumulatePipelined makes the next rows of a chunk be prefetched to shared memory while one row is worked on. It
// needs a device with such copies, and a block that works on one row at a time. It applies to reads that depend on
// the row, are contiguous in whole vectors, and are needed by the first pass.
func (lo rowKernel) accumulatePipelined(v *ir.Variant) {
	s := &v.Schedule
	if !lo.device.Clusters() || len(lo.k.Accumulated) > 1 || s.RowThreads < s.Threads || s.RowThreads == 32 {
		return
	}
	accumulated := map[*ir.Range]bool{lo.k.Accumulated[0]: true}
	first := needed(v.Sections[0], nil, map[*ir.Local]bool{})
	var staged []*ir.Local
	stage := 0
	for _, l := range v.Locals {
		if first[l] && lo.run(l, s.Vector) == len(lo.k.Cols) && algebra.DependsOnAny(algebra.ReadIn(l.Def).Args[0], accumulated) {
			staged = append(staged, l)
			stage += s.Threads * s.Items * s.Vector * algebra.ReadIn(l.Def).Type.Size()
		}
	}
	if len(staged) == 0 {
		return
	}
	room := (lo.device.SharedBlock - accumulateShared) * min(s.Threads, accumulateThreads) / accumulateThreads
	if stages := min(accumulateStages, room/stage); stages > 1 {
		s.Stages, v.Staged = stages, staged
	}
}

// Figures of accumulation over rows.
const (
	accumulateRegisters = 40   // of a thread, for addresses, indices and temporaries
	accumulateStages    = 3    // rows of a chunk in shared memory at most
	accumulateThreads   = 512  // of a block that has a multiprocessor, and its shared memory, to itself
	accumulateShared    = 2048 // bytes of shared memory that are not for rows
	mostRegisters       = 255
)
