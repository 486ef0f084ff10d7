package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/ir"
)

// rowKernel makes the variants in which a group of threads shares the columns of a row.
type rowKernel struct{ *kernel }

// rowVariants lists the variants of the row mapping, the preferred ones first: persistent reductions for
// rows that fit on chip, then the looped reduction for rows of any length. cached is the reads of the
// low-occupancy variants: their tensors are so small that the L2 cache holds them.
func (lo rowKernel) rowVariants() (out []*ir.Variant, cached []*ir.Local) {
	persistent, looped := lo.passes(false), lo.passes(true)
	length, lane, vector := algebra.Product(lo.k.Cols), algebra.Innermost(lo.k.Cols), lo.vector()
	if passesOf(looped) == 1 {
		lowOccupancy, cached := lo.lowOccupancyVariants(looped, lane, vector, length)
		return atLeast(slices.Concat(lo.partVariants(persistent, lane, vector, length), lowOccupancy,
			lo.singlePass(looped, lane, vector, length)), length), cached
	}
	lowOccupancy, cached := lo.lowOccupancyVariants(persistent, lane, vector, length)
	return slices.Concat(lowOccupancy, lo.persistentVariants(persistent, looped, lane, vector, length),
		lo.aligned(along{sections: looped, lane: lane, vector: vector}, false, func(vector int) (ir.Schedule, *ir.Expr) {
			return lo.looped(looped, forecast.LoopThreads, vector), nil
		})), cached
}

// persistentVariants are the variants that keep a row on chip, by the length of rows that they take: a block
// for each row; then blocks or clusters that go from row to row with the next rows being copied; then a
// cluster for each row, for lengths that neither of them takes.
func (lo rowKernel) persistentVariants(
	persistent, looped []*ir.Section, lane *ir.Range, vector int, length *ir.Expr,
) (out []*ir.Variant) {
	words := lo.rowWords(persistent)
	reach, block := 0, 0 // longest rows that candidates take so far: all candidates, and those without a cluster
	pipelines := lo.pipelineVariants(looped, lane, vector, length)
	var singles []*ir.Variant   // of rows read in single elements: listed after vectors that take as many columns
	var unaligned []*ir.Variant // the same, of clusters
	for _, r := range lo.candidates() {
		if r.cluster > 1 && len(pipelines) > 0 && passesOf(looped) <= 2 {
			break // a looped reduction, which reads rows twice, is faster than a cluster
		}
		if r.of == singleElements && vector > 1 {
			singles = append(singles, lo.candidateVariants(r, words, along{sections: persistent, lane: lane, vector: vector}, length)...)
			continue
		}
		longest := r.columns(words, vector)
		if longest <= reach {
			continue
		}
		reach = longest
		bodies := lo.candidateVariants(r, words, along{sections: persistent, lane: lane, vector: vector}, length)
		switch {
		case r.cluster == 1:
			block = longest
			for _, v := range bodies {
				if v.Schedule.Vector > 1 {
					out = append(out, v)
				} else {
					singles = append(singles, v)
				}
			}
			for len(singles) > 0 && atOnce(singles[0].Schedule) <= longest {
				out, singles = append(out, singles[0]), singles[1:]
			}
		case len(pipelines) > 0:
			unaligned = append(unaligned, bodies[max(0, len(bodies)-1):]...)
		default:
			out = append(out, bodies...)
		}
	}
	for _, v := range pipelines {
		if s := v.Schedule; s.Unroll > 0 || atOnce(s) > block {
			out = append(out, v)
		}
	}
	return atLeast(slices.Concat(out, singles, unaligned), length)
}

// atOnce is the length of the longest row that the threads of a schedule keep in registers.
func atOnce(s ir.Schedule) int { return s.RowThreads * s.Items * s.Vector * max(1, s.Cluster) }

// candidateVariants are the variants of one candidate: one for vectors, and one for single elements if it has
// that. words are the registers that a column of a row takes.
func (lo rowKernel) candidateVariants(
	r rowCandidate, words float64, row along, length *ir.Expr,
) []*ir.Variant {
	bodies := lo.aligned(row, true, func(vector int) (ir.Schedule, *ir.Expr) {
		s := r.schedule(words, vector)
		if vector == 1 && lo.work() > lightWork { // addresses of single elements take registers too
			s.MinBlocks = min(s.MinBlocks, 1)
		}
		return s, ir.Apply(ir.OpLe, length, ir.IntConst(int64(r.columns(words, vector))))
	})
	if last := len(bodies) - 1; last > 0 && r.of == wholeVectors {
		bodies = bodies[:last]
	}
	bodies = slices.DeleteFunc(bodies, func(v *ir.Variant) bool {
		short := atOnce(v.Schedule) == row.vector && length.Op == ir.OpMul // a row this short, over several axes, has no axis of whole vectors
		return v.Schedule.Vector > 1 && (short || r.of == singleElements)
	})
	for _, v := range bodies {
		lo.stageRows(v)
	}
	return bodies
}

