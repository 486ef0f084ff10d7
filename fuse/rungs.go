package fuse

import "github.com/fusec/fusec/ir"

// rungs is the reduction ladder of rows held on chip: threads of a block on a
// row, vectors each of them holds, and blocks of a cluster on a row. The first
// that takes a row is used. Rows that are no whole number of vectors have fewer
// rungs: each is one more kernel to compile for a program that meets many lengths.
var rungs = []rung{
	{32, 1, 1, false}, {32, 4, 1, true}, {128, 2, 1, false}, {256, 2, 1, false}, {512, 2, 1, false}, {512, 4, 1, true},
	{1024, 4, 1, true}, {512, 4, 2, true}, {512, 4, 4, true}, {512, 4, 8, true}, {1024, 4, 8, true},
}

type rung struct {
	threads, items, cluster int
	singles                 bool // also for rows of single elements
}

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

// aheadRungs are for rows too long for one block's registers as above: all of a
// multiprocessor works on a row, or a cluster of those, and the next row is on its way
// to shared memory meanwhile.
var aheadRungs = []rung{{1024, 8, 1, false}, {1024, 8, 2, false}, {1024, 8, 4, false}, {1024, 8, 8, false}}

// A thread of these has 64 registers, half of them for its part of the row. The work of a
// point beyond which the rest may not do was found by compiling the examples.
const (
	aheadRegisters = 32
	aheadSlots     = 84
)

// aheadVariants are the variants of these rungs: one body with other numbers. There are
// none where the device or the kernel cannot: all that is held must be whole rows of
// tensors, in order and aligned, which the first sweep reads.
func (lo *lowering) aheadVariants(sections []*ir.Section, lane *ir.Range, vector int, length *ir.Expr) []*ir.Variant {
	if !lo.f.opts.Device.Clusters() || lo.hasScan() || lo.slots() > aheadSlots {
		return nil
	}
	if len(lo.k.Rows) == 0 || len(lo.k.Walk) > 0 { // one row, or rows that have a loop already
		return nil
	}
	b := newBody(lo)
	body := &ir.Variant{Sections: b.sections(sections), Locals: b.locals}
	needs, _ := lo.widen(body, lane, vector)
	words := 0.0
	for _, l := range keep(body) {
		switch {
		case lo.wholeRows(l, vector):
			body.Keep = append(body.Keep, l)
			words += registersOf(l)
		case readIn(l.Def) != nil:
			return nil
		}
	}
	if len(body.Keep) == 0 || !readFirst(body) {
		return nil
	}
	body.Staged = body.Keep
	var out []*ir.Variant
	for _, r := range aheadRungs {
		for r.items > 1 && words*float64(r.items*vector) > aheadRegisters {
			r.items /= 2
		}
		v := *body
		v.Schedule = ir.Schedule{Mapping: ir.RowMapping, Threads: r.threads, RowThreads: r.threads,
			Vector: vector, Items: r.items, Stages: 1}
		if r.cluster > 1 {
			v.Schedule.Cluster = r.cluster
		}
		longest := ir.IntConst(int64(r.threads * r.items * r.cluster * vector))
		v.When = and(ir.Apply(ir.OpLe, length, longest), needs)
		out = append(out, &v)
	}
	return out
}

// wholeRows reports whether a local is a read that walks the columns in the order of
// memory, at a place known from the row's number, each row in whole vectors of as many
// bytes as the copy engine counts in.
func (lo *lowering) wholeRows(l *ir.Local, vector int) bool {
	r := readIn(l.Def)
	if r == nil || !l.Wide || r.Guard != nil || variesWithLocals(r.Args[0]) || vector*r.Type.Size()%accessBytes != 0 {
		return false
	}
	inner := ir.IntConst(1)
	for d := len(lo.k.Cols) - 1; d >= 0; d-- {
		stride, ok := ir.Stride(r.Args[0], lo.k.Cols[d], ir.Facts{Positive: true})
		if !ok || !ir.SameSize(stride, inner) {
			return false
		}
		inner = ir.Simplify(ir.Apply(ir.OpMul, inner, lo.k.Cols[d].Extent), ir.Facts{})
	}
	return true
}

func variesWithLocals(e *ir.Expr) bool {
	found := false
	ir.Walk(e, func(e *ir.Expr) bool {
		found = found || e.Op == ir.OpLocal
		return !found
	})
	return found
}

// readFirst reports whether the first sweep needs all that is held.
func readFirst(v *ir.Variant) bool {
	first := needed(v.Sections[0], nil, map[*ir.Local]bool{})
	for _, l := range v.Keep {
		if !first[l] {
			return false
		}
	}
	return len(v.Sections[0].Folds) > 0
}
