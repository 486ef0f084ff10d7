package codegen

import (
	"fmt"

	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/ir"
)

// newColumnGroup is the emitter of strategies in which COL_THREADS threads share columns.
func newColumnGroup(e *emitter) *columnEmitter {
	return &columnEmitter{laneEmitter: laneEmitter{emitter: e, stays: true}}
}

// group writes a kernel whose blocks, or clusters, have all columns of their rows.
func (e *columnEmitter) group() {
	block := "(INDEX)" + e.block
	if e.shared() {
		block = "(INDEX)(blockIdx.x / CLUSTER)"
		e.line("cluster_arrive(); // waited for before the first exchange")
		e.line("const int rank = cluster_rank();")
	}
	e.groupShape()
	e.line("const INDEX t = %s * LANES + threadIdx.x %% LANES;", block)
	e.flatPoint("return", true)
	e.sections(func(number int, sec *ir.Section) {
		if len(sec.Scans()) > 0 {
			e.groupScan(number, sec)
		} else {
			e.groupPass(number, sec)
		}
	})
}

// shared reports whether the blocks of a cluster share the columns of their rows.
func (e *columnEmitter) shared() bool { return e.v.Schedule.Cluster > 1 }

// firstBlock is the text ahead of a condition that holds in the first block of a cluster alone.
func (e *columnEmitter) firstBlock() string {
	if e.shared() {
		return "rank == 0 && "
	}
	return ""
}

// groupStep is how many columns further the next one of a thread is.
func (e *columnEmitter) groupStep() string {
	if e.shared() {
		return "CLUSTER * COL_THREADS"
	}
	return "COL_THREADS"
}

// groupShape writes which rows and columns of the block a thread has.
func (e *columnEmitter) groupShape() {
	e.line("constexpr int LANES = THREADS / COL_THREADS;")
	e.line("[[maybe_unused]] constexpr int MERGED = LANES < 32 ? THREADS / 32 : COL_THREADS; // groups, once those of a warp are one")
	e.line("const int group = threadIdx.x / LANES;")
}

// groupPass writes one pass over the columns in the flat mapping. COL_THREADS threads share the
// columns of the same rows: each takes every COL_THREADS-th column, with ITEMS of them in
// flight. The threads' states are then merged in order.
func (e *columnEmitter) groupPass(number int, sec *ir.Section) {
	states, full := e.groupHead(number, sec)
	reads, rest := e.splitReads(full)
	e.groupStream(sec, full, func() {
		e.groupLoads(reads)
		e.columns(append(definitions(rest), sectionRoots(sec)...), func() { e.groupCompute(sec, rest, states) })
	})
	e.groupReduce(sec, states)
}

func groupDefines(v *ir.Variant) string {
	text := fmt.Sprintf("#define COL_THREADS %d\n#define ITEMS %d\n", v.Schedule.ColThreads, v.Schedule.Unroll)
	if n := v.Schedule.Cluster; n > 1 {
		text += fmt.Sprintf("#define CLUSTER %d\n", n)
	}
	return text
}

// groupBlocks is the number of blocks; ColThreads of the threads of a block share a vector of rows.
func groupBlocks(k *ir.Kernel, v *ir.Variant) *ir.Expr {
	return ceilDiv(laneVectors(k, v), int64(v.Schedule.Threads/v.Schedule.ColThreads))
}

// groupHead writes the text before a pass: values of the rows, and the initial states of the thread's folds. It
// returns the states, and the column-level locals that the pass needs.
func (e *columnEmitter) groupHead(number int, sec *ir.Section) (states map[*ir.Fold]string, full []*ir.Local) {
	e.rowValues(sectionRoots(sec))
	e.line("")
	e.line("// pass %d%s", number+1, foldNames(sec))
	states = e.laneStates(sec, "_part")
	return states, e.ofColumns(sec)
}

// groupStream writes the loop over the group's columns, ITEMS at a time: first whole rounds without checks, then the
// rest.
func (e *columnEmitter) groupStream(sec *ir.Section, full []*ir.Local, body func()) {
	cols := e.s.Expr(product(extents(e.k.Cols)))
	e.open("if (n > 0)")
	if e.wholeLanes() {
		e.line("[[maybe_unused]] constexpr int n = VECTOR;")
	}
	conds, limit := e.prefix(sec, full, cols)
	step, start := e.groupStep(), "group"
	if e.shared() {
		start = "rank * COL_THREADS + group"
	}
	e.line("const INDEX whole = %s - (ITEMS - 1) * %s;", limit, step)
	e.line("INDEX base = %s;", start)
	e.inside(conds, func() {
		e.open("for (; base < whole; base += ITEMS * %s)", step)
		body()
		e.close()
	})
	e.open("for (; base < %s; base += ITEMS * %s)", cols, step)
	body()
	e.close()
	e.close()
}

// groupLoads issues the reads of all columns of a round.
func (e *columnEmitter) groupLoads(reads []*ir.Local) {
	if len(reads) == 0 {
		return
	}
	for _, l := range reads {
		vec, name := e.columnVector(l)
		e.line("%s %s[%s];", vec, name, e.items())
	}
	e.columns(definitions(reads), func() { e.columnLoads(reads, e.rawName) })
}

