package codegen

import (
	"maps"
	"slices"

	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/ir"
)

// flatKernel writes a kernel in which each thread owns VECTOR neighbouring rows
// (points of the innermost row range). Columns, if any, are loops in the thread,
// or shared by COL_THREADS threads (group.go).
func (e *emitter) flatKernel() {
	if e.batched() {
		e.batch()
		return
	}
	e.flatPosition()
	if e.lanesApart() {
		e.flatApart()
		return
	}
	e.flatSections()
}

// flatSections writes the sections at the thread's position.
func (e *emitter) flatSections() {
	for i, sec := range e.v.Sections {
		switch {
		case len(e.k.Cols) == 0 || sec.Level == ir.RowLevel:
			e.flatRow(sec)
		case e.v.Schedule.HandsOn():
			e.chainSweep(i, sec)
		case e.grouped() && len(sec.Scans()) > 0:
			e.groupScan(i, sec)
		case e.grouped():
			e.groupSweep(i, sec)
		default:
			e.flatSweep(i, sec)
		}
	}
	if e.bySlab() {
		e.close() // which the rows that are folded have
	}
}

// lanesApart reports whether vectors that are inside have text of their own. Where the last
// one may be in part, a read of narrow elements is either of a vector or of some of its
// elements, and what comes of it is put together before the next read is issued: a wait for
// memory each, which few threads have nothing to hide behind.
func (e *emitter) lanesApart() bool {
	return len(e.k.Cols) == 0 && e.lane != nil && !e.batched() && !e.wholeLanes()
}

// flatApart writes the sections for vectors of which a part is inside, and for those that are;
// the branch that stands last is the one that the compiler lets follow.
func (e *emitter) flatApart() {
	left, done := e.s.Expr(e.lane.Extent)+" - first", maps.Clone(e.done)
	e.open("if (%s < VECTOR)", left)
	e.line("[[maybe_unused]] const int n = (int)(%s);", left)
	e.flatSections()
	e.orElse()
	e.line("[[maybe_unused]] constexpr int n = VECTOR;")
	e.allLanes, e.done = true, done
	e.flatSections()
	e.allLanes = false
	e.close()
}

// grouped reports whether several threads share the columns of a row.
func (e *emitter) grouped() bool { return e.v.Schedule.ColThreads > 0 }

// flatRow reads, computes and stores what a section needs at row level.
func (e *emitter) flatRow(sec *ir.Section) {
	if e.grouped() {
		e.open("if (group == 0 && n > 0)")
		defer e.close()
	}
	e.rowValues(sectionRoots(sec))
	e.flatStores(sec, nil, nil)
}

// perLane reports whether a local differs between the lanes of a thread.
func (e *emitter) perLane(l *ir.Local) bool {
	if e.lane == nil {
		return false
	}
	if l.Def == nil {
		return true // a fold of its own in each lane
	}
	return ir.Contains(l.Def, func(x *ir.Expr) bool {
		return x.Op == ir.OpRange && x.Range == e.lane || x.Op == ir.OpLocal && e.perLane(x.Local)
	})
}

// flatLanes writes a loop over the lanes. Lanes outside the tensors compute along
// where the body only computes: that costs nothing, and a branch around each lane
// keeps the compiler from mixing their instructions. Where it reads or writes memory,
// as guarded says, they are left out.
func (e *emitter) flatLanes(guarded bool, body func()) {
	if e.lane == nil {
		e.line("[[maybe_unused]] constexpr int v = 0;")
		body()
		return
	}
	e.line("#pragma unroll")
	e.open("for (int v = 0; v < VECTOR; ++v)")
	if guarded && !e.wholeLanes() {
		e.line("if (v >= n) continue;")
	}
	e.line("[[maybe_unused]] const INDEX %s = first + v;", e.ranges[e.lane])
	body()
	e.close()
}

// atFirst writes text that stands at the first lane's coordinates.
func (e *emitter) atFirst(body func()) {
	saved := e.ranges[e.lane]
	e.ranges[e.lane] = "first"
	body()
	e.ranges[e.lane] = saved
}

