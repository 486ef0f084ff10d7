package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/ir"
)

// rowKernel makes the variants in which a group of threads walks the columns of a row together.
type rowKernel struct{ *kernel }

// rowVariants gives each row a group of threads: the candidates of persistent rows while a
// row fits on chip, then streaming. cached is what those for few rows read, which the L2 cache holds.
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
		lo.aligned(along{looped, lane, vector}, false, func(vector int) (ir.Schedule, *ir.Expr) {
			return lo.looped(looped, forecast.LoopThreads, vector), nil
		})), cached
}

// persistentVariants are those of rows that stay on chip: in a block; in blocks or clusters that
// go from row to row, where those hold more; and in clusters, of what they leave.
func (lo rowKernel) persistentVariants(
	persistent, looped []*ir.Section, lane *ir.Range, vector int, length *ir.Expr,
) (out []*ir.Variant) {
	words := lo.rowWords(persistent)
	reach, block := 0, 0 // columns that the candidates so far take, and those of one block
	pipelines := lo.pipelineVariants(looped, lane, vector, length)
	var singles []*ir.Variant   // rows of single elements, which wait until vectors take as many columns
	var unaligned []*ir.Variant // those that clusters hold
	for _, r := range lo.candidates() {
		if r.cluster > 1 && len(pipelines) > 0 && passesOf(looped) <= 2 {
			break // rows read twice in pieces are faster
		}
		if r.of == singleElements && vector > 1 {
			singles = append(singles, lo.candidateVariants(r, words, along{persistent, lane, vector}, length)...)
			continue
		}
		longest := r.columns(words, vector)
		if longest <= reach {
			continue
		}
		reach = longest
		bodies := lo.candidateVariants(r, words, along{persistent, lane, vector}, length)
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

// atOnce is the columns of a row that its threads have room for at once.
func atOnce(s ir.Schedule) int { return s.RowThreads * s.Items * s.Vector * max(1, s.Cluster) }

// candidateVariants are those of one candidate.
func (lo rowKernel) candidateVariants(
	r rowCandidate, words float64, row along, length *ir.Expr,
) []*ir.Variant {
	bodies := lo.aligned(row, true, func(vector int) (ir.Schedule, *ir.Expr) {
		s := r.schedule(words, vector)
		if vector == 1 && lo.work() > lightWork { // addresses of single elements, and much beside them
			s.MinBlocks = min(s.MinBlocks, 1)
		}
		return s, ir.Apply(ir.OpLe, length, ir.IntConst(int64(r.columns(words, vector))))
	})
	if last := len(bodies) - 1; last > 0 && r.of == wholeVectors {
		bodies = bodies[:last]
	}
	bodies = slices.DeleteFunc(bodies, func(v *ir.Variant) bool {
		short := atOnce(v.Schedule) == row.vector && length.Op == ir.OpMul // where a factor that is a multiple leaves no such row
		return v.Schedule.Vector > 1 && (short || r.of == singleElements)
	})
	for _, v := range bodies {
		lo.stageRows(v)
	}
	return bodies
}

// atLeast tells variants of single elements how long their rows are at least: longer than those of the
// one before. So many elements of a thread need no condition.
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

// passesOf counts the passes over the columns.
func passesOf(sections []*ir.Section) int {
	n := 0
	for _, s := range sections {
		if s.Level == ir.FullLevel {
			n++
		}
	}
	return n
}

// partVariants are those of rows that share warps, where the kernel reads its rows once.
func (lo rowKernel) partVariants(persistent []*ir.Section, lane *ir.Range, vector int, length *ir.Expr) (out []*ir.Variant) {
	if !lo.sharesWarps() {
		return nil
	}
	for _, r := range sharedWarpCandidates {
		out = append(out, lo.candidateVariants(r, lo.rowWords(persistent), along{persistent, lane, vector}, length)...)
	}
	slices.SortStableFunc(out, func(a, b *ir.Variant) int { // single elements after all vectors
		return min(b.Schedule.Vector, 2) - min(a.Schedule.Vector, 2)
	})
	if passesOf(persistent) == 1 { // nothing is held: how many registers a thread takes is the compiler's choice
		for _, v := range out {
			v.Schedule.MinBlocks = 0
		}
	}
	return out
}

// singleThreads are those of rows of single elements that are read once, at once.
var singleThreads = []int{warpThreads, 64, 128, 256}

// singlePass is the candidates of a kernel that reads its rows once: nothing is gained by
// holding them. Short rows take a warp. Longer ones take a block that has all of a row
// under way at once, and no more than memory needs; beyond the longest of those, the
// pieces of a row follow each other.
func (lo rowKernel) singlePass(sections []*ir.Section, lane *ir.Range, vector int, length *ir.Expr) []*ir.Variant {
	out := lo.aligned(along{sections, lane, vector}, false, func(vector int) (ir.Schedule, *ir.Expr) {
		s := lo.looped(sections, warpThreads, vector)
		s.Threads = laneBlock
		return s, ir.Apply(ir.OpLe, length, ir.IntConst(shortRow))
	})
	for _, r := range lo.singlePassCandidates(sections, vector) {
		out = append(out, lo.singlePassVariant(r, sections, lane, vector, length)...)
	}
	long := lo.aligned(along{sections, lane, vector}, false, func(vector int) (ir.Schedule, *ir.Expr) {
		s := lo.looped(sections, forecast.LoopThreads, vector)
		words, values := lo.rowWords(sections), lo.inputs()*2*s.Unroll*vector
		room := words*float64(2*s.Unroll*vector) <= passRegisters && values <= passValues
		if vector > 1 && !followsMaximum(sections) && room {
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

// singlePassVariant is that of a candidate of rows that are read once, at once, none where they are of single
// elements: those come after all others.
func (lo rowKernel) singlePassVariant(r rowCandidate, sections []*ir.Section, lane *ir.Range, vector int, length *ir.Expr) []*ir.Variant {
	bodies := lo.aligned(along{sections, lane, vector}, false, func(vector int) (ir.Schedule, *ir.Expr) {
		s := lo.looped(sections, r.threads, vector)
		s.Unroll = min(s.Unroll, forecast.PassUnroll)
		if r.items > 0 {
			s.Unroll, s.MinBlocks = r.items, residentThreads/r.threads
		}
		longest := ir.IntConst(int64(r.threads * s.Unroll * vector))
		if r.items > 0 || lo.inAnyOrder(sections) { // a small kernel waits for its text too: no loop
			s.Items, s.Unroll = s.Unroll, 0
		}
		return s, ir.Apply(ir.OpLe, length, longest)
	})
	if len(bodies) == 0 || bodies[0].Schedule.Vector == 1 {
		return nil
	}
	return bodies[:1]
}

// singleRows are the variants of rows of single elements that are read once, at once.
func (lo rowKernel) singleRows(sections []*ir.Section, lane *ir.Range, length *ir.Expr) (out []*ir.Variant) {
	for _, threads := range singleThreads {
		out = append(out, lo.aligned(along{sections, lane, 1}, false, func(int) (ir.Schedule, *ir.Expr) {
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

// singlePassCandidates are the blocks of rows that are read once, at once; items are 0 for as many as
// memory needs. Rows of narrow elements begin with blocks of fewer threads: warps without a vector
// take longer than memory does. Where they are scanned, and elements are narrow or much work, issuing
// instructions takes longer than memory does, many of them for the exchange between warps: few warps,
// with more vectors each, while there are registers. Products have many classes: one row of theirs has
// the longest of the blocks, of wide elements none.
func (lo rowKernel) singlePassCandidates(sections []*ir.Section, vector int) []rowCandidate {
	narrow := vector == forecast.WidestVector
	switch {
	case lo.scannedAtOnce(sections, vector):
		items := scanColumns / vector
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

// scannedAtOnce reports whether threads have as many columns of a scanned row as registers hold.
func (lo rowKernel) scannedAtOnce(sections []*ir.Section, vector int) bool {
	much := vector == forecast.WidestVector || vector > 1 && lo.work() > scanWork
	return lo.hasScan() && much && lo.rowWords(sections)*scanColumns <= scanRegisters
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

// streaming is the schedule of rows that are read in pieces.
func (lo rowKernel) looped(sections []*ir.Section, threads, vector int) ir.Schedule {
	s := ir.Schedule{Mapping: ir.RowMapping, Threads: threads, RowThreads: threads, Vector: vector, Unroll: streamUnroll}
	words := lo.rowWords(sections)
	if followsMaximum(sections) { // what is in hand is gone through twice
		words *= 2
	}
	for s.Unroll > 1 && words*float64(s.Unroll*vector) > loopRegisters {
		s.Unroll /= 2
	}
	return s
}

// followsMaximum reports whether a fold streams beside a running maximum.
func followsMaximum(sections []*ir.Section) bool {
	for _, s := range sections {
		for _, f := range s.Folds {
			if f.After != nil {
				return true
			}
		}
	}
	return false
}

// inAnyOrder reports whether columns of a row are folded as they come: neither scanned nor beside a
// running maximum.
func (lo rowKernel) inAnyOrder(sections []*ir.Section) bool {
	return !lo.hasScan() && !followsMaximum(sections)
}

// candidates are those of persistent rows that the device has.
func (lo rowKernel) candidates() []rowCandidate {
	var out []rowCandidate
	candidates := persistentCandidates
	if lo.sharesWarps() { // in place of the first, a warp of one vector each
		out, candidates = slices.Clone(sharedWarpCandidates), candidates[1:]
	}
	for _, r := range candidates {
		if r.cluster == 1 || lo.device.Clusters() && !lo.hasScan() {
			out = append(out, r)
		}
	}
	return out
}

// sharesWarps reports whether rows may share warps: those of scans, and of blocks with last-block reductions or
// chunk, have a warp at least.
func (lo rowKernel) sharesWarps() bool {
	return !lo.hasScan() && !lo.paired && !lo.unit && len(lo.k.Accumulated) == 0 && len(lo.k.Rows) > 0
}

// rowRegisters is what a thread has for the values of its row.
func rowRegisters(threads int) float64 {
	return float64(min(keptRegisters, forecast.RegistersSM/threads-otherRegisters))
}
