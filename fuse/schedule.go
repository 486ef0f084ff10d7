package fuse

import (
	"github.com/fusec/fusec/ir"
)

// Figures of the schedules; measured on an H200, see docs/performance.md.
const (
	scanUnroll      = 8   // columns a thread reads ahead of its scan in flat mapping
	groupUnroll     = 8   // columns in flight of a thread in flat mapping
	unrolledSlots   = 600 // work up to which a short column loop is unrolled
	flatThreads     = 256
	accessBytes     = 16 // the widest access of one thread
	widestVector    = 8
	smallColumns    = 64      // a constant number of columns up to this is a loop in the thread
	largest32       = 1 << 31 // elements that 32-bit offsets reach
	keptRegisters   = 56      // of a thread, for what it holds of a row: more costs occupancy
	registersSM     = 65536   // of a multiprocessor; a block of 1024 threads may use 64 each
	fullThread      = 32      // columns a thread holds from which registers limit the blocks in flight
	residentThreads = 1024    // of a multiprocessor working on held rows: 64 registers each
	otherRegisters  = 36      // addresses, indices and temporaries
	scalarItems     = 4       // single elements a thread holds in place of one vector
	largestScalar   = 16      // and the most of them: each has an address of its own
	laneBlock       = 128     // threads of a block whose rows take a warp each
	sweepThreads    = 256     // of a row that is read once
	shortRow        = 1024    // columns up to which such a row takes a warp
	streamThreads   = 512
	streamUnroll    = 4
	streamRegisters = 32 // of a thread, for the vectors in flight of a streaming sweep
)

// rungs is the reduction ladder of rows held on chip: threads of a block on a
// row, vectors each of them holds, and blocks of a cluster on a row. The first
// that takes a row is used.
var rungs = []rung{
	{32, 1, 1}, {32, 2, 1}, {32, 4, 1}, {128, 2, 1}, {256, 2, 1}, {512, 2, 1}, {512, 4, 1}, {1024, 4, 1},
	{512, 4, 2}, {512, 4, 4}, {512, 4, 8}, {1024, 4, 8},
}

type rung struct{ threads, items, cluster int }

// fit is the number of vectors a thread of the rung holds when one column takes
// the given registers.
func (r rung) fit(words float64, vector int) int {
	items := r.items
	if vector == 1 {
		items = min(items*scalarItems, largestScalar)
	}
	for items > 1 && words*float64(items*vector) > rowRegisters(r.threads) {
		items /= 2
	}
	return items
}

// columns is the longest row the rung takes.
func (r rung) columns(words float64, vector int) int {
	return r.threads * r.cluster * r.fit(words, vector) * vector
}

func (r rung) schedule(words float64, vector int) ir.Schedule {
	s := ir.Schedule{Mapping: ir.RowMapping, Threads: max(r.threads, laneBlock), RowThreads: r.threads, Vector: vector, Items: r.fit(words, vector)}
	if s.Items*vector >= fullThread { // else the compiler takes few registers by itself
		s.MinBlocks = residentThreads / s.Threads
	}
	if r.cluster > 1 {
		s.Cluster = r.cluster
	}
	return s
}

// variants makes the kernel's bodies, one for each class of sizes.
func (lo *lowering) variants() []*ir.Variant {
	var out []*ir.Variant
	switch {
	case len(lo.k.Cols) == 0 || lo.mapping() == ir.FlatMapping:
		out = lo.flatVariants()
	default:
		out = lo.rowVariants()
	}
	if tiles := lo.contractVariants(); len(tiles) > 0 {
		lo.k.Template = ir.ContractTemplate
		out = append(tiles, out...)
	}
	return classes(out, lo.small())
}

// classes adds the 32-bit condition to each variant, and the 64-bit versions of
// the last two, which take any size; it drops what can never be chosen.
func classes(in []*ir.Variant, small *ir.Expr) []*ir.Variant {
	in = reachable(in)
	var out []*ir.Variant
	for _, v := range in {
		v.When = and(small, v.When)
		if ir.Decide(orTrue(v.When), ir.Facts{}) == ir.False {
			continue
		}
		out = append(out, v)
		if v.When == nil {
			return out
		}
	}
	for _, v := range in[max(0, len(in)-2):] {
		large := *v
		large.When = withoutTerm(v.When, small)
		large.Schedule.Index64 = true
		out = append(out, &large)
		if large.When == nil {
			return out
		}
	}
	return out
}

// reachable drops what stands behind a variant that takes every size: of rows of
// constant length the first rung that is long enough.
func reachable(in []*ir.Variant) []*ir.Variant {
	for i, v := range in {
		if v.When == nil {
			return in[:i+1]
		}
	}
	return in
}