// atLeast sets Least in variants that read single elements: their rows are longer than all that the variant
// before takes. The elements of a thread below that length need no check whether they exist.
func atLeast(variants []*ir.Variant, length *ir.Expr) []*ir.Variant {
	reach := 0
	for _, v := range variants {
		s := v.Schedule
		if s.Vector > 1 || s.Items == 0 {
			continue
		}
		if reach > 0 && s.RowThreads >= warpThreads {
			v.Least = reach
			v.When = algebra.And(ir.Apply(ir.OpLt, ir.IntConst(int64(reach)), length), v.When)
		}
		reach = max(reach, atOnce(s))
	}
	return variants
}

// partVariants are the variants in which several short rows share a warp, for kernels that read their rows once.
func (lo rowKernel) partVariants(persistent []*ir.Section, lane *ir.Range, vector int, length *ir.Expr) (out []*ir.Variant) {
	if !lo.sharesWarps() {
		return nil
	}
	for _, r := range sharedWarpCandidates {
		out = append(out, lo.candidateVariants(r, lo.rowWords(persistent), along{sections: persistent, lane: lane, vector: vector}, length)...)
	}
	slices.SortStableFunc(out, func(a, b *ir.Variant) int { // single elements after all vectors
		return min(b.Schedule.Vector, 2) - min(a.Schedule.Vector, 2)
	})
	if passesOf(persistent) == 1 { // nothing is kept between passes: leave the number of registers to the compiler
		for _, v := range out {
			v.Schedule.MinBlocks = 0
		}
	}
	return out
}

// singleThreads are the threads of blocks for rows that are read once, in single elements, all at once.
var singleThreads = []int{warpThreads, 64, 128, 256}

// singlePass lists the variants of a kernel with one pass over its rows, which gains nothing by keeping them.
// A short row takes a warp. A longer row takes a block that issues the reads of the whole row at once, with no
// more threads than it takes to keep memory busy. Rows beyond the longest of those blocks are looped over.
func (lo rowKernel) singlePass(sections []*ir.Section, lane *ir.Range, vector int, length *ir.Expr) []*ir.Variant {
	out := lo.aligned(along{sections: sections, lane: lane, vector: vector}, false, func(vector int) (ir.Schedule, *ir.Expr) {
		s := lo.looped(sections, warpThreads, vector)
		s.Threads = laneBlock
		return s, ir.Apply(ir.OpLe, length, ir.IntConst(shortRow))
	})
	for _, r := range lo.singlePassCandidates(sections, vector) {
		out = append(out, lo.singlePassVariant(r, sections, lane, vector, length)...)
	}
	long := lo.aligned(along{sections: sections, lane: lane, vector: vector}, false, func(vector int) (ir.Schedule, *ir.Expr) {
		s := lo.looped(sections, forecast.LoopThreads, vector)
		words, values := lo.rowWords(sections), lo.inputs()*2*s.Unroll*vector
		room := words*float64(2*s.Unroll*vector) <= passRegisters && values <= passValues
		scanned := lo.hasScan() && 2*s.Unroll*vector > scanColumns // each takes a register, however narrow it is in memory
		if vector > 1 && !followsMaximum(sections) && room && !scanned {
			s.Unroll *= 2
		}
		return s, nil
	})
	last := len(long) - 1
	if lo.unit || lo.hasScan() || long[last].Schedule.Vector > 1 {
		return append(out, long...)
	}
	out = slices.DeleteFunc(out, func(v *ir.Variant) bool { return v.Schedule.Vector == 1 })
	return slices.Concat(out, long[:last], lo.singleRows(sections, lane, length), long[last:]) // single elements after all vectors
}

// singlePassVariant is the variant of a candidate whose rows are read once, all at once. There is none where
// rows are read in single elements: singleRows makes those, which come after all others.
func (lo rowKernel) singlePassVariant(r rowCandidate, sections []*ir.Section, lane *ir.Range, vector int, length *ir.Expr) []*ir.Variant {
	bodies := lo.aligned(along{sections: sections, lane: lane, vector: vector}, false, func(vector int) (ir.Schedule, *ir.Expr) {
		s := lo.looped(sections, r.threads, vector)
		s.Unroll = min(s.Unroll, forecast.PassUnroll)
		if r.items > 0 {
			s.Unroll, s.MinBlocks = r.items, residentThreads/r.threads
		}
		longest := ir.IntConst(int64(r.threads * s.Unroll * vector))
		if r.items > 0 || lo.inAnyOrder(sections) { // in a small kernel the time to load its code counts: no loop, whose code is longer
			s.Items, s.Unroll = s.Unroll, 0
		}
		return s, ir.Apply(ir.OpLe, length, longest)
	})
	if len(bodies) == 0 || bodies[0].Schedule.Vector == 1 {
		return nil
	}
	return bodies[:1]
}

