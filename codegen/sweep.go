package codegen

import (
	"fmt"

	"github.com/fusec/fusec/ir"
)

func (e *emitter) states(sec *ir.Section) map[*ir.Fold]string {
	out := map[*ir.Fold]string{}
	for _, f := range sec.Folds {
		name := e.names.fresh(f.Result.Name + "_part")
		out[f] = name
		e.line("%s %s = %s;", foldType(f), name, foldStart(f))
		if f.Running != nil {
			e.place[f.Running] = name
		}
	}
	return out
}

func streamed(sec *ir.Section) bool {
	for _, f := range sec.Folds {
		if f.After != nil {
			return true
		}
	}
	return false
}

func (e *emitter) maxima(sec *ir.Section, rest []*ir.Local, states map[*ir.Fold]string, streaming bool) {
	var leaders []*ir.Fold
	for _, f := range sec.Folds {
		if f.Running != nil {
			leaders = append(leaders, f)
			e.line("const %s %s_old = %s;", foldType(f), states[f], states[f])
		}
	}
	var roots []*ir.Expr
	for _, f := range leaders {
		roots = append(roots, f.Body, f.Where)
	}
	e.vectors(streaming, append(definitions(e.laneNeeds(rest, roots)), roots...), func() {
		e.laneLocals(rest, roots)
		for _, f := range leaders {
			e.line("%s", e.foldStep(f, states[f]))
		}
	})
	for _, f := range sec.Folds {
		if f.After != nil {
			m := states[f.After]
			e.line("if (%s != %s_old) %s *= %s;", m, m, states[f], e.rescaled(f, m+"_old", m))
		}
	}
	for _, f := range leaders {
		e.safely(f, states[f])
	}
}

func (e *emitter) vectors(streaming bool, uses []*ir.Expr, body func()) {
	e.line("#pragma unroll")
	e.open("for (int u = 0; u < ITEMS; ++u)")
	e.position(streaming)
	e.open("if (n > 0)")
	e.lanes(uses, body)
	e.close()
	e.close()
}

func (e *emitter) laneNeeds(rest []*ir.Local, roots []*ir.Expr) []*ir.Local {
	inside := map[*ir.Local]bool{}
	for _, l := range rest {
		inside[l] = true
	}
	return e.wants(ir.FullLevel, func(l *ir.Local) bool { return !inside[l] }, roots...)
}

func (e *emitter) laneLocals(rest []*ir.Local, roots []*ir.Expr) {
	for _, l := range e.laneNeeds(rest, roots) {
		text := e.s.bare(l.Def)
		if e.kept[l] {
			e.noted(l.Span, "%s = %s;", e.place[l], text)
			continue
		}
		name := e.name(l)
		e.noted(l.Span, "const %s %s = %s;", e.typeOf(l), name, text)
		e.place[l] = name
	}
}

func (e *emitter) computeLoop(sec *ir.Section, rest []*ir.Local, states map[*ir.Fold]string, streaming bool) {
	var wide []*ir.Store
	for _, st := range sec.Stores {
		if st.Wide {
			wide = append(wide, st)
		}
	}
	if len(sec.Stores) == 0 && allLead(sec) {
		return
	}
	e.line("#pragma unroll")
	e.open("for (int u = 0; u < ITEMS; ++u)")
	e.position(streaming)
	e.open("if (n > 0)")
	rest = e.vectorReads(rest)
	outs := map[*ir.Store]string{}
	for _, st := range wide {
		outs[st] = e.names.fresh(st.Arg.Name + "_out")
		e.line("%s %s[VECTOR];", computeType(st.Arg.Type), outs[st])
	}
	e.lanes(append(definitions(e.laneNeeds(rest, sectionRoots(sec.Whole()))), laneRoots(sec.Whole())...), func() {
		e.laneLocals(rest, sectionRoots(sec.Whole()))
		for _, f := range sec.Folds {
			if f.Running == nil && f.Prefix == ir.WholeRow {
				e.line("%s", e.foldStep(f, states[f]))
			}
		}
		for _, st := range sec.Stores {
			if st.Wide {
				e.noted(st.Span, "%s[v] = %s;", outs[st], e.s.bare(st.Value))
			} else {
				e.scalarStore(st)
			}
		}
	})
	if len(wide) > 0 {
		e.open("")
		e.take(e.k.Cols, "c", e.storeUses(wide)...)
		for _, st := range wide {
			e.wideStore(st, outs[st])
		}
		e.close()
	}
	e.close()
	e.close()
}

