package codegen

import (
	"fmt"

	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/ir"
)

// Row-chunk accumulation: a block works on the rows of a chunk one after the other, and some of its results
// (ir.Partial) are accumulated over these rows, a value for each column. The running values are in registers
// where the row is persistent. In a looped reduction they are in memory, where each thread has its own columns.

// rowAccumulate writes these kernels.
type rowAccumulate struct {
	*rowEmitter
	running map[*ir.Partial]string // running values of accumulated results
}

func newRowAccumulate(e *emitter, looped bool) *rowAccumulate {
	w := &rowAccumulate{rowEmitter: newRow(e, looped), running: map[*ir.Partial]string{}}
	w.accumulates, w.partial = true, w.accumulate
	return w
}

func (e *rowAccumulate) kernel() {
	e.placeColumns()
	e.chunkLoop(func() {}, func() {})
}

// placeColumns writes where in a row the thread is, and how many columns there are.
func (e *rowAccumulate) placeColumns() {
	e.line("[[maybe_unused]] const int lane = threadIdx.x %% ROW_THREADS;")
	e.line("const INDEX cols = %s;", e.s.Bare(product(extents(e.k.Cols))))
}

// groups is the number of rows that a block works on at once.
func (e *rowAccumulate) groups() int { return e.v.Schedule.Threads / e.v.Schedule.RowThreads }

// accumulateBlocks is the number of blocks: each has a chunk of rows.
func accumulateBlocks(k *ir.Kernel, _ *ir.Variant) *ir.Expr {
	return product(extents(k.Rows[:len(k.Rows)-len(k.Accumulated)]))
}

// chunkLoop writes a loop over the rows of a chunk around the body of a row. begin writes what comes
// before the loop, next what comes at the end of each row.
func (e *rowAccumulate) chunkLoop(begin, next func()) {
	before := e.k.Rows[:len(e.k.Rows)-len(e.k.Accumulated)]
	e.take(before, "(INDEX)blockIdx.x", e.every()...)
	e.line("const INDEX steps = %s;", e.s.Bare(product(extents(e.k.Accumulated))))
	begin()
	if !e.looped {
		e.declareRegisters()
		e.hoist()
	} else {
		e.clearMemory()
	}
	e.line("[[maybe_unused]] int turn = 0; // of the two sets of slots that rows use in turn")
	first := "0"
	if e.groups() > 1 {
		first = "(INDEX)(threadIdx.x / ROW_THREADS)"
	}
	e.open("for (INDEX step = %s; step < steps; step += THREADS / ROW_THREADS, turn ^= 1)", first)
	e.take(e.k.Accumulated, "step", e.every()...)
	if e.k.Inside != nil {
		e.line("if (!(%s)) continue;", e.s.Bare(e.k.Inside))
	}
	e.rowBody()
	next()
	e.close()
	if !e.looped {
		e.storePartials()
	}
}

// hoist writes the reads of kept values that are the same for all rows of the chunk, before the loop over the
// rows.
func (e *rowAccumulate) hoist() {
	var same []*ir.Local
	for _, l := range e.v.Keep {
		if readOf(l.Def) != nil && !variesOver(l.Def, e.k.Accumulated) {
			same = append(same, l)
			e.hoisted[l] = true
		}
	}
	e.loadLoop(same)
}

// partials lists the accumulated results.
func (e *rowAccumulate) partials() []*ir.Partial {
	var out []*ir.Partial
	for _, s := range e.v.Sections {
		out = append(out, s.Partials...)
	}
	return out
}

// declareRegisters declares the running values in registers.
func (e *rowAccumulate) declareRegisters() {
	for _, p := range e.partials() {
		name := e.names.Fresh(p.Arg.Name + "_acc")
		e.running[p] = name
		e.line("%s %s[ITEMS][VECTOR];", spell.ComputeType(p.Arg.Type), name)
		e.line("#pragma unroll")
		e.line("for (int u = 0; u < ITEMS; ++u)")
		e.line("#pragma unroll")
		e.line("    for (int v = 0; v < VECTOR; ++v) %s[u][v] = %s;", name, spell.Literal(p.Op.Identity(p.Body.Type)))
	}
}

