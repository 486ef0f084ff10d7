package codegen

import "github.com/fusec/fusec/ir"

// rowScans replaces the terms of each scan, in the current vectors, by the folds up to each
// term.
func (e *rowEmitter) rowScans(sec *ir.Section, rest []*ir.Local, states map[*ir.Fold]string) {
	for _, wave := range waves(sec.Scans()) {
		names, roots := e.waveTerms(wave)
		for _, f := range wave {
			e.line("%s %s[ITEMS][VECTOR];", foldType(f), names[f])
		}
		e.scanTerms(wave, names, rest, roots)
		if e.looped {
			e.line("row_sync<ROW_THREADS, 1>(); // the last vectors' totals have been read")
		}
		e.scanPhases(wave, names, states, sec.Reverse)
	}
}

// scanTerms computes what the scans of a wave fold: the identity where a column
// does not take part.
func (e *rowEmitter) scanTerms(wave []*ir.Fold, names map[*ir.Fold]string, rest []*ir.Local, roots []*ir.Expr) {
	e.line("#pragma unroll")
	e.open("for (int u = 0; u < ITEMS; ++u)")
	e.position()
	e.line("#pragma unroll")
	e.open("for (int v = 0; v < VECTOR; ++v)")
	for _, f := range wave {
		e.line("%s[u][v] = %s;", names[f], foldStart(f))
	}
	e.close()
	if !e.whole {
		e.open("if (n > 0)")
	}
	needs := e.vectorReads(e.laneNeeds(rest, roots))
	e.lanes(append(definitions(needs), roots...), func() {
		e.laneLocals(needs, roots)
		e.termsAt(wave, names)
	})
	e.closeVectors()
}

func (e *rowEmitter) scanPhases(wave []*ir.Fold, names, states map[*ir.Fold]string, reverse bool) {
	slots, before := map[*ir.Fold]string{}, map[*ir.Fold]string{}
	for _, f := range wave {
		t, name := foldType(f), names[f]
		slots[f], before[f] = e.names.Fresh(name+"_slots"), e.names.Fresh(name+"_before")
		if e.v.Schedule.RowThreads > 32 {
			e.line("__shared__ %s %s[ITEMS][ROW_THREADS / 32];", t, slots[f])
		} else {
			e.line("%s %s[ITEMS][1];", t, slots[f])
		}
		e.line("%s %s[ITEMS];", t, before[f])
		e.line("row_scan_warps<%s, %t, ROW_THREADS>(%s, %s, (%s)%s, %s);",
			foldClass(f.Op), reverse, name, before[f], t, foldStart(f), slots[f])
	}
	e.line("row_sync<ROW_THREADS, 1>();")
	for _, f := range wave {
		name := names[f]
		e.line("row_scan_ends<%s, %t, %t, ROW_THREADS>(%s, %s, %s, (%s)%s, %s);", foldClass(f.Op), reverse,
			f.Prefix == ir.Exclusive, name, before[f], states[f], foldType(f), foldStart(f), slots[f])
		e.place[f.Result] = name + "[u][v]"
	}
}
