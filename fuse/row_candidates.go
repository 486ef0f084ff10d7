package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/ir"
)

// elements are what rows of a candidate consist of: vectors, or single elements where they are no whole number
// of those.
type elements uint8

const (
	anyRow elements = iota
	wholeVectors
	singleElements
)

// sharedWarpCandidates are the first candidates: short rows share warps, as many as fit. A warp each would
// take longer than memory does, most of its lanes without a column. Those that pass through shared
// memory should have much of a block's share of it.
var sharedWarpCandidates = []rowCandidate{{1, 1, 1, anyRow}, {1, 4, 1, anyRow}, {2, 4, 1, singleElements}, {4, 4, 1, singleElements}, {8, 4, 1, anyRow}}

// persistentCandidates are the schedules of persistent rows (kept on chip): threads of a block on a
// row, vectors each of them holds, and blocks of a cluster on a row. The first
// that takes a row is used. Rows that are no whole number of vectors have fewer
// candidates: each is one more kernel to compile for a program that meets many lengths.
var persistentCandidates = []rowCandidate{
	{32, 1, 1, wholeVectors}, {32, 2, 1, anyRow}, {64, 2, 1, wholeVectors}, {128, 2, 1, anyRow}, {256, 2, 1, anyRow}, {512, 2, 1, anyRow},
	{512, 4, 1, anyRow}, {1024, 4, 1, anyRow}, {512, 4, 2, anyRow}, {512, 4, 4, anyRow}, {512, 4, 8, anyRow}, {1024, 4, 8, anyRow},
}

type rowCandidate struct {
	threads, items, cluster int
	of                      elements
}

// fit is the number of vectors a thread of the candidate holds when one column takes
// the given registers.
func (r rowCandidate) fit(words float64, vector int) int {
	items := r.items
	switch {
	case vector > 1:
	case r.threads == warpThreads: // with less, rows of some hundred would have a block each
		items = largestScalar
	default:
		items = min(items*scalarItems, largestScalar)
	}
	for items > 1 && words*float64(items*vector) > rowRegisters(r.threads) {
		items /= 2
	}
	return items
}

// columns is the longest row the candidate takes.
func (r rowCandidate) columns(words float64, vector int) int {
	return r.threads * r.cluster * r.fit(words, vector) * vector
}

func (r rowCandidate) schedule(words float64, vector int) ir.Schedule {
	s := ir.Schedule{Mapping: ir.RowMapping, Threads: r.threads, RowThreads: r.threads, Vector: vector, Items: r.fit(words, vector)}
	if r.threads <= warpThreads { // rows that need no barrier share blocks
		s.Threads = laneBlock
	}
	if s.Items*vector >= fullThread || s.Items == largestScalar { // else the compiler takes few registers by itself
		s.MinBlocks = residentThreads / s.Threads
		if r.threads < warpThreads { // whose threads may have all of a row
			s.MinBlocks /= 2
		}
	}
	if r.cluster > 1 {
		s.Cluster = r.cluster
	}
	return s
}

// pipelineCandidate is a candidate of rows too long for one block's registers as above, of which blocks
// or clusters have one after the other, with the next on their way to shared memory.
type pipelineCandidate struct {
	threads, items, cluster int
	blocks                  int  // of a multiprocessor, which share its registers and shared memory
	dynamic                 bool // for rows, which have to be many
}

// registers is what a thread has for its part of the row: half of its registers.
func (r pipelineCandidate) registers() int { return forecast.RegistersSM / (r.threads * r.blocks) / 2 }

// shared is the bytes of shared memory a block has for the rows ahead, beside those through
// which it exchanges what it folds.
func (r pipelineCandidate) shared(d ir.Device, exchanged int) int {
	if r.dynamic {
		exchanged += schedulerBytes
	}
	return (d.SharedBlock+blockReserve)/r.blocks - blockReserve - pipelineReserve - exchanged*2*r.threads/32*r.cluster
}

// stages is how many rows are ahead at most.
func (r pipelineCandidate) stages() int {
	if r.blocks > 1 {
		return 1
	}
	return pipelineStages
}

// enough is the condition under which there are rows enough for a dynamic scheduler: several turns of all
// clusters that there is room for. A request takes some of the time of a row; without, clusters
// that were on a multiprocessor first are served first, and wait for the others in the end.
func (r pipelineCandidate) enough(rows *ir.Expr) *ir.Expr {
	if !r.dynamic {
		return nil
	}
	return algebra.AtLeastSize(rows, int64(schedulerTurns*ir.ReferenceSMs*r.blocks/r.cluster))
}

