package fuse

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/ir"
)

// Low occupancy: few rows leave most of the device idle, and the time of a kernel is the sum of
// the latencies of one row. Then each thread has as little of a row as the size of blocks allows, and the reads of
// later passes are issued at the beginning. Rows that are read once are read all at once.
const (
	lowOccupancyRows     = forecast.FullDevice // most rows in blocks of up to lowOccupancyWide threads; half as many in blocks of twice as many threads
	lowOccupancyWide     = 512
	lowOccupancyLongest  = 1024
	lowOccupancyElements = 8 // elements of a thread in blocks of up to lowOccupancyNarrow threads; in larger blocks a thread has one vector
	lowOccupancyNarrow   = 64
	lowOccupancyOnce     = 4 // vectors of a thread on a row that is read once: with more, blocks are too few
)

// lowOccupancyVariants are the variants for few rows: one body with other numbers. There are none where two kernels
// share a launch, since that fixes the rows of a block, none for products of one row, and none where later passes
// read nothing beside the persistent row. cached are the locals that these variants read: their tensors are so
// small that the L2 cache holds them.
func (lo rowKernel) lowOccupancyVariants(sections []*ir.Section, lane *ir.Range, vector int, length *ir.Expr) (out []*ir.Variant, cached []*ir.Local) {
	once := passesOf(sections) == 1
	if lo.paired || lo.unit || len(lo.k.Accumulated) > 0 {
		return nil, nil
	}
	scanned := once && lo.hasScan()
	if scanned && (vector == forecast.WidestVector || lo.scannedAtOnce(sections, vector) == 0) {
		return nil, nil // only useful if the variants for many rows use few warps
	}
	body := lo.aligned(along{sections: sections, lane: lane, vector: vector}, true, func(vector int) (ir.Schedule, *ir.Expr) {
		return ir.Schedule{Mapping: ir.RowMapping, Vector: vector, Items: 1}, nil
	})[0]
	if vector = body.Schedule.Vector; vector == 1 {
		return nil, nil
	}
	later := readLater(body)
	if len(later) == 0 && !once {
		return nil, nil
	}
	reach := 0
	for _, r := range lo.lowOccupancyCandidates(once, vector) {
		longest := r.threads * r.items * vector
		if longest <= reach {
			continue
		}
		reach = longest
		v := *body
		v.Schedule.Threads, v.Schedule.RowThreads, v.Schedule.Items = r.threads, r.threads, r.items
		v.Early = early(&v, later)
		if r.threads == 32 {
			v.Schedule.Threads = laneBlock
		}
		fits := ir.Apply(ir.OpLe, algebra.Product(lo.k.Rows), ir.IntConst(int64(min(lowOccupancyRows, lowOccupancyRows*lowOccupancyWide/r.threads))))
		v.When = algebra.And(algebra.And(ir.Apply(ir.OpLe, length, ir.IntConst(int64(longest))), fits), body.When)
		if scanned { // shorter rows are scanned by one warp
			v.When = algebra.And(ir.Apply(ir.OpLt, ir.IntConst(shortRow), length), v.When)
		}
		out = append(out, &v)
	}
	return out, body.Locals
}

// lowOccupancyCandidates are the candidates of few rows.
func (lo rowKernel) lowOccupancyCandidates(once bool, vector int) []rowCandidate {
	var out []rowCandidate
	if once && lo.hasScan() {
		return []rowCandidate{{threads: 256, items: forecast.PassUnroll}, {threads: 512, items: forecast.PassUnroll}}
	}
	if once { // short rows: one warp, or four; rows of one warp share it where that is legal
		for _, threads := range []int{warpThreads, 4 * warpThreads} {
			if threads == warpThreads && lo.sharesWarps() {
				continue
			}
			items := min(max(1, lowOccupancyOnce/max(1, lo.inputs())), max(1, shortRow/threads/vector))
			out = append(out, rowCandidate{threads: threads, items: items})
		}
		return out
	}
	for threads := 32; threads <= lowOccupancyLongest; threads *= 2 {
		r := rowCandidate{threads: threads, items: 1}
		if threads <= lowOccupancyNarrow {
			r.items = lowOccupancyElements / vector
		}
		out = append(out, r)
	}
	return out
}

// readLater lists the reads of rows and of columns that only later passes need.
func readLater(v *ir.Variant) (out []*ir.Local) {
	first := needed(v.Sections[0], nil, map[*ir.Local]bool{})
	for _, l := range v.Locals {
		if algebra.ReadIn(l.Def) != nil && !first[l] {
			out = append(out, l)
		}
	}
	return out
}

// early picks the reads whose offsets follow from the row and the column alone. There are none where a thread has
// no registers for all of them beside what it keeps.
func early(v *ir.Variant, later []*ir.Local) (out []*ir.Local) {
	registers := words(v, v.Keep)
	for _, l := range later {
		r := algebra.ReadIn(l.Def)
		if r.Guard != nil || ir.Has(r.Args[0], ir.OpLocal) || algebra.ReadsMemory(r.Args[0]) {
			continue
		}
		switch {
		case l.Level == ir.RowLevel:
			out = append(out, l)
		case l.Wide:
			out = append(out, l)
			registers += registersOf(l)
		}
	}
	if registers*float64(v.Schedule.Items*v.Schedule.Vector) > rowRegisters(v.Schedule.RowThreads) {
		return nil
	}
	return out
}