func orTrue(e *ir.Expr) *ir.Expr {
	if e == nil {
		return ir.IntNum(ir.Bool, 1)
	}
	return e
}

// and joins two conditions, either of which may be nil for true.
func and(a, b *ir.Expr) *ir.Expr {
	for _, e := range []*ir.Expr{a, b} {
		if e == nil || ir.Decide(e, ir.Facts{}) == ir.True {
			if e == a {
				a = nil
			} else {
				b = nil
			}
		}
	}
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return ir.Apply(ir.OpAnd, a, b)
}

// withoutTerm undoes and(term, rest).
func withoutTerm(e, term *ir.Expr) *ir.Expr {
	switch {
	case e == nil || e == term:
		return nil
	case e.Op == ir.OpAnd && e.Args[0] == term:
		return e.Args[1]
	}
	return e
}

// small is the condition under which every offset fits 32 bits; nil for always.
func (lo *lowering) small() *ir.Expr {
	limit := ir.IntConst(largest32)
	var out *ir.Expr
	var seen []*ir.Expr
	add := func(size *ir.Expr) {
		for _, s := range seen {
			if ir.SameSize(s, size) {
				return
			}
		}
		seen = append(seen, size)
		out = and(out, ir.Apply(ir.OpLt, size, limit))
	}
	for _, a := range lo.k.Args {
		add(product(a.Buffer.Value.Axes))
	}
	add(product(lo.k.Rows))
	add(product(lo.k.Cols))
	return out
}

// mapping chooses how a kernel with columns is spread over threads: along the
// range in which its reads are contiguous. Each read is charged the share of a
// 128-byte line that one element of it costs.
func (lo *lowering) mapping() ir.Mapping {
	if len(lo.k.Rows) == 0 {
		return ir.RowMapping
	}
	if n := product(lo.k.Cols); n.Op == ir.OpConst && n.Int <= smallColumns {
		return ir.FlatMapping
	}
	row, col := 0.0, 0.0
	for _, root := range lo.roots() {
		ir.Walk(*root.expr, func(e *ir.Expr) bool {
			if e.Op == ir.OpRead {
				row += lineShare(e.Args[0], innermost(lo.k.Rows))
				col += lineShare(e.Args[0], innermost(lo.k.Cols))
			}
			return true
		})
	}
	if row < col {
		return ir.FlatMapping
	}
	return ir.RowMapping
}

func innermost(ranges []*ir.Range) *ir.Range { return ranges[len(ranges)-1] }

// lineShare is the memory one lane's element costs when lanes walk r: 1 for
// neighbours, 1/32 for one element that all lanes share, 32 for scattered ones.
func lineShare(offset *ir.Expr, r *ir.Range) float64 {
	stride, ok := ir.Stride(offset, r, ir.Facts{Positive: true})
	switch {
	case ok && stride.IsConst(0):
		return 1.0 / 32
	case ok && stride.IsConst(1):
		return 1
	}
	return 32
}

// flatVariants spreads the rows over threads; columns, if any, are a loop in the
// thread while they are few, else shared by a group of threads.
func (lo *lowering) flatVariants() []*ir.Variant {
	sections := lo.sweeps(true)
	var lane *ir.Range
	if len(lo.k.Rows) > 0 {
		lane = innermost(lo.k.Rows)
	}
	words := lo.rowWords(sections)
	flat := lo.aligned(sections, lane, lo.vector(), false, func(vector int) (ir.Schedule, *ir.Expr) {
		s := ir.Schedule{Mapping: ir.FlatMapping, Threads: flatThreads, Vector: vector}
		switch n := product(lo.k.Cols); {
		case len(lo.k.Cols) == 0:
		case lo.hasScan(): // each step needs the one before it: the columns stay with one thread
			s.Unroll = scanUnroll
		case n.Op == ir.OpConst && n.Int <= smallColumns:
			if int(n.Int)*lo.slots() <= unrolledSlots {
				s.Unroll = int(n.Int)
			}
		default:
			s.ColThreads, s.Unroll = groupThreads, groupUnroll
			for s.Unroll > 1 && words*float64(s.Unroll*vector) > streamRegisters {
				s.Unroll /= 2
			}
		}
		return s, nil
	})
	return append(lo.tileVariants(sections, lane), flat...)
}

// slots is the work of one point of the kernel.
func (lo *lowering) slots() int {
	n := 0
	for _, root := range lo.roots() {
		n += costOf(*root.expr).slots
	}
	return n
}