// rowValues writes the row-level locals the roots need: reads first.
func (e *emitter) rowValues(roots []*ir.Expr) {
	have := func(l *ir.Local) bool { return e.done[l] }
	var lanes []*ir.Local
	for _, l := range e.wants(ir.RowLevel, have, roots...) {
		e.done[l] = true
		if e.perLane(l) {
			lanes = append(lanes, l)
		} else {
			e.scalar(l)
		}
	}
	e.laneValues(lanes)
}

// laneValues writes locals that differ between lanes, as [VECTOR] arrays: wide
// reads, then the rest in one loop.
func (e *emitter) laneValues(locals []*ir.Local) {
	var rest []*ir.Local
	for _, l := range readsFirst(locals) {
		if l.Wide {
			name := e.raw(l, ".v[v]")
			if r := readOf(l.Def); r != nil && e.inWords(r) {
				e.line("Vec<%s, VECTOR> %s;", spell.StorageType(r.Type), name)
				e.atFirst(func() { e.noted(l.Span, "%s", e.gathered(name, r)) })
				continue
			}
			e.atFirst(func() {
				e.noted(l.Span, "const auto %s = %s;", name, e.lanesOf(l))
			})
			continue
		}
		name := e.name(l)
		e.place[l] = name + "[v]"
		e.line("%s %s[VECTOR];", e.typeOf(l), name)
		rest = append(rest, l)
	}
	if len(rest) == 0 {
		return
	}
	e.flatLanes(readsMemory(definitions(rest)...), func() {
		for _, l := range rest {
			e.noted(l.Span, "%s = %s;", e.place[l], e.s.Bare(l.Def))
		}
	})
}

// readsFirst puts what is read from memory before random bits, whose arithmetic the
// reads then overlap with.
func readsFirst(locals []*ir.Local) []*ir.Local {
	var reads, rest []*ir.Local
	for _, l := range locals {
		if l.Wide && readOf(l.Def) != nil {
			reads = append(reads, l)
		} else {
			rest = append(rest, l)
		}
	}
	return append(reads, rest...)
}

// readsMemory reports whether an expression holds a read in place.
func readsMemory(exprs ...*ir.Expr) bool {
	return slices.ContainsFunc(exprs, func(x *ir.Expr) bool { return ir.Has(x, ir.OpRead) })
}

// touchesMemory reports whether a section reads memory in place or stores single
// elements.
func touchesMemory(sec *ir.Section) bool {
	for _, st := range sec.Stores {
		if !st.Wide {
			return true
		}
	}
	return readsMemory(sectionRoots(sec)...)
}

// flatStores writes a section's stores; before, over the given locals, runs inside
// the lane loop first. What is only moved is stored as it was read.
func (e *emitter) flatStores(sec *ir.Section, locals []*ir.Local, before func()) {
	vectors := map[*ir.Store]string{}
	computed := before != nil
	for _, st := range sec.Stores {
		if vectors[st] = e.moves(st); vectors[st] == "" {
			computed = true
		}
	}
	if computed && len(sec.Stores) > 0 {
		e.flatValues(sec, locals, before, vectors)
	}
	for _, st := range sec.Stores {
		if st.Wide {
			e.atFirst(func() {
				e.wideStore(st, vectors[st])
			})
		}
	}
}

// flatValues computes what a section stores in vectors, those that are not moved, and stores
// the rest.
func (e *emitter) flatValues(sec *ir.Section, locals []*ir.Local, before func(), vectors map[*ir.Store]string) {
	outs := map[*ir.Store]string{}
	for _, st := range sec.Stores {
		if st.Wide && vectors[st] == "" {
			outs[st] = e.names.Fresh(st.Arg.Name + "_out")
			vectors[st] = outs[st]
			e.line("%s %s[VECTOR];", spell.ComputeType(st.Arg.Type), outs[st])
		}
	}
	e.flatLanes(touchesMemory(sec) || readsMemory(definitions(locals)...), func() {
		if before != nil {
			before()
		}
		for _, st := range sec.Stores {
			switch {
			case !st.Wide:
				e.scalarStore(st)
			case outs[st] != "":
				e.noted(st.Span, "%s[v] = %s;", outs[st], e.s.Bare(st.Value))
			}
		}
	})
}

