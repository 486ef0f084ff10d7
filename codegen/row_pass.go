package codegen

import (
	"slices"

	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/ir"
)

// states declares the running state of each fold.
func (e *rowEmitter) states(sec *ir.Section) map[*ir.Fold]string {
	out := map[*ir.Fold]string{}
	for _, f := range sec.Folds {
		name := e.names.Fresh(f.Result.Name + "_part")
		out[f] = name
		e.line("%s %s = %s;", foldType(f), name, foldStart(f))
		if f.Running != nil {
			e.place[f.Running] = name
		}
	}
	return out
}

// streamed reports whether a fold of the section follows a running maximum.
func streamed(sec *ir.Section) bool {
	return slices.ContainsFunc(sec.Folds, func(f *ir.Fold) bool { return f.After != nil })
}

// maxima first updates the running maxima with all current vectors, and rescales the sums that
// follow them once for all of these.
func (e *rowEmitter) maxima(sec *ir.Section, rest []*ir.Local, states map[*ir.Fold]string) {
	var leaders, single []*ir.Fold
	again := e.looped || e.stays || e.accumulates // otherwise there is nothing to rescale yet
	for _, f := range sec.Folds {
		if f.Running != nil {
			leaders = append(leaders, f)
			if again {
				e.line("const %s %s_old = %s;", foldType(f), states[f], states[f])
			}
			if e.pairs == nil || !e.pairs(f, states[f]) {
				single = append(single, f)
			}
		}
	}
	if len(single) > 0 {
		e.foldLanes(single, rest, states)
	}
	for _, f := range sec.Folds {
		if f.After != nil && again {
			m := states[f.After]
			e.line("if (%s != %s_old) %s *= %s;", m, m, states[f], e.rescaled(f, m+"_old", m))
		}
	}
	for _, f := range leaders {
		e.safely(f, states[f])
	}
}

// foldLanes folds the current vectors, lane by lane.
func (e *rowEmitter) foldLanes(leaders []*ir.Fold, rest []*ir.Local, states map[*ir.Fold]string) {
	var roots []*ir.Expr
	for _, f := range leaders {
		roots = append(roots, f.Body, f.Where)
	}
	e.vectors(append(definitions(e.laneNeeds(rest, roots)), roots...), func() {
		e.laneLocals(rest, roots)
		for _, f := range leaders {
			e.noted(f.Result.Span, "%s", e.foldStep(f, states[f]))
		}
	})
}

// computeLoop folds and stores.
func (e *rowEmitter) computeLoop(sec *ir.Section, rest []*ir.Local, states map[*ir.Fold]string) {
	var wide []*ir.Store
	for _, st := range sec.Stores {
		if e.inVectors(st) {
			wide = append(wide, st)
		}
	}
	if len(sec.Stores)+len(sec.Partials) == 0 && allLead(sec) {
		return
	}
	e.openVectors()
	rest = e.vectorReads(rest)
	outs := map[*ir.Store]string{}
	for _, st := range wide {
		outs[st] = e.names.Fresh(st.Arg.Name + "_out")
		e.line("%s %s[VECTOR];", spell.ComputeType(st.Arg.Type), outs[st])
	}
	e.lanes(append(definitions(e.laneNeeds(rest, sectionRoots(sec.Whole()))), laneRoots(sec.Whole())...), func() {
		e.laneLocals(rest, sectionRoots(sec.Whole()))
		for _, f := range sec.Folds {
			if f.Running == nil && f.Prefix == ir.WholeRow {
				e.noted(f.Result.Span, "%s", e.foldStep(f, states[f]))
			}
		}
		for _, st := range sec.Stores {
			if e.inVectors(st) {
				e.noted(st.Span, "%s[v] = %s;", outs[st], e.s.Bare(st.Value))
			} else {
				e.scalarStore(st)
			}
		}
		if e.rowKind.partial != nil {
			e.rowKind.partial(sec)
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
	e.closeVectors()
}

// inVectors reports whether the columns of a thread are stored in vectors, in memory or in a tile.
func (e *rowEmitter) inVectors(st *ir.Store) bool { return st.Wide || st.Staged }

// allLead reports whether every fold of the section is a maximum that others
// follow, done by maxima already.
func allLead(sec *ir.Section) bool {
	return !slices.ContainsFunc(sec.Folds, func(f *ir.Fold) bool { return f.Running == nil && f.Prefix == ir.WholeRow })
}
