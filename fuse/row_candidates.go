package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/ir"
)

// elements says how the threads of a candidate read a row: in vectors, or in single elements where the length
// is no multiple of a vector.
type elements uint8

const (
	anyRow elements = iota
	wholeVectors
	singleElements
)

// sharedWarpCandidates are the first candidates, for short rows, of which as many as fit share a warp. With a
// warp each, most lanes would have no column, and the kernel would be slower than memory. The shapes are such
// that rows which pass through shared memory fill most of a block's share of it.
var sharedWarpCandidates = []rowCandidate{{1, 1, 1, anyRow}, {1, 4, 1, anyRow}, {2, 4, 1, singleElements}, {4, 4, 1, singleElements}, {8, 4, 1, anyRow}}

// persistentCandidates are the candidates of persistent reductions: threads of a block on a row, vectors that
// each of them keeps, and blocks of a cluster on a row. The first that is long enough for a row is used. Rows
// that are read in single elements have fewer candidates, since each is one more kernel to compile for a
// program that meets many lengths.
var persistentCandidates = []rowCandidate{
	{32, 1, 1, wholeVectors}, {32, 2, 1, anyRow}, {64, 2, 1, wholeVectors}, {128, 2, 1, anyRow}, {256, 2, 1, anyRow}, {512, 2, 1, anyRow},
	{512, 4, 1, anyRow}, {1024, 4, 1, anyRow}, {512, 4, 2, anyRow}, {512, 4, 4, anyRow}, {512, 4, 8, anyRow}, {1024, 4, 8, anyRow},
}

type rowCandidate struct {
	threads, items, cluster int
	of                      elements
}

// fit is the number of vectors that a thread of the candidate keeps, when one column takes so many registers.
func (r rowCandidate) fit(words float64, vector int) int {
	items := r.items
	switch {
	case vector > 1:
	case r.threads == warpThreads: // with fewer vectors, rows of some hundred columns would take a block each
		items = largestScalar
	default:
		items = min(items*scalarItems, largestScalar)
	}
	for items > 1 && words*float64(items*vector) > rowRegisters(r.threads) {
		items /= 2
	}
	return items
}

// columns is the length of the longest row that the candidate takes.
func (r rowCandidate) columns(words float64, vector int) int {
	return r.threads * r.cluster * r.fit(words, vector) * vector
}

func (r rowCandidate) schedule(words float64, vector int) ir.Schedule {
	s := ir.Schedule{Mapping: ir.RowMapping, Threads: r.threads, RowThreads: r.threads, Vector: vector, Items: r.fit(words, vector)}
	if r.threads <= warpThreads { // rows of one warp need no barrier: several share a block
		s.Threads = laneBlock
	}
	if s.Items*vector >= fullThread || s.Items == largestScalar { // otherwise the compiler takes few registers without a bound
		s.MinBlocks = residentThreads / s.Threads
		if r.threads < warpThreads { // a thread may have all of a row
			s.MinBlocks /= 2
		}
	}
	if r.cluster > 1 {
		s.Cluster = r.cluster
	}
	return s
}

// pipelineCandidate is a candidate for rows that are too long for persistentCandidates of one block. Blocks or
// clusters go from row to row, while the next rows are copied to shared memory.
type pipelineCandidate struct {
	threads, items, cluster int
	blocks                  int  // on a multiprocessor at a time, which share its registers and shared memory
	dynamic                 bool // rows come from the dynamic scheduler, which pays only for many rows
}

// registers is the number of registers of a thread for its part of the row: half of all that it has.
func (r pipelineCandidate) registers() int { return forecast.RegistersSM / (r.threads * r.blocks) / 2 }

// shared is the bytes of shared memory of a block for prefetched rows: what is left beside the bytes through
// which its warps exchange partial results.
func (r pipelineCandidate) shared(d ir.Device, exchanged int) int {
	if r.dynamic {
		exchanged += schedulerBytes
	}
	return (d.SharedBlock+blockReserve)/r.blocks - blockReserve - pipelineReserve - exchanged*2*r.threads/32*r.cluster
}

