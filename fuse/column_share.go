package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/ir"
)

// Sharing columns. Where neighbours in memory are rows, not columns, a block reads a strip of each column: some
// neighbouring rows, its lanes. A strip of 128 bytes, one line, is as fast as a wider one, and makes more blocks.
// Memory is kept busy by the bytes under way: groupUnroll accesses of each thread.

const (
	stripShort = 32                      // columns from which few rows are spread over more blocks
	stripFull  = 2 * forecast.FullDevice // least blocks for which narrow strips are made wider, which halves the blocks

	clusterBlocks = 8                   // blocks of a cluster that share the columns of a strip
	clusterStrips = ir.ReferenceSMs / 8 // most strips for which they do: with more, more than one of eight multiprocessors works without
	clusterRounds = 2                   // least rounds of reads of a block that is alone, for which others are worth waiting for
)

// shareColumns sets how the threads of a flat schedule share the columns, and how many columns each has in flight, as
// far as its registers go.
func (lo columnKernel) shareColumns(s *ir.Schedule, sections []*ir.Section, words float64) {
	rows, cols := algebra.PointsAt(lo.k.Rows, lo.sizes), algebra.PointsAt(lo.k.Cols, lo.sizes)
	chosen := forecast.ShareOf(cols)
	if few := chosen.Blocks(rows, s.Vector) < forecast.StripLeast/2; few && chosen.Groups == forecast.GroupThreads && cols >= stripShort {
		chosen.Groups *= 4 // more blocks, each with less work
	}
	for blocks := chosen.Blocks(rows, s.Vector); lo.narrowStrip(chosen, s.Vector) && chosen.Groups > forecast.GroupThreads && blocks >= stripFull; blocks /= 2 {
		chosen.Groups /= 2
	}
	if chosen.Threads > flatThreads && stateWords(sections)*s.Vector > groupSums/2 {
		chosen = forecast.Share{Threads: chosen.Threads / 2, Groups: chosen.Groups / 2} // more registers a thread
	}
	s.Threads, s.ColThreads, s.Unroll = chosen.Threads, chosen.Groups, forecast.GroupUnroll
	if s.Vector == 1 && lo.work() > lightWork { // without a bound, the compiler spills registers to run more blocks
		s.MinBlocks = residentThreads / s.Threads
		if storesElements(sections) { // whose addresses take registers too
			s.Unroll /= 2
		}
	}
	for s.Unroll > 1 && words*float64(s.Unroll*s.Vector) > groupRegisters {
		s.Unroll /= 2
	}
	if sums := stateWords(sections) * s.Vector; s.Unroll == forecast.GroupUnroll && sums > groupSums {
		s.Unroll /= 2
		s.MinBlocks = forecast.ThreadsSM / 4 / s.Threads // without a bound, the compiler spills registers
	}
	for guarded(sections) && s.Unroll*s.Vector > groupGuarded {
		s.Unroll /= 2
	}
}

// clustered are the variants in which the blocks of a cluster share the columns, for so few rows that blocks with whole columns
// would leave most of the device idle, where these are no chains. The default sizes have more rows: for few of them, the graph has partial sums, which
// are faster by a sixth than clusters, because blocks that do not meet need not be there together.
func (lo columnKernel) clustered(a along, words float64) (out []*ir.Variant) {
	rows, cols := algebra.Product(lo.k.Rows), algebra.Product(lo.k.Cols)
	if !lo.device.Clusters() || len(lo.k.Cols) == 0 || lo.hasScan() || lo.loopsColumns(cols) || lo.chains(a.sections) || rows.Op == ir.OpConst {
		return nil
	}
	for _, v := range lo.aligned(a, false, func(vector int) (ir.Schedule, *ir.Expr) {
		s := ir.Schedule{Mapping: ir.FlatMapping, Threads: flatThreads, Vector: vector}
		lo.shareColumns(&s, a.sections, words)
		s.Cluster = clusterBlocks
		few := algebra.AtMostSize(rows, int64(clusterStrips*s.Threads/s.ColThreads*vector))
		return s, algebra.And(few, algebra.AtLeastSize(cols, int64(clusterRounds*s.ColThreads*s.Unroll)))
	}) {
		if !holdsAt(v.When, lo.sizes) {
			out = append(out, v)
		}
	}
	return out
}

// narrowStrip reports whether a strip is less than two lines of memory wide, where rows are read element by element, such
// as rows of odd lengths. Such a strip begins inside a line, which the block of the strip before reads too.
func (lo columnKernel) narrowStrip(s forecast.Share, vector int) bool {
	return vector < lo.vector() && s.Threads/s.Groups*vector < 2*forecast.StripLanes*lo.vector()
}

// guarded reports whether a fold leaves out columns, such as those beyond the last chunk.
func guarded(sections []*ir.Section) bool {
	for _, s := range sections {
		if slices.ContainsFunc(s.Folds, func(f *ir.Fold) bool { return f.Where != nil }) {
			return true
		}
	}
	return false
}

// storesElements reports whether elements of columns are stored, not results of rows alone.
func storesElements(sections []*ir.Section) bool {
	return slices.ContainsFunc(sections, func(s *ir.Section) bool { return s.Level == ir.FullLevel && len(s.Stores) > 0 })
}

// stateWords is the number of registers that the states of the folds of one lane take.
func stateWords(sections []*ir.Section) int {
	n := 0
	for _, s := range sections {
		for _, f := range s.Folds {
			n += f.Words()
		}
	}
	return n
}
