package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Figures of the schedules; measured on an H200, see docs/performance.md.
const (
	scanUnroll      = 32  // columns a thread reads ahead of its scan in flat mapping
	scanThreads     = 64  // of a block there: all multiprocessors take part when rows are few
	scanAccess      = 4   // bytes of an access there
	unrolledSlots   = 600 // work up to which a short column loop is unrolled
	flatThreads     = 256
	pointThreads    = 128  // of a pointwise kernel; of one that moves little a point, starting blocks would take longer
	gatherUnroll    = 2    // vectors in flight of a thread whose reads wait for indices that are read
	fillUnroll      = 4    // and of one that moves one tensor: starting blocks would take longer
	smallColumns    = 64   // a constant number of columns up to this is worked on in flat mapping
	threadColumns   = 16   // and up to this is a loop in the thread
	keptRegisters   = 56   // of a thread, for what it holds of a row: more costs occupancy
	fullThread      = 32   // columns a thread holds from which registers limit the blocks in flight
	residentThreads = 1024 // of a multiprocessor working on held rows: 64 registers each
	otherRegisters  = 36   // addresses, indices and temporaries
	scalarItems     = 4    // single elements a thread holds in place of one vector
	largestScalar   = 16   // and the most of them: each has an address of its own
	warpThreads     = 32
	laneBlock       = 128  // threads of a block whose rows take a warp each, or share one
	sweepRegisters  = 32   // of a thread, for the vectors in flight of a longer one
	sweepValues     = 64   // and at most so many elements, which take a register each once they are converted
	shortRow        = 1024 // columns up to which such a row takes a warp
	scanColumns     = 32   // of a thread on a row that is scanned, at once
	scanRegisters   = 64   // of a thread, for those
	scanWork        = 16   // of a wide element that is scanned; beyond that issuing it takes longer than memory does
	groupRegisters  = 32   // of a thread, for the columns in flight in flat mapping: more costs occupancy
	groupGuarded    = 32   // elements in flight of a thread where some are left out: each takes a register
	groupSums       = 16   // of a thread, for its sums there: with more, fewer columns are in flight
	streamUnroll    = 4
	streamRegisters = 16 // of a thread, for the vectors in flight of a streaming sweep: more costs occupancy
)

// variants makes the kernel's bodies, one for each class of sizes.
func (lo *kernel) variants() []*ir.Variant {
	var out []*ir.Variant
	switch {
	case lo.r.stream != nil:
		return classes(attendKernel{lo}.attendVariants(), lo.small())
	case lo.r.folded != nil:
		return classes(foldKernel{warpgroupKernel{productKernel{lo}}}.foldVariants(), lo.small())
	case lo.order != nil:
		return classes(sortKernel{lo}.sortVariants(), lo.small())
	case lo.r.product != nil:
		lo.k.Template = ir.ContractTemplate
		return classes(rowProductKernel{sliceKernel{productKernel{lo}}}.rowProductVariants(lo.r.product, nil), lo.small())
	case len(lo.k.Walk) > 0:
		out = rowKernel{lo}.walkVariants()
	default:
		out = lo.reductionVariants()
	}
	out = append(scatterKernel{lo}.scatterVariants(), out...)
	if tiles := (productKernel{lo}).productVariants(); len(tiles) > 0 {
		lo.k.Template = ir.ContractTemplate
		if len(lo.folds) > 1 { // each column has the operands of several products in registers
			for _, v := range out {
				if v.Schedule.Unroll > 1 {
					v.Schedule.Unroll /= 2
				}
			}
		}
		out = append(tiles, out...)
	}
	return classes(out, lo.small())
}

// small is the condition under which every offset fits 32 bits; nil for always.
func (lo *kernel) small() *ir.Expr {
	var out *ir.Expr
	for _, size := range lo.extents() {
		out = algebra.And(out, ir.Apply(ir.OpLt, size, ir.IntConst(forecast.Largest32)))
	}
	return out
}

// extents lists the numbers of elements and of points that offsets go up to, and what indices reach
// beyond, each once.
func (lo *kernel) extents() []*ir.Expr {
	var out []*ir.Expr
	add := func(size *ir.Expr) {
		if !slices.ContainsFunc(out, func(s *ir.Expr) bool { return ir.SameSize(s, size) }) {
			out = append(out, size)
		}
	}
	for _, a := range lo.k.Args {
		add(algebra.Product(a.Buffer.Value.Axes))
	}
	add(algebra.Product(lo.k.Rows))
	add(algebra.Product(lo.k.Cols))
	for _, m := range lo.reach() {
		if !lo.below(m, out) {
			add(m)
		}
	}
	return out
}