// groupCompute folds and stores one column.
func (e *columnEmitter) groupCompute(sec *ir.Section, rest []*ir.Local, states map[*ir.Fold]string) {
	inLane := e.columnValues(rest)
	compute := func() {
		for _, l := range inLane {
			e.constant(l)
		}
		e.flatFolds(sec, states)
	}
	if len(sec.Stores) == 0 {
		e.flatLanes(readsMemory(append(definitions(inLane), sectionRoots(sec)...)...), compute)
		return
	}
	e.flatStores(sec, inLane, compute)
}

// groupReduce merges the states of the groups, maxima before the sums that
// follow them. Every thread gets the totals of its lanes.
func (e *columnEmitter) groupReduce(sec *ir.Section, states map[*ir.Fold]string) {
	lead, follow := ordered(sec)
	e.groupMerge(lead, states)
	for _, f := range follow {
		m, part := e.place[f.After.Result], states[f.After]
		e.line("#pragma unroll")
		e.line("for (int v = 0; v < VECTOR; ++v) if (%s != %s) %s *= %s;", part, m, states[f], e.rescaled(f, part, m))
	}
	e.groupMerge(follow, states)
}

// groupMerge merges the groups of a warp, then the warps, each element by one thread.
func (e *columnEmitter) groupMerge(folds []*ir.Fold, states map[*ir.Fold]string) {
	if len(folds) == 0 {
		return
	}
	slots, totals, parts := make([]string, len(folds)), make([]string, len(folds)), make([]string, len(folds))
	for i, f := range folds {
		if e.shared() {
			parts[i] = e.names.Fresh(f.Result.Name + "_parts")
			e.line("__shared__ %s %s[CLUSTER][LANES][VECTOR];", foldType(f), parts[i])
		}
		slots[i], totals[i] = e.names.Fresh(f.Result.Name+"_slots"), e.names.Fresh(f.Result.Name+"_totals")
		e.line("__shared__ %s %s[MERGED][LANES][VECTOR], %s[LANES][VECTOR];", foldType(f), slots[i], totals[i])
		e.line("#pragma unroll")
		e.open("for (int v = 0; v < VECTOR; ++v)")
		e.line("const %s warp = reduce_groups<%s, LANES>(%s);", foldType(f), foldClass(f.Op), states[f])
		e.line("if (LANES >= 32 || threadIdx.x %% 32 < LANES) %s[threadIdx.x / (THREADS / MERGED)][threadIdx.x %% LANES][v] = warp;", slots[i])
		e.close()
	}
	e.line("__syncthreads();")
	if e.shared() && !e.awaited {
		e.line("cluster_wait();")
		e.awaited = true
	}
	e.open("for (int at = threadIdx.x; at < LANES * VECTOR; at += THREADS)")
	for i, f := range folds {
		total := e.foldSlots(f, slots[i], "MERGED")
		if e.shared() {
			e.line("#pragma unroll")
			e.line("for (int g = 0; g < CLUSTER; ++g) send(&%s[rank][at / VECTOR][at %% VECTOR], %s, g);", parts[i], total)
		} else {
			e.line("%s[at / VECTOR][at %% VECTOR] = %s;", totals[i], total)
		}
	}
	e.close()
	if e.shared() {
		e.peerMerge(folds, parts, totals)
	}
	e.line("__syncthreads();")
	for i, f := range folds {
		name := e.names.Fresh(f.Result.Name)
		e.line("%s %s[VECTOR];", spell.ComputeType(f.Result.Type), name)
		e.line("#pragma unroll")
		e.open("for (int v = 0; v < VECTOR; ++v)")
		e.line("const %s total = %s[threadIdx.x %% LANES][v];", foldType(f), totals[i])
		total := foldResult(f, "total")
		if f.After != nil {
			total = fmt.Sprintf("%s == -infinity() && %s > 0 ? nan32() : %s", e.place[f.After.Result], e.s.Expr(product(extents(e.k.Cols))), total)
		}
		e.noted(f.Result.Span, "%s[v] = %s;", name, total)
		e.close()
		e.place[f.Result] = name + "[v]"
	}
}

// peerMerge merges the totals of the blocks of a cluster, in their order, in each of them. No block may send before all have begun,
// and none reads before all have sent.
func (e *columnEmitter) peerMerge(folds []*ir.Fold, parts, totals []string) {
	e.line("cluster_arrive();")
	e.line("cluster_wait();")
	e.open("for (int at = threadIdx.x; at < LANES * VECTOR; at += THREADS)")
	for i, f := range folds {
		e.line("%s[at / VECTOR][at %% VECTOR] = %s;", totals[i], e.foldSlots(f, parts[i], "CLUSTER"))
	}
	e.close()
}

// foldSlots writes the fold of what so many groups or blocks have left in slots, at the element at, and returns its name.
func (e *columnEmitter) foldSlots(f *ir.Fold, slots, count string) (total string) {
	total = e.names.Fresh(slots + "_total")
	e.line("%s %s = %s[0][at / VECTOR][at %% VECTOR];", foldType(f), total, slots)
	e.line("#pragma unroll")
	e.line("for (int g = 1; g < %[4]s; ++g) %[1]s = %[2]s::apply(%[1]s, %[3]s[g][at / VECTOR][at %% VECTOR]);", total, foldClass(f.Op), slots, count)
	return total
}
