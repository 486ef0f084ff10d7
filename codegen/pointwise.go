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
	for _, sec := range e.v.Sections {
		e.rowValues(sectionRoots(sec))
		e.flatStores(sec, nil, nil)
	}
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