// rowVariants gives each row a group of threads: the rungs of the ladder while a
// row fits on chip, then streaming.
func (lo *lowering) rowVariants() []*ir.Variant {
	var out []*ir.Variant
	held, streamed := lo.sweeps(false), lo.sweeps(true)
	length := product(lo.k.Cols)
	lane := innermost(lo.k.Cols)
	vector := lo.vector()
	if sweepsOf(streamed) == 1 {
		return lo.singleSweep(streamed, lane, vector, length)
	}
	words := lo.rowWords(held)
	reach := 0 // columns that the rungs so far take
	for _, r := range lo.ladder() {
		if longest := r.columns(words, vector); longest > reach {
			reach = longest
			out = append(out, lo.aligned(held, lane, vector, true, func(vector int) (ir.Schedule, *ir.Expr) {
				return r.schedule(words, vector), ir.Apply(ir.OpLe, length, ir.IntConst(int64(r.columns(words, vector))))
			})...)
		}
	}
	return append(out, lo.aligned(streamed, lane, vector, false, func(vector int) (ir.Schedule, *ir.Expr) {
		return lo.streaming(streamed, streamThreads, vector), nil
	})...)
}

// sweepsOf counts the passes over the columns.
func sweepsOf(sections []*ir.Section) int {
	n := 0
	for _, s := range sections {
		if s.Level == ir.FullLevel {
			n++
		}
	}
	return n
}

// singleSweep is the ladder of a kernel that reads its rows once: nothing is
// gained by holding them. Short rows take a warp, long ones a block.
func (lo *lowering) singleSweep(sections []*ir.Section, lane *ir.Range, vector int, length *ir.Expr) []*ir.Variant {
	short := lo.aligned(sections, lane, vector, false, func(vector int) (ir.Schedule, *ir.Expr) {
		s := lo.streaming(sections, 32, vector)
		s.Threads = laneBlock
		return s, ir.Apply(ir.OpLe, length, ir.IntConst(shortRow))
	})
	return append(short, lo.aligned(sections, lane, vector, false, func(vector int) (ir.Schedule, *ir.Expr) {
		return lo.streaming(sections, sweepThreads, vector), nil
	})...)
}

// streaming is the schedule of rows that are read in pieces.
func (lo *lowering) streaming(sections []*ir.Section, threads, vector int) ir.Schedule {
	s := ir.Schedule{Mapping: ir.RowMapping, Threads: threads, RowThreads: threads, Vector: vector, Unroll: streamUnroll}
	words := lo.rowWords(sections)
	for s.Unroll > 1 && words*float64(s.Unroll*vector) > streamRegisters {
		s.Unroll /= 2
	}
	return s
}

// ladder is the rungs that the device has.
func (lo *lowering) ladder() []rung {
	var out []rung
	for _, r := range rungs {
		if r.cluster == 1 || lo.f.opts.Device.Clusters() && !lo.hasScan() {
			out = append(out, r)
		}
	}
	return out
}

// rowWords is the registers that one column of a held row takes in a thread.
func (lo *lowering) rowWords(sections []*ir.Section) float64 {
	b := newBody(lo)
	v := &ir.Variant{Sections: b.sections(sections), Locals: b.locals}
	return words(v, keep(v))
}

// rowRegisters is what a thread has for the values of its row.
func rowRegisters(threads int) float64 {
	return float64(min(keptRegisters, registersSM/threads-otherRegisters))
}

// aligned makes the variant for rows whose accesses are aligned to a vector, and
// the one for all others. A kernel that never needs alignment has only the first.
// schedule gives the schedule for a vector width and the sizes it is for.
func (lo *lowering) aligned(sections []*ir.Section, lane *ir.Range, vector int, hold bool,
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
		v.When = and(when, needs)
		if ir.Decide(orTrue(v.When), ir.Facts{}) != ir.False {
			out = append(out, v)
		}
		if needs == nil || vector == 1 {
			return out
		}
		vector = 1
	}
}

// vector is the number of elements in one access: 16 bytes of the narrowest
// tensor that the innermost loop walks.
// widen marks the accesses that take a whole vector along lane, and returns the
// condition on the symbols that makes them aligned; nil when they always are.
// randomWords is how many neighbouring indices share one block of random bits.
// contiguousFrom reports whether offsets run with lane, starting at a multiple of
// vector wherever lane does; assumed says that this rests on the facts.
// variesThroughLocals reports whether e holds a local that may differ between the
// lanes: an index read from memory, or in flat mapping a reduction's result.
// uniform reports whether a guard holds for all lanes of an aligned vector or for
// none: it does not depend on the lane, or it compares an offset that runs with
// the lane from a multiple of the vector to a bound that is such a multiple. used
// is set where that rests on facts beyond what is known.