// singleRows are the variants of rows that are read once, in single elements, all at once.
func (lo rowKernel) singleRows(sections []*ir.Section, lane *ir.Range, length *ir.Expr) (out []*ir.Variant) {
	for _, threads := range singleThreads {
		out = append(out, lo.aligned(along{sections: sections, lane: lane, vector: 1}, false, func(int) (ir.Schedule, *ir.Expr) {
			s := lo.looped(sections, threads, 1)
			if threads == warpThreads {
				s.Threads = laneBlock
			}
			s.Items, s.Unroll = largestScalar, 0
			return s, ir.Apply(ir.OpLe, length, ir.IntConst(int64(atOnce(s))))
		})...)
	}
	return out
}

// singlePassCandidates are the candidates of rows that are read once, all at once. 0 items means as many
// vectors for each thread as keep memory busy.
//
// For narrow elements the first blocks have fewer threads, because starting warps that have no vector takes
// longer than reading. Scans of narrow elements, or with much work for each element, are limited by the
// instructions that they issue, many of them for the exchange between warps. So they get few warps, with as
// many vectors as registers hold. Products have many classes already, so products of one row get only the
// candidate for the longest rows, or none if elements are wide.
func (lo rowKernel) singlePassCandidates(sections []*ir.Section, vector int) []rowCandidate {
	narrow := vector == forecast.WidestVector
	switch {
	case lo.scannedAtOnce(sections, vector) > 0:
		items := lo.scannedAtOnce(sections, vector) / vector
		return []rowCandidate{{threads: 64, items: items}, {threads: 128, items: items}, {threads: 256, items: items}}
	case !lo.unit && narrow && lo.inAnyOrder(sections):
		return []rowCandidate{{threads: 128}, {threads: 256}, {threads: 512}}
	case !lo.unit:
		return []rowCandidate{{threads: 256}, {threads: 512}}
	case narrow:
		return []rowCandidate{{threads: 512}}
	}
	return nil
}

// scannedAtOnce is how many columns a thread scans at once: as many as its registers hold. It is 0 for scans that need no more
// than keeps memory busy. Where a fold over the row is beside the scan, the elements are still needed once they have been scanned.
func (lo rowKernel) scannedAtOnce(sections []*ir.Section, vector int) int {
	much := vector == forecast.WidestVector || vector > 1 && lo.work() > scanWork
	if !lo.hasScan() || !much || lo.rowWords(sections)*scanColumns > scanRegisters {
		return 0
	}
	if slices.ContainsFunc(lo.folds, func(f *ir.Fold) bool { return f.Prefix == ir.WholeRow }) {
		return scanColumns / 2
	}
	return scanColumns
}

// inputs is how many tensors the kernel reads.
func (lo rowKernel) inputs() int {
	n := 0
	for _, a := range lo.k.Args {
		if !a.Write {
			n++
		}
	}
	return n
}

// looped is the schedule of a looped reduction.
func (lo rowKernel) looped(sections []*ir.Section, threads, vector int) ir.Schedule {
	s := ir.Schedule{Mapping: ir.RowMapping, Threads: threads, RowThreads: threads, Vector: vector, Unroll: streamUnroll}
	words := lo.rowWords(sections)
	if followsMaximum(sections) { // each vector is gone through twice: for the maximum, then for the sum
		words *= 2
	}
	for s.Unroll > 1 && words*float64(s.Unroll*vector) > loopRegisters {
		s.Unroll /= 2
	}
	return s
}

// inAnyOrder reports whether the columns of a row may be folded in any order: they are not scanned,
// and no sum follows a running maximum.
func (lo rowKernel) inAnyOrder(sections []*ir.Section) bool {
	return !lo.hasScan() && !followsMaximum(sections)
}

// candidates are the candidates of persistent rows that the device supports.
func (lo rowKernel) candidates() []rowCandidate {
	var out []rowCandidate
	candidates := persistentCandidates
	if lo.sharesWarps() { // these replace the first candidate, which is a warp with one vector for each thread
		out, candidates = slices.Clone(sharedWarpCandidates), candidates[1:]
	}
	for _, r := range candidates {
		if r.cluster == 1 || lo.device.Clusters() && !lo.hasScan() {
			out = append(out, r)
		}
	}
	return out
}

// sharesWarps reports whether several rows may share a warp. In row-chunk accumulation, and in kernels with a
// last-block reduction, each row has at least a warp.
func (lo rowKernel) sharesWarps() bool {
	return !lo.paired && !lo.unit && len(lo.k.Accumulated) == 0 && len(lo.k.Rows) > 0
}

// rowRegisters is the number of registers of a thread for the values of its row.
func rowRegisters(threads int) float64 {
	return float64(min(keptRegisters, forecast.RegistersSM/threads-otherRegisters))
}
