package codegen

import (
	"fmt"
	"strings"

	"github.com/fusec/fusec/ir"
)

// groupScan writes one pass over the columns with scans along them, in the flat mapping. The
// COL_THREADS threads that own the same rows take ITEMS neighbouring columns each, together a
// tile. Each scans its own columns, they exchange the totals, and each adds the total of the
// columns before its own. The reads of the next tile are under way meanwhile.
func (e *columnEmitter) groupScan(number int, sec *ir.Section) {
	states, full := e.groupHead(number, sec)
	reads, rest := e.splitReads(full)
	cols := e.s.Expr(product(extents(e.k.Cols)))
	e.open("")
	e.line("constexpr INDEX tile = (INDEX)ITEMS * COL_THREADS;")
	e.line("const INDEX cols = n > 0 ? %s : 0; // of this thread's lanes", cols)
	if e.wholeLanes() {
		e.line("[[maybe_unused]] constexpr int n = VECTOR;")
	}
	first, more, step := "0", fmt.Sprintf("base < %s", cols), "base += tile"
	next := "base + tile"
	if sec.Reverse {
		first, more, step, next = fmt.Sprintf("(%s - 1) / tile * tile", cols), "base >= 0", "base -= tile", "base - tile"
	}
	e.scanReads(reads, sec.Reverse)
	if len(reads) > 0 {
		e.line("fetch(%s);", first)
	}
	e.line("int turn = 0; // of the two sets of slots that tiles use in turn")
	e.open("for (INDEX base = %s; %s; %s, turn ^= 1)", first, more, step)
	e.arrived(reads)
	if len(reads) > 0 {
		e.line("fetch(%s);", next)
	}
	for _, wave := range waves(sec.Scans()) {
		e.groupWave(wave, rest, states, sec.Reverse)
	}
	e.tileColumns(append(definitions(rest), sectionRoots(sec)...), sec.Reverse, func() { e.groupCompute(sec, rest, states) })
	e.close()
	e.close()
	e.groupReduce(sec, states)
}

// flatScan writes a pass with scans in which each thread has its own rows. It goes column by
// column, with the reads of the next columns under way: to shared memory if the schedule has
// stages, else to registers. Whole stages have no checks. Branches would keep the compiler from
// mixing the work of several columns, and there are too few threads to hide the latency.
func (e *columnEmitter) flatScan(sec *ir.Section, full []*ir.Local, states map[*ir.Fold]string) {
	reads, rest := e.splitReads(full)
	e.open("")
	e.line("const INDEX cols = %s;", e.s.Expr(product(extents(e.k.Cols))))
	if e.pipelined {
		e.scanStages(reads, sec.Reverse)
	} else if len(reads) > 0 {
		e.scanReads(reads, sec.Reverse)
		e.line("fetch(0);")
	}
	stage := func() {
		switch {
		case e.pipelined:
			e.scanArrived(reads, sec.Reverse)
		case len(reads) > 0:
			e.arrived(reads)
			e.line("fetch(base + ITEMS);")
		}
		uses := append(definitions(rest), sectionRoots(sec)...)
		e.tileColumns(uses, sec.Reverse, func() { e.flatColumn(sec, rest, states) })
		if e.pipelined {
			e.line("if (++stage == STAGES) stage = 0;")
		}
	}
	e.line("INDEX base = 0;")
	e.inside(nil, func() {
		e.open("for (; base + ITEMS <= cols; base += ITEMS)")
		stage()
		e.close()
	})
	e.open("if (base < cols)")
	stage()
	e.close()
	e.close()
}

func columnPipelineDefines(v *ir.Variant) string {
	return columnDefines(v) + fmt.Sprintf("#define STAGES %d\n", v.Schedule.Stages)
}

// columnsShared is the shared memory of those columns.
func columnsShared(v *ir.Variant) int {
	s := v.Schedule
	return s.Stages * s.Unroll * s.Threads * s.Vector * stagedBytes(v)
}

// scanStages writes the function that starts the copies of ITEMS columns to a stage, and the
// filling of the first stages. A thread that has nothing left to copy still commits a group,
// because groups are counted.
func (e *columnEmitter) scanStages(reads []*ir.Local, reverse bool) {
	e.line("extern __shared__ __align__(16) unsigned char next_columns[]; // of each read [STAGES][ITEMS][THREADS]")
	e.stagedVectors("", "next_columns", "STAGES * ITEMS * THREADS")
	e.open("auto fetch = [&](INDEX base, int stage)")
	copies := func() {
		e.tileColumns(definitions(reads), reverse, func() { e.copyColumn(reads) })
	}
	e.inside(nil, func() {
		e.open("if (base + ITEMS <= cols)")
		copies()
		e.close()
	})
	e.open("else")
	copies()
	e.close()
	e.line("prefetch_commit();")
	e.closeWith(";")
	e.line("#pragma unroll 1")
	e.line("for (int stage = 0; stage < STAGES; ++stage) fetch((INDEX)stage * ITEMS, stage);")
	e.line("int stage = 0;")
}

// copyColumn writes the copies of the thread's reads of the column in hand.
func (e *columnEmitter) copyColumn(reads []*ir.Local) {
	for _, l := range reads {
		r := readOf(l.Def)
		e.atFirst(func() {
			e.noted(l.Span, "prefetch_copy<VECTOR * %d>(%s, %s + %s);", r.Type.Size(), e.stagedColumn(l), e.args[r.Arg],
				e.s.Expr(e.wideOffset(r.Args[0])))
		})
	}
}