// The candidates by the work of a point. Two blocks beside each other hide each other's exchanges,
// and need no more than one row ahead each; eight vectors of a thread there would spill, and so
// would the scheduler's count beside seven. Longer rows of light work are in chunks.
var (
	lightPipelines = []pipelineCandidate{{512, 7, 1, 2, false}, {1024, 8, 1, 1, false}}
	longPipelines  = []pipelineCandidate{{512, 7, 1, 2, false}, {1024, 7, 1, 1, false}}
	pairPipelines  = []pipelineCandidate{{384, 9, 4, 2, true}, {512, 7, 4, 2, false}, {384, 9, 8, 2, true}, {512, 7, 8, 2, false}}
	heavyPipelines = []pipelineCandidate{{512, 16, 8, 1, false}}
)

// Work of a point, found by compiling and timing the examples.
const (
	lightWork       = 46      // of lightPipelines at most
	longWork        = 50      // of longPipelines, and of rows in chunks behind both
	pipelineStages  = 4       // rows ahead of a block that is alone on a multiprocessor
	pipelineReserve = 1 << 10 // bytes of shared memory for barriers
	blockReserve    = 1 << 10 // and what the driver takes of each block's
	schedulerBytes  = 4       // that a warp gives along with what it folds, for the dynamic scheduler
	schedulerTurns  = 4
)

// pipelineVariants are the variants of these candidates: one body with other numbers. There are
// none where the device or the kernel cannot.
func (lo rowKernel) pipelineVariants(sections []*ir.Section, lane *ir.Range, vector int, length *ir.Expr) []*ir.Variant {
	if !lo.device.Clusters() || lo.hasScan() || lo.work() > forecast.HeavyWork {
		return nil
	}
	if len(lo.k.Rows) == 0 || len(lo.k.Accumulated) > 0 { // one row, or rows that have a loop already
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
	if lo.work() <= longWork {
		out = append(out, lo.chunkVariants(h, sections, vector, length)...)
	}
	return out
}

// pipelineCandidates are the candidates for the kernel's work. Chunks of one vector a thread are too short:
// then clusters beside each other come before them.
func (lo rowKernel) pipelineCandidates(sections []*ir.Section, vector int) []pipelineCandidate {
	switch work := lo.work(); {
	case work <= lightWork:
		return lightPipelines
	case work > longWork:
		return slices.Concat(longPipelines, pairPipelines, heavyPipelines)
	case lo.chunkItems(sections, vector) == 1:
		return slices.Concat(longPipelines, pairPipelines)
	}
	return longPipelines
}

// pipelined is a body whose rows are fetched ahead, and what one of their columns takes.
type pipelined struct {
	body  *ir.Variant
	needs *ir.Expr // of the sizes; nil for nothing
	words float64  // registers of a thread
	bytes int      // of shared memory
}

// fits reports whether the threads of a candidate have the registers and the shared memory for
// its items.
func (h *pipelined) fits(r pipelineCandidate, vector, shared int) bool {
	return h.words*float64(r.items*vector) <= float64(r.registers()) && h.bytes*r.items*r.threads*vector <= shared
}

// pipelined makes the body; nil unless all that is held are rows of tensors in runs of whole
// vectors, which the first pass reads.
func (lo rowKernel) pipelined(sections []*ir.Section, lane *ir.Range, vector int) *pipelined {
	b := newBody(lo.kernel)
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

// run is how many of the column ranges, from the last on, a local that is a read walks in
// the order of memory, from a place known from the other ranges and the row, in whole
// vectors of as many bytes as the copy engine counts in; 0 for all others.
func (lo rowKernel) run(l *ir.Local, vector int) int {
	r := algebra.ReadIn(l.Def)
	if r == nil || !l.Wide || r.Guard != nil || ir.Has(r.Args[0], ir.OpLocal) || vector*r.Type.Size()%forecast.AccessBytes != 0 {
		return 0
	}
	return ir.Contiguous(r.Args[0], lo.k.Cols, ir.Facts{Positive: true})
}

// readFirst reports whether the first pass needs all that is held.
func readFirst(v *ir.Variant) bool {
	first := needed(v.Sections[0], nil, map[*ir.Local]bool{})
	for _, l := range v.Keep {
		if !first[l] {
			return false
		}
	}
	return len(v.Sections[0].Folds) > 0
}
