package fuse

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/ir"
)

// Low occupancy: few rows leave most of the device idle, and what a kernel takes is the latencies of one row, one
// after the other. Then each thread has as little as keeps blocks few, and what later passes read
// is on its way from the beginning. Rows that are read once are read at once.
const (
	lowOccupancyRows     = forecast.FullDevice // of up to lowOccupancyWide threads, half as many of twice as many
	lowOccupancyWide     = 512
	lowOccupancyLongest  = 1024
	lowOccupancyElements = 8 // of a thread, in up to lowOccupancyNarrow threads; beyond that one vector
	lowOccupancyNarrow   = 64
	lowOccupancyOnce     = 4 // vectors of a thread on a row that is read once: with more, blocks are too few
)

// lowOccupancyVariants are the variants of few rows: one body with other numbers. There are none for two
// kernels in one launch, whose blocks and rows belong together, for products of one row, and where
// rows are held of which later passes read nothing more. Their tensors are small: cached is what they
// read, which the L2 cache holds.
func (lo rowKernel) lowOccupancyVariants(sections []*ir.Section, lane *ir.Range, vector int, length *ir.Expr) (out []*ir.Variant, cached []*ir.Local) {
	once := passesOf(sections) == 1
	if lo.paired || lo.unit || len(lo.k.Accumulated) > 0 {
		return nil, nil
	}
	scanned := once && lo.hasScan()
	if scanned && (vector == forecast.WidestVector || !lo.scannedAtOnce(sections, vector)) {
		return nil, nil // only where many rows have fewer warps than they could
	}
	body := lo.aligned(along{sections, lane, vector}, true, func(vector int) (ir.Schedule, *ir.Expr) {
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
		if scanned { // by a warp otherwise
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
	if once { // up to short rows: a warp, or four; those for a warp share it where they may
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

// readLater is what a body reads that its first pass does not need, of rows and of columns.
func readLater(v *ir.Variant) (out []*ir.Local) {
	first := needed(v.Sections[0], nil, map[*ir.Local]bool{})
	for _, l := range v.Locals {
		if algebra.ReadIn(l.Def) != nil && !first[l] {
			out = append(out, l)
		}
	}
	return out
}

// early is those of the reads whose places follow from the row and the column alone, where a
// thread has registers for them all beside what it holds.
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