// stagedColumn is the place in shared memory of a read of the column in hand.
func (e *columnEmitter) stagedColumn(l *ir.Local) string {
	return fmt.Sprintf("%s + (stage * ITEMS + u) * THREADS + threadIdx.x", e.staged[l])
}

// scanArrived writes the step that reads an arrived stage to registers and starts to fill it
// again.
func (e *columnEmitter) scanArrived(reads []*ir.Local, reverse bool) {
	e.line("prefetch_wait<STAGES - 1>();")
	for _, l := range reads {
		vec, name := e.columnVector(l)
		e.line("%s %s[ITEMS];", vec, name)
	}
	e.tileColumns(nil, reverse, func() {
		for _, l := range reads {
			e.line("%s[u] = *(%s);", e.rawName[l], e.stagedColumn(l))
		}
	})
	e.line("fetch(base + (INDEX)STAGES * ITEMS, stage);")
}

// arrived makes the prefetched tile the current one.
func (e *columnEmitter) arrived(reads []*ir.Local) {
	for _, l := range reads {
		e.line("launder(%s); // or narrow elements would be taken apart as soon as they are there: a wait", e.staged[l])
		e.line("#pragma unroll")
		e.line("for (int u = 0; u < ITEMS; ++u) %s[u] = %s[u];", e.rawName[l], e.staged[l])
	}
}

// scanReads declares the registers for the reads of the current tile and of the next one, and the function that
// issues the reads of the tile at `base`. The registers of the next tile start as zeros, although nothing uses
// them if no column was read: ptxas 13.0 reuses registers that have no value at the start of a loop, in all
// rounds of the loop.
func (e *columnEmitter) scanReads(reads []*ir.Local, reverse bool) {
	if len(reads) == 0 {
		return
	}
	for _, l := range reads {
		vec, name := e.columnVector(l)
		e.staged[l] = e.names.Fresh(l.Name + "_next")
		e.line("%s %s[ITEMS], %s[ITEMS] = {};", vec, name, e.staged[l])
	}
	e.open("auto fetch = [&](INDEX base)")
	e.tileColumns(definitions(reads), reverse, func() { e.columnLoads(reads, e.staged) })
	e.closeWith(";")
}

// tileColumns writes a loop over the thread's columns of a tile with their coordinates. A
// thread that has the columns to itself counts from the end at which the scan begins.
func (e *columnEmitter) tileColumns(uses []*ir.Expr, reverse bool, body func()) {
	e.line("#pragma unroll")
	e.open("for (int u = 0; u < ITEMS; ++u)")
	switch {
	case e.stays:
		e.line("[[maybe_unused]] const INDEX c = base + (INDEX)group * ITEMS + u;")
	case reverse:
		e.line("[[maybe_unused]] const INDEX c = cols - 1 - base - u;")
	default:
		e.line("[[maybe_unused]] const INDEX c = base + u;")
	}
	if !e.whole {
		e.line("if (c < 0 || c >= cols) continue;")
	}
	e.take(e.k.Cols, "c", uses...)
	body()
	e.close()
}

// groupWave replaces the terms of scans that do not read each other, in the current tile, by
// the folds up to each term.
func (e *columnEmitter) groupWave(wave []*ir.Fold, rest []*ir.Local, states map[*ir.Fold]string, reverse bool) {
	names, roots := e.waveTerms(wave)
	for _, f := range wave {
		e.line("%s %s[ITEMS][VECTOR];", foldType(f), names[f])
		e.line("#pragma unroll")
		e.line("for (int u = 0; u < ITEMS; ++u)")
		e.line("#pragma unroll")
		e.line("    for (int v = 0; v < VECTOR; ++v) %s[u][v] = %s;", names[f], foldStart(f))
	}
	needs := e.laneNeeds(rest, roots)
	e.tileColumns(append(definitions(needs), roots...), reverse, func() {
		inLane := e.columnValues(needs)
		e.flatLanes(readsMemory(append(definitions(inLane), roots...)...), func() {
			for _, l := range inLane {
				e.constant(l)
			}
			e.termsAt(wave, names)
		})
	})
	slots, before := map[*ir.Fold]string{}, map[*ir.Fold]string{}
	for _, f := range wave {
		t, name := foldType(f), names[f]
		slots[f], before[f] = e.names.Fresh(name+"_slots"), e.names.Fresh(name+"_before")
		e.line("__shared__ %s %s[2][THREADS / 32][LANES][VECTOR];", t, slots[f])
		e.line("%s %s[VECTOR];", t, before[f])
		e.line("group_scan_warps<%s, %t>(%s, %s, (%s)%s, %s[turn]);", foldClass(f.Op), reverse, name,
			before[f], t, foldStart(f), slots[f])
	}
	e.line("__syncthreads();")
	for _, f := range wave {
		name := names[f]
		e.line("group_scan_ends<%s, %t, %t>(%s, %s, %s, %s[turn]);", foldClass(f.Op), reverse,
			f.Prefix == ir.Exclusive, name, before[f], strings.TrimSuffix(states[f], "[v]"), slots[f])
		e.place[f.Result] = name + "[u][v]"
	}
}