// moves is the vector that a wide store of a pointwise kernel writes as it was read, elements
// of a type that is computed in another; "" for what is computed.
func (e *emitter) moves(st *ir.Store) string {
	if !e.of.moves || !st.Wide || st.Value.Op != ir.OpLocal {
		return ""
	}
	l := st.Value.Local
	if r := readOf(l.Def); !l.Wide || r == nil || r.Type != st.Arg.Type || r.Type == r.Type.Info().Compute {
		return ""
	}
	return e.vectorIn[l]
}

// flatSweep writes loops over the columns around one section.
func (e *emitter) flatSweep(number int, sec *ir.Section) {
	e.rowValues(sectionRoots(sec))
	e.line("")
	e.line("// sweep %d%s", number+1, foldNames(sec))
	states := e.laneStates(sec, "")
	full := e.ofColumns(sec)
	if len(sec.Scans()) > 0 && e.v.Schedule.Unroll > 0 {
		e.flatScan(sec, full, states)
	} else {
		e.flatLoops(sec, full, states)
	}
	for _, f := range sec.Whole().Folds {
		e.place[f.Result] = foldResult(f, states[f])
		if f.After != nil {
			m := e.place[f.After.Result]
			e.line("#pragma unroll")
			e.line("for (int v = 0; v < %s; ++v) if (%s == -infinity() && %s > 0) %s = nan32();",
				e.width(), m, e.s.Expr(product(extents(e.k.Cols))), states[f])
		}
	}
}

// flatLoops writes a loop for each column range.
func (e *emitter) flatLoops(sec *ir.Section, full []*ir.Local, states map[*ir.Fold]string) {
	for _, r := range e.k.Cols {
		if e.v.Schedule.Unroll > 0 {
			e.line("#pragma unroll")
		}
		name := e.ranges[r]
		if sec.Reverse {
			e.open("for (INDEX %s = %s - 1; %s >= 0; --%s)", name, e.s.Expr(r.Extent), name, name)
			continue
		}
		e.open("for (INDEX %s = 0; %s < %s; ++%s)", name, name, e.s.Expr(r.Extent), name)
	}
	e.flatColumn(sec, full, states)
	for range e.k.Cols {
		e.close()
	}
}

// laneStates declares the running state of each fold in each lane, named after the fold.
func (e *emitter) laneStates(sec *ir.Section, suffix string) map[*ir.Fold]string {
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

// width is the number of lanes, as text.
func (e *emitter) width() string {
	if e.lane == nil {
		return "1"
	}
	return "VECTOR"
}

// ofColumns is the locals that a section needs at each column.
func (e *emitter) ofColumns(sec *ir.Section) []*ir.Local {
	return e.wants(ir.FullLevel, func(l *ir.Local) bool { return l.Level == ir.RowLevel }, sectionRoots(sec)...)
}

// flatColumn writes the work of one column: the locals that it needs and has not yet, and
// what follows from them.
func (e *emitter) flatColumn(sec *ir.Section, full []*ir.Local, states map[*ir.Fold]string) {
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

// flatFolds folds one element of one lane; a maximum that others follow comes
// first and rescales them at once.
func (e *emitter) flatFolds(sec *ir.Section, states map[*ir.Fold]string) {
	for _, f := range sec.Folds {
		if f.Running == nil {
			continue
		}
		old := e.names.Fresh(f.Result.Name + "_old")
		e.line("const %s %s = %s;", foldType(f), old, states[f])
		e.line("%s", e.foldStep(f, states[f]))
		for _, g := range sec.Folds {
			if g.After == f {
				e.line("if (%s != %s) %s *= %s;", states[f], old, states[g], e.rescaled(g, old, states[f]))
			}
		}
		e.safely(f, states[f])
	}
	for _, f := range sec.Folds {
		if f.Running == nil && f.Prefix == ir.WholeRow {
			e.line("%s", e.foldStep(f, states[f]))
		}
	}
}
