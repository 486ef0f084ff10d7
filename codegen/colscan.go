package codegen

import (
	"fmt"
	"strings"

	"github.com/fusec/fusec/ir"
)

// groupScan writes one pass over the columns with scans along them, in flat mapping:
// the COL_THREADS threads that own the same rows take ITEMS neighbouring columns each,
// a tile of all of them at a time. They scan their own, exchange the totals, and put in
// front what came before. The reads of the next tile are under way meanwhile.
func (e *emitter) groupScan(number int, sec *ir.Section) {
	states, full := e.groupHead(number, sec)
	reads, rest := e.splitReads(full)
	cols := e.s.expr(product(extents(e.k.Cols)))
	e.open("")
	e.line("constexpr INDEX tile = (INDEX)ITEMS * COL_THREADS;")
	e.line("const INDEX cols = n > 0 ? %s : 0; // of this thread's lanes", cols)
	first, more, step := "0", fmt.Sprintf("base < %s", cols), "base += tile"
	next := "base + tile"
	if sec.Reverse {
		first, more, step, next = fmt.Sprintf("(%s - 1) / tile * tile", cols), "base >= 0", "base -= tile", "base - tile"
	}
	ahead := e.scanReads(reads)
	if len(reads) > 0 {
		e.line("fetch(%s);", first)
	}
	e.line("int turn = 0; // of the two sets of slots that tiles use in turn")
	e.open("for (INDEX base = %s; %s; %s, turn ^= 1)", first, more, step)
	for _, l := range reads {
		e.line("launder(%s); // or narrow elements would be taken apart as soon as they are there: a wait", ahead[l])
		e.line("#pragma unroll")
		e.line("for (int u = 0; u < ITEMS; ++u) %s[u] = %s[u];", e.rawName[l], ahead[l])
	}
	if len(reads) > 0 {
		e.line("fetch(%s);", next)
	}
	for _, wave := range waves(sec.Scans()) {
		e.groupWave(wave, rest, states, sec.Reverse)
	}
	e.tileColumns(append(definitions(rest), sectionRoots(sec)...), func() { e.groupCompute(sec, rest, states) })
	e.close()
	e.close()
	e.groupFinish(sec, states)
}

// scanReads declares what a tile reads, in hand and next, and the function that issues
// the reads of the tile at `base`. It returns the names of what is read next.
func (e *emitter) scanReads(reads []*ir.Local) map[*ir.Local]string {
	ahead := map[*ir.Local]string{}
	if len(reads) == 0 {
		return ahead
	}
	for _, l := range reads {
		vec, name := e.columnVector(l)
		ahead[l] = e.names.fresh(l.Name + "_next")
		e.line("%s %s[ITEMS], %s[ITEMS];", vec, name, ahead[l])
	}
	e.open("auto fetch = [&](INDEX base)")
	e.tileColumns(definitions(reads), func() { e.columnLoads(reads, ahead) })
	e.closeWith(";")
	return ahead
}

// tileColumns writes a loop over the thread's columns of a tile with their coordinates.
func (e *emitter) tileColumns(uses []*ir.Expr, body func()) {
	e.line("#pragma unroll")
	e.open("for (int u = 0; u < ITEMS; ++u)")
	e.line("[[maybe_unused]] const INDEX c = base + (INDEX)group * ITEMS + u;")
	e.line("if (c < 0 || c >= cols) continue;")
	e.take(e.k.Cols, "c", uses...)
	body()
	e.close()
}

// groupWave replaces the terms of scans that do not read each other, for the tile in
// hand, by the folds up to them.
func (e *emitter) groupWave(wave []*ir.Fold, rest []*ir.Local, states map[*ir.Fold]string, reverse bool) {
	names, roots := e.waveTerms(wave)
	for _, f := range wave {
		e.line("%s %s[ITEMS][VECTOR];", foldType(f), names[f])
		e.line("#pragma unroll")
		e.line("for (int u = 0; u < ITEMS; ++u)")
		e.line("#pragma unroll")
		e.line("    for (int v = 0; v < VECTOR; ++v) %s[u][v] = %s;", names[f], foldStart(f))
	}
	needs := e.laneNeeds(rest, roots)
	e.tileColumns(append(definitions(needs), roots...), func() {
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
		slots[f], before[f] = e.names.fresh(name+"_slots"), e.names.fresh(name+"_before")
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