// mapping chooses how a kernel with columns is spread over threads: along the
// range in which its reads are contiguous. Each read is charged the share of a
// 128-byte line that one element of it costs.
func (lo *kernel) mapping() ir.Mapping {
	if len(lo.k.Rows) == 0 {
		return ir.RowMapping
	}
	if n := algebra.Product(lo.k.Cols); n.Op == ir.OpConst && n.Int <= smallColumns {
		return ir.FlatMapping
	}
	row, col := 0.0, 0.0
	for _, root := range lo.roots() {
		ir.Walk(*root.expr, func(e *ir.Expr) bool {
			if e.Op == ir.OpRead {
				row += algebra.LineShare(e.Args[0], algebra.Innermost(lo.k.Rows))
				col += algebra.LineShare(e.Args[0], algebra.Innermost(lo.k.Cols))
			}
			return true
		})
	}
	if row < col {
		return ir.FlatMapping
	}
	return ir.RowMapping
}

// flatVariants spreads the rows over threads; columns, if any, are a loop in the
// thread while they are few, else shared by a group of threads.
func (lo columnKernel) flatVariants() []*ir.Variant {
	sections := lo.sweeps(true)
	var lane *ir.Range
	if len(lo.k.Rows) > 0 {
		lane = algebra.Innermost(lo.k.Rows)
	}
	words := lo.rowWords(sections)
	vector := lo.vector()
	if lo.hasScan() { // a thread does a row's columns one by one: threads are what there is most of
		vector = max(1, vector*scanAccess/forecast.AccessBytes)
	}
	one := lo.oneGather(sections, lane, vector)
	flat := lo.aligned(sections, lane, vector, false, func(vector int) (ir.Schedule, *ir.Expr) {
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
		case lo.hasScan(): // each step needs the one before it: the columns stay with one thread
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
	return slices.Concat(lo.tileVariants(sections, lane), lo.groupScans(sections, lane), lo.aheadScans(sections, lane), one, lo.slabVariants(sections, lane, vector, words), flat)
}

// oneGather are the variants of gathers for so few points that the device has a thread for each
// vector at once: a second one would only wait behind the first.
func (lo columnKernel) oneGather(sections []*ir.Section, lane *ir.Range, vector int) []*ir.Variant {
	if len(lo.k.Cols) > 0 || !lo.gathers() {
		return nil
	}
	return lo.aligned(sections, lane, vector, false, func(vector int) (ir.Schedule, *ir.Expr) {
		few := ir.Apply(ir.OpLe, algebra.Product(lo.k.Rows), ir.IntConst(int64(ir.ReferenceSMs*forecast.ThreadsSM*vector)))
		return ir.Schedule{Mapping: ir.FlatMapping, Threads: pointThreads, Vector: vector}, few
	})
}

// streams is how many tensors have an element for each point.
func (lo columnKernel) streams() int {
	n, points := 0, algebra.Product(lo.k.Rows)
	for _, a := range lo.k.Args {
		if ir.SameSize(algebra.Product(a.Buffer.Value.Axes), points) {
			n++
		}
	}
	return n
}

// gathers reports whether a read's place is read from memory: two latencies in a
// row, which one access a thread does not cover.
func (lo *kernel) gathers() bool {
	for _, root := range lo.roots() {
		if ir.Contains(*root.expr, func(e *ir.Expr) bool { return e.Op == ir.OpRead && reads(e.Args[0]) }) {
			return true
		}
	}
	return false
}

// slots is the work of one point of the kernel.
func (lo *kernel) slots() int {
	n := 0
	for _, root := range lo.roots() {
		n += form.CostOf(*root.expr).Slots
	}
	return n
}

// aligned makes the variant for rows whose accesses are aligned to a vector, and
// the one for all others. A kernel that never needs alignment has only the first.
// schedule gives the schedule for a vector width and the sizes it is for.
func (lo *kernel) aligned(sections []*ir.Section, lane *ir.Range, vector int, hold bool,
	schedule func(vector int) (ir.Schedule, *ir.Expr)) []*ir.Variant {
	var out []*ir.Variant
	for {
		b := newBody(lo)
		v := &ir.Variant{Sections: b.sections(sections), Locals: b.locals}
		var when *ir.Expr
		v.Schedule, when = schedule(vector)
		if hold {
			v.Keep = keep(v)
		}
		needs, wide := lo.widen(v, lane, vector)
		if wide == 0 && vector > 1 {
			vector = 1
			continue
		}
		v.When = algebra.And(when, needs)
		if ir.Decide(algebra.OrTrue(v.When), ir.Facts{}) != ir.False {
			out = append(out, v)
		}
		if needs == nil || vector == 1 {
			return out
		}
		vector = 1
	}
}
