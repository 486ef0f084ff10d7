package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/ir"
)

// flatVariants lists the variants of the flat mapping, in which neighbouring threads have neighbouring rows. Few
// columns are a loop in each thread; more are shared by a group of threads.
func (lo columnKernel) flatVariants() []*ir.Variant {
	sections := lo.passes(true)
	var lane *ir.Range
	if len(lo.k.Rows) > 0 {
		lane = algebra.Innermost(lo.k.Rows)
	}
	words := lo.rowWords(sections)
	vector := lo.vector()
	if lo.hasScan() { // a thread scans its columns one by one, so there should be many threads
		vector = max(1, vector*scanAccess/forecast.AccessBytes)
	}
	one := lo.oneGather(sections, lane, vector)
	flat := lo.aligned(along{sections, lane, vector}, false, func(vector int) (ir.Schedule, *ir.Expr) {
		s := ir.Schedule{Mapping: ir.FlatMapping, Threads: flatThreads, Vector: vector}
		switch n := algebra.Product(lo.k.Cols); {
		case len(lo.k.Cols) == 0:
			if lo.streams() > 1 || lo.gathers() {
				s.Threads = pointThreads
			}
			switch {
			case lo.gathers():
				s.Unroll = gatherUnroll
			case lo.streams() == 1:
				s.Unroll = fillUnroll
			}
		case lo.hasScan(): // each step of a scan needs the one before it: one thread has all columns
			s.Threads, s.Unroll = scanThreads, scanUnroll
		case n.Op == ir.OpConst && n.Int <= threadColumns:
			if int(n.Int)*lo.slots() <= unrolledSlots {
				s.Unroll = int(n.Int)
			}
		case lo.chains(sections):
			lo.chain(&s, sections, words)
		default:
			lo.shareColumns(&s, sections, words)
		}
		return s, nil
	})
	return slices.Concat(lo.tileVariants(sections, lane), lo.groupScans(sections, lane), lo.pipelinedScans(sections, lane), one, lo.slabVariants(sections, lane, vector, words), flat)
}

// oneGather are the variants of gathers with so few points that the device runs a thread for each vector at
// once. A second vector in a thread would only wait for the first.
func (lo columnKernel) oneGather(sections []*ir.Section, lane *ir.Range, vector int) []*ir.Variant {
	if len(lo.k.Cols) > 0 || !lo.gathers() {
		return nil
	}
	return lo.aligned(along{sections, lane, vector}, false, func(vector int) (ir.Schedule, *ir.Expr) {
		few := ir.Apply(ir.OpLe, algebra.Product(lo.k.Rows), ir.IntConst(int64(ir.ReferenceSMs*forecast.ThreadsSM*vector)))
		return ir.Schedule{Mapping: ir.FlatMapping, Threads: pointThreads, Vector: vector}, few
	})
}

// streams is the number of tensors with an element for each point.
func (lo columnKernel) streams() int {
	n, points := 0, algebra.Product(lo.k.Rows)
	for _, a := range lo.k.Args {
		if ir.SameSize(algebra.Product(a.Buffer.Value.Axes), points) {
			n++
		}
	}
	return n
}

// columnKernel makes the variants in which each thread owns neighbouring rows, and either loops over their columns
// itself or shares them with other threads.
type columnKernel struct{ *kernel }