func (e *emitter) vectorReads(locals []*ir.Local) []*ir.Local {
	wide, rest := splitWide(locals)
	if len(wide) == 0 {
		return rest
	}
	e.take(e.k.Cols, "c", e.wideUses(wide)...)
	for _, l := range wide {
		name := e.raw(l, ".v[v]")
		e.noted(l.Span, "const auto %s = %s;", name, e.lanesOf(l))
	}
	return rest
}

func allLead(sec *ir.Section) bool {
	for _, f := range sec.Folds {
		if f.Running == nil && f.Prefix == ir.WholeRow {
			return false
		}
	}
	return true
}

func (e *emitter) finish(sec *ir.Section, states map[*ir.Fold]string) {
	lead, follow := ordered(sec)
	e.merge(lead, states)
	for _, f := range follow {
		m := e.place[f.After.Result]
		part := states[f.After]
		e.line("if (%s != %s) %s *= %s;", part, m, states[f], e.rescaled(f, part, m))
	}
	e.merge(follow, states)
}

func (e *emitter) merge(folds []*ir.Fold, states map[*ir.Fold]string) {
	if len(folds) == 0 {
		return
	}
	slots, warps := make([]string, len(folds)), make([]string, len(folds))
	for i, f := range folds {
		slots[i] = e.names.fresh(f.Result.Name + "_slots")
		e.line("__shared__ %s %s[slots<ROW_THREADS, CLUSTER>];", foldType(f), slots[i])
	}
	e.awaitCluster()
	for i, f := range folds { // the thread's own state stays: sums that follow it are rescaled from it
		warps[i] = e.names.fresh(f.Result.Name + "_warp")
		e.line("const %s %s = row_partial<%s, ROW_THREADS, CLUSTER>(%s, %s);", foldType(f), warps[i], foldClass(f.Op), states[f], slots[i])
	}
	e.line("row_sync<ROW_THREADS, CLUSTER>();")
	for i, f := range folds {
		total := fmt.Sprintf("row_total<%s, ROW_THREADS, CLUSTER>(%s, %s)", foldClass(f.Op), warps[i], slots[i])
		if f.After != nil { // a row of -inf alone: exp(-inf - -inf)
			total = fmt.Sprintf("%s == -infinity() && cols > 0 ? nan32() : %s", e.place[f.After.Result], total)
		}
		name := e.names.fresh(f.Result.Name)
		e.noted(f.Result.Span, "const %s %s = %s;", computeType(f.Result.Type), name, foldResult(f, total))
		e.place[f.Result] = name
	}
}

func (e *emitter) awaitCluster() {
	if e.v.Schedule.Cluster > 1 && !e.awaited {
		e.line("cluster_wait();")
		e.awaited = true
	}
}

func laneRoots(sec *ir.Section) []*ir.Expr {
	var out []*ir.Expr
	for _, f := range sec.Folds {
		out = append(out, f.Where, f.Body, f.Index)
	}
	for _, st := range sec.Stores {
		out = append(out, st.Guard, st.Value)
		if !st.Wide {
			out = append(out, st.Offset)
		}
	}
	return out
}

// ordered separates the folds that stand alone or lead from those that follow one.
func ordered(sec *ir.Section) (lead, follow []*ir.Fold) {
	for _, f := range sec.Folds {
		switch {
		case f.Prefix != ir.WholeRow:
		case f.After == nil:
			lead = append(lead, f)
		default:
			follow = append(follow, f)
		}
	}
	return lead, follow
}