// clearMemory sets the running values in memory to the identity.
func (e *rowAccumulate) clearMemory() {
	e.eachVector(func() {
		for _, p := range e.partials() {
			e.line("%s[%s] = %s;", e.args[p.Arg], e.s.Bare(p.Offset), spell.Literal(p.Op.Identity(p.Body.Type)))
		}
	})
}

// eachVector writes a loop over the columns of the thread, one at a time.
func (e *rowAccumulate) eachVector(body func()) {
	var uses []*ir.Expr
	for _, p := range e.partials() {
		uses = append(uses, p.Offset)
	}
	e.base = e.names.Fresh("base")
	e.open("for (INDEX %s = 0; %s < cols; %s += (INDEX)ITEMS * (CLUSTER * ROW_THREADS) * VECTOR)", e.base, e.base, e.base)
	e.vectors(uses, body)
	e.close()
}

// accumulate adds the current element of a lane to its running value.
func (e *rowAccumulate) accumulate(sec *ir.Section) {
	for _, p := range sec.Partials {
		state := e.running[p] + "[u][v]"
		if e.looped {
			state = fmt.Sprintf("%s[%s]", e.args[p.Arg], e.s.Bare(p.Offset))
		}
		e.noted(p.Span, "%s = %s::apply(%s, %s);", state, foldClass(p.Op), state, e.s.Bare(p.Body))
	}
}

// storePartials merges the running values of the rows that a block works on at once,
// in their order, and stores them.
func (e *rowAccumulate) storePartials() {
	e.line("")
	e.line("// end of the chunk")
	for _, p := range e.partials() {
		if e.groups() > 1 {
			e.mergeGroups(p)
		}
	}
	if e.groups() > 1 {
		e.open("if (threadIdx.x < ROW_THREADS)")
		defer e.close()
	}
	e.openVectors()
	var wide []*ir.Expr
	for _, p := range e.partials() {
		if p.Wide {
			wide = append(wide, e.wideOffset(p.Offset))
		}
	}
	e.take(e.k.Cols, "c", wide...)
	for _, p := range e.partials() {
		if p.Wide {
			e.line("store<VECTOR>(%s + %s, %s[u], n);", e.args[p.Arg], e.s.Expr(e.wideOffset(p.Offset)), e.running[p])
			continue
		}
		e.lanes([]*ir.Expr{p.Offset}, func() {
			e.line("%s[%s] = %s[u][v];", e.args[p.Arg], e.s.Bare(p.Offset), e.running[p])
		})
	}
	e.closeVectors()
}

// mergeGroups merges the running values of all groups of threads into those of the first group.
func (e *rowAccumulate) mergeGroups(p *ir.Partial) {
	slots := e.names.Fresh(p.Arg.Name + "_slots")
	e.line("__shared__ %s %s[THREADS / ROW_THREADS][ITEMS][VECTOR][ROW_THREADS];", spell.ComputeType(p.Arg.Type), slots)
	loops := func(body string) {
		e.line("#pragma unroll")
		e.line("for (int u = 0; u < ITEMS; ++u)")
		e.line("#pragma unroll")
		e.line("    for (int v = 0; v < VECTOR; ++v) %s", body)
	}
	loops(fmt.Sprintf("%s[threadIdx.x / ROW_THREADS][u][v][lane] = %s[u][v];", slots, e.running[p]))
	e.line("__syncthreads();")
	e.line("for (int g = 1; g < THREADS / ROW_THREADS; ++g)")
	loops(fmt.Sprintf("%s[u][v] = %s::apply(%s[u][v], %s[g][u][v][lane]);", e.running[p], foldClass(p.Op), e.running[p], slots))
}
