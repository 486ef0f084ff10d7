package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
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
	if storesBetween(sections, lane) {
		vector = 1
	}
	if len(lo.k.Cols) == 0 && lo.streams() > mostStreams {
		vector = 1
	}
	if len(lo.k.Cols) == 0 && !lo.draws() { // random numbers come in vectors
		for shared := lo.sharedWork(); vector > 1 && vector*shared > longPoints; {
			vector /= 2
		}
	}
	one := append(lo.oneGather(sections, lane, vector), lo.fewHeavy(sections, lane, vector)...)
	halves := len(lo.k.Cols) > 0 && lo.loopsColumns(algebra.Product(lo.k.Cols)) // few columns, or a window for each row
	flat := lo.aligned(along{sections: sections, lane: lane, vector: vector, halves: halves}, false, func(vector int) (ir.Schedule, *ir.Expr) {
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
		case lo.loopsColumns(n), vector == 1 && n.Op == ir.OpConst && n.Int <= lo.aloneColumns() && !followsMaximum(sections):
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
	return slices.Concat(lo.interleavedVariants(sections, lane), lo.interleavingVariants(sections, lane, vector), lo.tileVariants(sections, lane), lo.groupScans(sections, lane), lo.pipelinedScans(sections, lane), one, lo.slabVariants(sections, lane, vector, words), lo.clustered(along{sections: sections, lane: lane, vector: vector, halves: halves}, words), lo.fewColumns(along{sections: sections, lane: lane, vector: vector}), lo.flattened(lo.alone(flat, sections, lane), sections, lane, vector))
}

// mostStreams is up to how many streams a thread has vectors of. A vector of eight of each of
// 128, as in an optimizer's step for 16 small parameters, spilled 4 KiB a thread, for which the driver keeps local memory for all threads of the device.
const mostStreams = 64

// longPoints is the most work of the points that a thread computes beside each other, where each is long. NVRTC takes more than
// proportionally longer for longer texts without loops: 0.7 s for 200 tanh and 17 s for four times as many; and each point
// in flight holds registers, of which four points of 120 steps of a recurrence spilled 2.6 KiB a thread.
const longPoints = 2048

// storesApart is the largest stride, in elements, between results of neighbouring rows where a thread stores the
// results of a whole window, which lie between.
const storesApart = 16

// storesBetween reports whether the results that a pass stores for neighbouring rows have other results between
// them in memory. Threads then take one row each, so that a store of a warp touches few lines. With vectors of
// rows the threads' stores would be further apart.
func storesBetween(sections []*ir.Section, lane *ir.Range) bool {
	for _, s := range sections {
		for _, store := range s.Stores {
			if s.Level != ir.FullLevel || lane == nil {
				continue
			}
			stride, ok := ir.Stride(store.Offset, lane, ir.Facts{Positive: true})
			if ok && stride.Op == ir.OpConst && stride.Int > 1 && stride.Int <= storesApart {
				return true
			}
		}
	}
	return false
}

// loopsColumns reports whether each thread loops over all columns of its rows. Their number n has to be constant, and
// either small or that of overlapping windows. Neighbouring threads read the same elements of such windows, so these
// are in the cache already, and the rows fill the device. If a group of threads shared the columns of a row, that
// would only add an exchange of sums.
func (lo columnKernel) loopsColumns(n *ir.Expr) bool {
	if n.Op == ir.OpConst && lo.window {
		return true
	}
	if n.Op != ir.OpConst || n.Int > smallColumns {
		return false
	}
	return n.Int <= threadColumns || lo.overlaps(overlapLeast) && algebra.PointsAt(lo.k.Rows, lo.sizes) >= ir.ReferenceSMs*forecast.ThreadsSM
}

// overlapLeast is how often, at least, overlapping windows read each element of the largest tensor. It is low enough
// for strides that are most of a window, where groups of threads took three times as long.
const overlapLeast = 1.5

// overlaps reports whether the rows read each element of the largest tensor at least so often on average.
func (lo columnKernel) overlaps(least float64) bool {
	most := 0.0
	for _, a := range lo.k.Args {
		if !a.Write {
			most = max(most, algebra.PointsAt(a.Buffer.Value.Axes, lo.sizes))
		}
	}
	return least*most <= algebra.PointsAt(lo.k.Rows, lo.sizes)*algebra.PointsAt(lo.k.Cols, lo.sizes)
}

// fewColumns are the variants for a number of columns that depends on symbols, for the sizes at which it is as
// small as loopsColumns accepts of a constant, and rows are enough for a block on each multiprocessor: threads that share
// columns wait less where they are fewer. There are none if the default sizes have more columns.
func (lo columnKernel) fewColumns(a along) []*ir.Variant {
	n := algebra.Product(lo.k.Cols)
	if n.Op == ir.OpConst || lo.hasScan() || algebra.PointsAt(lo.k.Cols, lo.sizes) > threadColumns {
		return nil
	}
	return lo.aligned(a, false, func(vector int) (ir.Schedule, *ir.Expr) {
		many := algebra.AtLeastSize(algebra.Product(lo.k.Rows), int64(ir.ReferenceSMs*flatThreads*vector))
		return ir.Schedule{Mapping: ir.FlatMapping, Threads: flatThreads, Vector: vector}, algebra.And(algebra.AtMostSize(n, threadColumns), many)
	})
}

// oneGather are the variants of gathers with so few points that the device runs a thread for each vector at
// the same time. A thread has one vector, because a second one would only wait for the first.
func (lo columnKernel) oneGather(sections []*ir.Section, lane *ir.Range, vector int) []*ir.Variant {
	if len(lo.k.Cols) > 0 || !lo.gathers() {
		return nil
	}
	return lo.aligned(along{sections: sections, lane: lane, vector: vector}, false, func(vector int) (ir.Schedule, *ir.Expr) {
		few := ir.Apply(ir.OpLe, algebra.Product(lo.k.Rows), ir.IntConst(int64(ir.ReferenceSMs*forecast.ThreadsSM*vector)))
		return ir.Schedule{Mapping: ir.FlatMapping, Threads: pointThreads, Vector: vector}, few
	})
}

// heavyPoint is the work, in issue slots, of one result of a point from which points take longer one after the other in a
// thread than side by side, whatever their vectors save: four sines, as a rotation of a head has.
const heavyPoint = 80

// fewHeavy are the variants of heavy points so few that the device runs a thread for each at the same time. Random numbers
// come in vectors, so their points stay together.
func (lo columnKernel) fewHeavy(sections []*ir.Section, lane *ir.Range, vector int) []*ir.Variant {
	heavy := slices.ContainsFunc(lo.roots(), func(r root) bool { return form.WorkOf(*r.expr) >= heavyPoint })
	if len(lo.k.Cols) > 0 || vector == 1 || !heavy || lo.draws() {
		return nil
	}
	return lo.aligned(along{sections: sections, lane: lane, vector: 1}, false, func(vector int) (ir.Schedule, *ir.Expr) {
		few := algebra.AtMostSize(algebra.Product(lo.k.Rows), int64(ir.ReferenceSMs*forecast.ThreadsSM))
		return ir.Schedule{Mapping: ir.FlatMapping, Threads: pointThreads, Vector: vector}, few
	})
}

// draws reports whether the kernel draws random numbers.
func (lo columnKernel) draws() bool {
	return slices.ContainsFunc(lo.roots(), func(r root) bool { return ir.Has(*r.expr, ir.OpRandom, ir.OpRandom16) })
}

// streams is the number of tensors with an element for each point; or, where it is more than threads have vectors of, that of the
// elements that a point reads and stores: a recurrence reads and stores many of one tensor.
func (lo columnKernel) streams() int {
	n, points := 0, algebra.Product(lo.k.Rows)
	for _, a := range lo.k.Args {
		if ir.SameSize(algebra.Product(a.Buffer.Value.Axes), points) {
			n++
		}
	}
	if each := lo.accesses(); each > mostStreams {
		return each
	}
	return n
}

// accesses is the number of elements that a point reads and stores, in the same tensor or not.
func (lo columnKernel) accesses() int {
	reads := map[uint64]bool{}
	for _, r := range lo.roots() {
		ir.Walk(*r.expr, func(e *ir.Expr) bool {
			if e.Op == ir.OpRead {
				reads[e.Hash()] = true
			}
			return true
		})
	}
	return len(reads) + len(lo.stores)
}

// columnKernel makes the variants in which each thread owns neighbouring rows, and either loops over their columns
// itself or shares them with other threads.
type columnKernel struct {
	*kernel
	window bool // each row is a window that one thread reads alone: see contract_window.go
}
