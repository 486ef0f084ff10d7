package codegen

import (
	"maps"
	"slices"

	"github.com/fusec/fusec/codegen/skeleton"
	"github.com/fusec/fusec/ir"
)

// pointEmitter writes kernels without columns: each thread has VECTOR neighbours of the innermost range.
type pointEmitter struct{ laneEmitter }

func newPointwise(e *emitter) *pointEmitter { return &pointEmitter{laneEmitter{emitter: e}} }

// kernel writes a kernel whose threads have one vector each.
func (e *pointEmitter) kernel() {
	e.line("const INDEX t = (INDEX)%s * THREADS + threadIdx.x;", e.block)
	apart := e.lane != nil && !e.wholeLanes()
	e.flatPoint("return", !apart)
	if apart {
		e.apart()
		return
	}
	e.sections()
}

// pointwisePreludes are for kernels with reads of narrow elements that may be outside.
func pointwisePreludes(_ *ir.Kernel, v *ir.Variant) string {
	gathers := func(l *ir.Local) bool {
		r := readOf(l.Def)
		return l.Wide && r != nil && inWords(v, r)
	}
	if slices.ContainsFunc(v.Locals, gathers) {
		return skeleton.Text("gather")
	}
	return ""
}

// pointwiseBlocks is the number of blocks whose threads have a vector each, or Unroll of them.
func pointwiseBlocks(k *ir.Kernel, v *ir.Variant) *ir.Expr {
	return ceilDiv(laneVectors(k, v), int64(v.Schedule.Threads*max(1, v.Schedule.Unroll)))
}

// sections reads, computes and stores at the thread's position.
func (e *pointEmitter) sections() {
	for _, whole := range e.v.Sections {
		for _, sec := range e.inTurns(whole) {
			e.rowValues(sectionRoots(sec))
			e.flatStores(sec, nil, nil)
		}
	}
}

// Figures of sections with many stores.
const (
	manyStores     = 16 // stores from which on a section is cut
	storesTogether = 8  // stores of a cut section whose values a thread holds at the same time
)

// inTurns cuts a section with many stores: a thread reads and computes what a few of them need, stores it, and goes on. So the
// states of a recurrence, all of which are stored, need not be held to the end, for which registers would not do. Those with the
// fewest values before them come first. Where an argument is also another one, all reads stay ahead of all stores.
func (e *pointEmitter) inTurns(sec *ir.Section) []*ir.Section {
	if len(sec.Stores) <= manyStores || slices.ContainsFunc(e.k.Args, func(a *ir.Arg) bool { return a.Shared }) {
		return []*ir.Section{sec}
	}
	needs := map[*ir.Store]int{}
	for _, st := range sec.Stores {
		needs[st] = len(ir.LocalsIn(e.v.Locals, st.Offset, st.Guard, st.Value))
	}
	stores := slices.Clone(sec.Stores)
	slices.SortStableFunc(stores, func(a, b *ir.Store) int { return needs[a] - needs[b] })
	var out []*ir.Section
	for some := range slices.Chunk(stores, storesTogether) {
		part := *sec
		part.Stores = some
		out = append(out, &part)
	}
	return out
}

// apart writes the sections twice: for vectors that are wholly inside, and for others. The compiler puts
// the branch that is written last on the straight path. With one text for both, a read of narrow
// elements would have two forms, whose results have to be joined before the next read is issued. Each
// read would then wait for memory, and few threads cannot hide that.
func (e *pointEmitter) apart() {
	left, done := e.s.Expr(e.laneExtent())+" - first", maps.Clone(e.done)
	e.open("if (%s < VECTOR)", left)
	e.line("[[maybe_unused]] const int n = (int)(%s);", left)
	e.sections()
	e.orElse()
	e.line("[[maybe_unused]] constexpr int n = VECTOR;")
	e.allLanes, e.done = true, done
	e.sections()
	e.allLanes = false
	e.close()
}
