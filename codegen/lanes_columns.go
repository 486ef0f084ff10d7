package codegen

import "github.com/fusec/fusec/ir"

// laneStates declares the running state of each fold in each lane, named after the fold.
func (e *laneEmitter) laneStates(sec *ir.Section, suffix string) map[*ir.Fold]string {
	states := map[*ir.Fold]string{}
	for _, f := range sec.Folds {
		name := e.names.Fresh(f.Result.Name + suffix)
		states[f] = name + "[v]"
		e.line("%s %s[%s];", foldType(f), name, e.width())
		e.line("#pragma unroll")
		e.line("for (int v = 0; v < %s; ++v) %s = %s;", e.width(), states[f], foldStart(f))
		if f.Running != nil {
			e.place[f.Running] = states[f]
		}
	}
	return states
}

// ofColumns is the locals that a section needs at each column.
func (e *laneEmitter) ofColumns(sec *ir.Section) []*ir.Local {
	return e.wants(ir.FullLevel, func(l *ir.Local) bool { return l.Level == ir.RowLevel }, sectionRoots(sec)...)
}

// flatColumn writes the work of one column: the locals that it still needs, then its folds, scans and
// stores.
func (e *laneEmitter) flatColumn(sec *ir.Section, full []*ir.Local, states map[*ir.Fold]string) {
	var inLane []*ir.Local
	for _, l := range full {
		switch {
		case !e.perLane(l):
			text := e.s.Bare(l.Def)
			name := e.name(l)
			e.noted(l.Span, "const %s %s = %s;", e.typeOf(l), name, text)
			e.place[l] = name
		case l.Wide:
			e.laneValues([]*ir.Local{l})
		default:
			inLane = append(inLane, l)
		}
	}
	compute := func() {
		for _, l := range e.flatScans(sec, inLane, states) {
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

// flatFolds folds one element of one lane. A maximum that other folds follow comes first, and
// rescales them.
func (e *laneEmitter) flatFolds(sec *ir.Section, states map[*ir.Fold]string) {
	for _, f := range sec.Folds {
		if f.Running == nil {
			continue
		}
		old := e.names.Fresh(f.Result.Name + "_old")
		e.line("const %s %s = %s;", foldType(f), old, states[f])
		e.noted(f.Result.Span, "%s", e.foldStep(f, states[f]))
		for _, g := range sec.Folds {
			if g.After == f {
				e.line("if (%s != %s) %s *= %s;", states[f], old, states[g], e.rescaled(g, old, states[f]))
			}
		}
		e.safely(f, states[f])
	}
	for _, f := range sec.Folds {
		if f.Running == nil && f.Prefix == ir.WholeRow {
			e.noted(f.Result.Span, "%s", e.foldStep(f, states[f]))
		}
	}
}

// columnValues writes those of the locals that all lanes share, and returns the others.
func (e *laneEmitter) columnValues(locals []*ir.Local) (inLane []*ir.Local) {
	for _, l := range locals {
		if e.perLane(l) {
			inLane = append(inLane, l)
		} else {
			e.constant(l)
		}
	}
	return inLane
}

// flatScans steps the scans of one lane at one column, each after the locals that
// its terms need, and returns the locals that are left.
func (e *laneEmitter) flatScans(sec *ir.Section, locals []*ir.Local, states map[*ir.Fold]string) []*ir.Local {
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