// stages is how many rows are prefetched at most.
func (r pipelineCandidate) stages() int {
	if r.blocks > 1 {
		return 1
	}
	return pipelineStages
}

// enough is the condition that there are enough rows for the dynamic scheduler: several for each cluster
// that the device has room for. A request costs a part of a row's time. Without the scheduler, the
// clusters that a multiprocessor started first are served by memory first, and are idle at the end.
func (r pipelineCandidate) enough(rows *ir.Expr) *ir.Expr {
	if !r.dynamic {
		return nil
	}
	return algebra.AtLeastSize(rows, int64(schedulerTurns*ir.ReferenceSMs*r.blocks/r.cluster))
}

// The candidates of pipelined reductions, by the work of an element. Two blocks on a multiprocessor hide each
// other's exchanges, and one prefetched row each is enough. A thread of theirs keeps seven vectors at most: with
// eight, or with the scheduler's counter beside seven, registers spill. Longer rows with little work an element
// are in chunks (row_chunks.go).
var (
	lightPipelines = []pipelineCandidate{{512, 7, 1, 2, false}, {1024, 8, 1, 1, false}}
	longPipelines  = []pipelineCandidate{{512, 7, 1, 2, false}, {1024, 7, 1, 1, false}}
	pairPipelines  = []pipelineCandidate{{384, 9, 4, 2, true}, {512, 7, 4, 2, false}, {384, 9, 8, 2, true}, {512, 7, 8, 2, false}}
	heavyPipelines = []pipelineCandidate{{512, 16, 8, 1, false}}
)

// Work of an element, found by compiling and timing the examples.
const (
	longWork        = 50      // most work that longPipelines are for, and the chunks after both lists
	pipelineStages  = 4       // rows that a block prefetches if it is alone on a multiprocessor
	pipelineReserve = 1 << 10 // bytes of shared memory for barriers
	blockReserve    = 1 << 10 // bytes of each block's shared memory that the driver takes
	schedulerBytes  = 4       // bytes of a warp in an exchange, for the answer of the dynamic scheduler
	schedulerTurns  = 4
)

// pipelineVariants are the variants of these candidates: one body with other numbers. There are none where the
// device has no clusters and bulk copies, or where the kernel's reads cannot be copied that way.
func (lo rowKernel) pipelineVariants(sections []*ir.Section, lane *ir.Range, vector int, length *ir.Expr) []*ir.Variant {
	if !lo.device.Clusters() || lo.hasScan() || lo.pipelineWork() > forecast.HeavyWork {
		return nil
	}
	if len(lo.k.Rows) == 0 || len(lo.k.Accumulated) > 0 { // there is one row, or the rows of a chunk are a loop already
		return nil
	}
	h := lo.pipelined(sections, lane, vector)
	if h == nil {
		return nil
	}
	var out []*ir.Variant
	for _, r := range lo.pipelineCandidates(sections, vector) {
		shared := r.shared(lo.device, lo.exchanged())
		for r.items > 1 && !h.fits(r, vector, shared) {
			r.items /= 2
		}
		v := *h.body
		v.Schedule = ir.Schedule{Mapping: ir.RowMapping, Threads: r.threads, RowThreads: r.threads,
			Vector: vector, Items: r.items, MinBlocks: r.blocks, Stages: r.stages(), Shared: shared, Dynamic: r.dynamic}
		if r.cluster > 1 {
			v.Schedule.Cluster = r.cluster
		}
		longest := ir.IntConst(int64(r.threads * r.items * r.cluster * vector))
		v.When = algebra.And(algebra.And(ir.Apply(ir.OpLe, length, longest), r.enough(algebra.Product(lo.k.Rows))), h.needs)
		out = append(out, &v)
	}
	if lo.pipelineWork() <= longWork {
		out = append(out, lo.chunkVariants(h, sections, vector, length)...)
	}
	return out
}

