package codegen

import (
	"slices"

	"github.com/fusec/fusec/codegen/skeleton"
	"github.com/fusec/fusec/ir"
)

// scanPreludes is the skeleton.Text("prelude") of scans, for kernels that have some.
func scanPreludes(_ *ir.Kernel, v *ir.Variant) string {
	if slices.ContainsFunc(v.Sections, func(s *ir.Section) bool { return len(s.Scans()) > 0 }) {
		return skeleton.Text("scan")
	}
	return ""
}

// waves groups scans that do not read each other: those of one wave share a
// barrier.
func waves(scans []*ir.Fold) [][]*ir.Fold {
	var out [][]*ir.Fold
	for i, f := range scans {
		if i == 0 || readsAny(f, out[len(out)-1]) {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], f)
	}
	return out
}

// readsAny reports whether a fold's terms depend on the results of others.
func readsAny(f *ir.Fold, others []*ir.Fold) bool {
	results := map[*ir.Local]bool{}
	for _, o := range others {
		results[o.Result] = true
	}
	found := false
	ir.WalkThrough(func(x *ir.Expr) bool {
		found = found || x.Op == ir.OpLocal && results[x.Local]
		return !found
	}, f.Body, f.Where)
	return found
}

// rowScans replaces the terms of each scan, for the vectors in hand, by the folds
// up to them.
func (e *emitter) rowScans(sec *ir.Section, rest []*ir.Local, states map[*ir.Fold]string) {
	for _, wave := range waves(sec.Scans()) {
		names, roots := e.waveTerms(wave)
		for _, f := range wave {
			e.line("%s %s[ITEMS][VECTOR];", foldType(f), names[f])
		}
		e.scanTerms(wave, names, rest, roots)
		if e.streaming() {
			e.line("row_sync<ROW_THREADS, 1>(); // the last vectors' totals have been read")
		}
		e.scanPhases(wave, names, states, sec.Reverse)
	}
}

// waveTerms names the results of a wave's scans, and lists what they are computed from.
func (e *emitter) waveTerms(wave []*ir.Fold) (names map[*ir.Fold]string, roots []*ir.Expr) {
	names = map[*ir.Fold]string{}
	for _, f := range wave {
		roots = append(roots, f.Body, f.Where)
		names[f] = e.names.Fresh(f.Result.Name)
	}
	return names, roots
}

// termsAt writes the terms of a wave's scans at one lane of a column.
func (e *emitter) termsAt(wave []*ir.Fold, names map[*ir.Fold]string) {
	for _, f := range wave {
		guard := ""
		if where := e.given(f.Where); where != nil {
			guard = "if (" + e.s.Bare(where) + ") "
		}
		e.noted(f.Result.Span, "%s%s[u][v] = %s;", guard, names[f], e.s.Bare(f.Body))
	}
}

// scanTerms computes what the scans of a wave fold: the identity where a column
// does not take part.
func (e *emitter) scanTerms(wave []*ir.Fold, names map[*ir.Fold]string, rest []*ir.Local, roots []*ir.Expr) {
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

func (e *emitter) scanPhases(wave []*ir.Fold, names, states map[*ir.Fold]string, reverse bool) {
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

// flatScans steps the scans of one lane at one column, each after the locals that
// its terms need, and returns the locals that are left.
func (e *emitter) flatScans(sec *ir.Section, locals []*ir.Local, states map[*ir.Fold]string) []*ir.Local {
	for _, f := range sec.Scans() {
		needs := e.laneNeeds(locals, []*ir.Expr{f.Body, f.Where})
		written := map[*ir.Local]bool{}
		for _, l := range needs {
			e.constant(l)
			written[l] = true
		}
		var left []*ir.Local
		for _, l := range locals {
			if !written[l] {
				left = append(left, l)
			}
		}
		locals = left
		e.place[f.Result] = states[f]
		if f.Prefix == ir.Exclusive {
			e.place[f.Result] = e.names.Fresh(f.Result.Name + "_before")
			e.line("const %s %s = %s;", foldType(f), e.place[f.Result], states[f])
		}
		e.noted(f.Result.Span, "%s", e.foldStep(f, states[f]))
	}
	return locals
}