// pipelineWork is the work of an element, by which pipelined reductions are chosen. Where that is much, only what differs
// between columns counts, as in the gradient of a cross-entropy, most of whose work belongs to the row.
func (lo rowKernel) pipelineWork() int {
	if work := lo.work(); work <= forecast.HeavyWork {
		return work
	}
	return lo.columnWork()
}

// pipelineCandidates picks the candidates by the kernel's work for each element. If chunks would have one
// vector for each thread, which is too short, two clusters on the same multiprocessors come before them.
func (lo rowKernel) pipelineCandidates(sections []*ir.Section, vector int) []pipelineCandidate {
	switch work := lo.pipelineWork(); {
	case work <= lightWork:
		return lightPipelines
	case work > longWork:
		return slices.Concat(longPipelines, pairPipelines, heavyPipelines)
	case lo.chunkItems(sections, vector) == 1:
		return slices.Concat(longPipelines, pairPipelines)
	}
	return longPipelines
}

// pipelined is the body of a pipelined reduction, and what one column of its rows takes.
type pipelined struct {
	body  *ir.Variant
	needs *ir.Expr // condition on the sizes; nil for none
	words float64  // registers of a thread
	bytes int      // of shared memory
}

// fits reports whether the threads of a candidate have the registers and the shared memory for
// its items.
func (h *pipelined) fits(r pipelineCandidate, vector, shared int) bool {
	return h.words*float64(r.items*vector) <= float64(r.registers()) && h.bytes*r.items*r.threads*vector <= shared
}

// pipelined makes the body. It is nil unless everything that the body keeps is read by the first pass, from rows
// of tensors that are contiguous in whole vectors.
func (lo rowKernel) pipelined(sections []*ir.Section, lane *ir.Range, vector int) *pipelined {
	b := newBody(lo.kernel)
	b.alongCols = slices.Contains(lo.k.Cols, lane)
	body := &ir.Variant{Sections: b.sections(sections), Locals: b.locals, Run: len(lo.k.Cols)}
	body.Schedule.Mapping = ir.RowMapping
	h := &pipelined{body: body}
	h.needs, _ = lo.widen(body, lane, vector)
	for _, l := range keep(body) {
		run := lo.run(l, vector)
		switch {
		case run > 0:
			body.Keep = append(body.Keep, l)
			body.Run = min(body.Run, run)
			h.words += registersOf(l)
			h.bytes += algebra.ReadIn(l.Def).Type.Size()
		case algebra.ReadIn(l.Def) != nil:
			return nil
		}
	}
	if len(body.Keep) == 0 || !readFirst(body) || !ir.Multiple(lane.Extent, int64(vector), lo.promised(body)) {
		return nil
	}
	body.Staged = body.Keep
	return h
}

// run is the number of column ranges, counted from the innermost, along which a read is contiguous in memory.
// It begins at a place that depends only on the other ranges and on the row. The contiguous part must consist
// of whole vectors of 16 bytes, which the copy engine counts in. It is 0 for all other reads.
func (lo rowKernel) run(l *ir.Local, vector int) int {
	r := algebra.ReadIn(l.Def)
	if r == nil || !l.Wide || r.Guard != nil || ir.Has(r.Args[0], ir.OpLocal) || vector*r.Type.Size()%forecast.AccessBytes != 0 {
		return 0
	}
	return ir.Contiguous(r.Args[0], lo.k.Cols, ir.Facts{Positive: true})
}

// readFirst reports whether the first pass needs everything that is kept.
func readFirst(v *ir.Variant) bool {
	first := needed(v.Sections[0], nil, map[*ir.Local]bool{})
	for _, l := range v.Keep {
		if !first[l] {
			return false
		}
	}
	return len(v.Sections[0].Folds) > 0
}
