package codegen

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/ir"
)

// states declares the running state of each fold.
func (e *emitter) states(sec *ir.Section) map[*ir.Fold]string {
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
	for _, f := range sec.Folds {
		if f.After != nil {
			return true
		}
	}
	return false
}

// maxima first brings the running maxima up to date for the vectors in hand, and
// rescales the sums that follow them once for all of these.
func (e *emitter) maxima(sec *ir.Section, rest []*ir.Local, states map[*ir.Fold]string) {
	var leaders, single []*ir.Fold
	again := e.streaming() || e.ahead() || e.walking() // else there is nothing yet to rescale
	for _, f := range sec.Folds {
		if f.Running != nil {
			leaders = append(leaders, f)
			if again {
				e.line("const %s %s_old = %s;", foldType(f), states[f], states[f])
			}
			if !e.foldPairs(f, states[f]) {
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

// foldLanes folds the vectors in hand, lane by lane.
func (e *emitter) foldLanes(leaders []*ir.Fold, rest []*ir.Local, states map[*ir.Fold]string) {
	var roots []*ir.Expr
	for _, f := range leaders {
		roots = append(roots, f.Body, f.Where)
	}
	e.vectors(append(definitions(e.laneNeeds(rest, roots)), roots...), func() {
		e.laneLocals(rest, roots)
		for _, f := range leaders {
			e.line("%s", e.foldStep(f, states[f]))
		}
	})
}

// vectors writes the loops over the vectors in hand and their lanes.
func (e *emitter) vectors(uses []*ir.Expr, body func()) {
	e.openVectors()
	e.lanes(uses, body)
	e.closeVectors()
}

// laneNeeds returns those of the given locals that the roots use.
func (e *emitter) laneNeeds(rest []*ir.Local, roots []*ir.Expr) []*ir.Local {
	inside := map[*ir.Local]bool{}
	for _, l := range rest {
		inside[l] = true
	}
	return e.wants(ir.FullLevel, func(l *ir.Local) bool { return !inside[l] }, roots...)
}

// laneLocals writes those of the given locals that the roots need, one lane's
// value each; kept ones go to their arrays.
func (e *emitter) laneLocals(rest []*ir.Local, roots []*ir.Expr) {
	for _, l := range e.laneNeeds(rest, roots) {
		text := e.s.Bare(l.Def)
		if e.kept[l] {
			e.noted(l.Span, "%s = %s;", e.place[l], text)
			continue
		}
		name := e.name(l)
		e.noted(l.Span, "const %s %s = %s;", e.typeOf(l), name, text)
		e.place[l] = name
	}
}

// computeLoop folds and stores.
func (e *emitter) computeLoop(sec *ir.Section, rest []*ir.Local, states map[*ir.Fold]string) {
	var wide []*ir.Store
	for _, st := range sec.Stores {
		if st.Wide {
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
				e.line("%s", e.foldStep(f, states[f]))
			}
		}
		for _, st := range sec.Stores {
			if st.Wide {
				e.noted(st.Span, "%s[v] = %s;", outs[st], e.s.Bare(st.Value))
			} else {
				e.scalarStore(st)
			}
		}
		e.walkSteps(sec)
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

// vectorReads writes the wide reads among the locals as one vector each, and
// returns the others.
func (e *emitter) vectorReads(locals []*ir.Local) []*ir.Local {
	wide, rest := splitWide(locals)
	if len(wide) == 0 {
		return rest
	}
	apart := slices.DeleteFunc(slices.Clone(wide), func(l *ir.Local) bool { return usesFull(l.Def) })
	e.take(e.k.Cols, "c", e.wideUses(apart)...)
	for _, l := range apart {
		if e.kept[l] && e.rawName[l] == "" { // random bits, which are held as numbers
			name := e.names.Fresh(l.Name)
			e.noted(l.Span, "const auto %s = %s;", name, e.lanesOf(l))
			e.line("#pragma unroll")
			e.line("for (int v = 0; v < VECTOR; ++v) %s = %s.v[v];", e.place[l], name)
			continue
		}
		name := e.raw(l, ".v[v]")
		e.noted(l.Span, "const auto %s = %s;", name, e.lanesOf(l))
	}
	for _, l := range wide {
		if usesFull(l.Def) {
			e.vectorAt(l, rest)
		}
	}
	return rest
}

// vectorAt writes a wide read whose place comes from values of the columns, as that of a row of a
// table does. They are the same for all lanes, so that they are taken at the first.
func (e *emitter) vectorAt(l *ir.Local, rest []*ir.Local) {
	needs := e.laneNeeds(rest, []*ir.Expr{l.Def})
	name := e.names.Fresh(l.Name)
	e.open("const auto %s = [&]", name)
	e.line("[[maybe_unused]] constexpr int v = 0;")
	e.take(e.k.Cols, "c", append(definitions(needs), e.wideUses([]*ir.Local{l})...)...)
	saved := maps.Clone(e.place)
	for _, need := range needs {
		e.constant(need)
	}
	e.noted(l.Span, "return %s;", e.lanesOf(l))
	e.place = saved
	e.closeWith("();")
	if e.kept[l] { // in registers that were declared ahead of the passes
		e.line("#pragma unroll")
		e.line("for (int v = 0; v < VECTOR; ++v) %s = %s;", e.place[l], converted(l, e.laneOf(l, name+".v[v]")))
		return
	}
	e.rawName[l] = name
	e.raw(l, ".v[v]")
}

// allLead reports whether every fold of the section is a maximum that others
// follow, done by maxima already.
func allLead(sec *ir.Section) bool {
	for _, f := range sec.Folds {
		if f.Running == nil && f.Prefix == ir.WholeRow {
			return false
		}
	}
	return true
}

// finish merges the threads' states of a row, in one exchange: a sum that follows a
// maximum goes with the maximum of its warp, and is rescaled from that.
func (e *emitter) finish(sec *ir.Section, states map[*ir.Fold]string) {
	lead, follow := ordered(sec)
	folds := append(append([]*ir.Fold(nil), lead...), follow...)
	if len(folds) == 0 {
		return
	}
	e.refillEarly()
	slots, warps := map[*ir.Fold]string{}, map[*ir.Fold]string{}
	for _, f := range folds {
		slots[f] = e.slots(f)
	}
	e.awaitCluster()
	meetings := ""
	if e.ahead() {
		sizes := make([]string, len(folds))
		for i, f := range folds {
			sizes[i] = fmt.Sprintf("sizeof(%s)", foldType(f))
		}
		if e.ticketing(sec) {
			sizes = append(sizes, "sizeof(unsigned)")
		}
		e.line("row_expect<ROW_THREADS, CLUSTER>(meetings, %s);", strings.Join(sizes, " + "))
		meetings = "meetings"
	}
	for _, f := range folds { // the thread's own state stays: sums that follow it are rescaled from it
		if f.After != nil {
			from, to := states[f.After], warps[f.After]
			e.line("if (%s != %s) %s *= %s;", from, to, states[f], e.rescaled(f, from, to))
		}
		warps[f] = e.names.Fresh(f.Result.Name + "_warp")
		e.line("const %s %s = row_partial<%s, ROW_THREADS, CLUSTER>(%s);", foldType(f), warps[f], foldClass(f.Op),
			listed(states[f], slots[f], meetings))
	}
	if e.ticketing(sec) {
		e.shareTicket()
	}
	e.line("row_sync<ROW_THREADS, CLUSTER>(%s);", meetings)
	e.refill()
	if e.ticketing(sec) {
		e.takeRow()
	}
	for _, f := range folds {
		e.total(f, warps[f], slots)
	}
}

// listed joins arguments, without the empty ones.
func listed(args ...string) string {
	return strings.Join(slices.DeleteFunc(args, func(a string) bool { return a == "" }), ", ")
}

// slots declares the shared memory through which warps exchange a fold.
func (e *emitter) slots(f *ir.Fold) string {
	name := e.names.Fresh(f.Result.Name + "_slots")
	if e.walking() { // a thread may be a row ahead of another that still reads
		e.line("__shared__ %s %s[2][slots<ROW_THREADS, CLUSTER>];", foldType(f), name)
		return name + "[turn]"
	}
	if e.ahead() { // the next row's must not meet those who still read this row's
		e.line("__shared__ %s %s[2][slots<ROW_THREADS, CLUSTER>];", foldType(f), name)
		return name + "[turn & 1]"
	}
	e.line("__shared__ %s %s[slots<ROW_THREADS, CLUSTER>];", foldType(f), name)
	return name
}

// total names the result of a fold over the row.
func (e *emitter) total(f *ir.Fold, warp string, slots map[*ir.Fold]string) {
	text := fmt.Sprintf("row_total<%s, ROW_THREADS, CLUSTER>(%s, %s)", foldClass(f.Op), warp, slots[f])
	if f.After != nil { // a row of -inf alone: exp(-inf - -inf)
		m := e.place[f.After.Result]
		rescale := e.names.Fresh(f.Result.Name + "_rescale")
		e.line("const auto %s = [&](%s from) { return from == %s ? 1 : %s; };", rescale, foldType(f.After), m, e.rescaled(f, "from", m))
		text = fmt.Sprintf("%s == -infinity() && cols > 0 ? nan32() : row_total<%s, ROW_THREADS, CLUSTER>(%s, %s, %s, %s)",
			m, foldClass(f.Op), warp, slots[f], slots[f.After], rescale)
	}
	name := e.names.Fresh(f.Result.Name)
	e.noted(f.Result.Span, "const %s %s = %s;", spell.ComputeType(f.Result.Type), name, foldResult(f, text))
	e.place[f.Result] = name
}

// awaitCluster waits, once, until every block of the cluster has started: before
// that its shared memory must not be written.
func (e *emitter) awaitCluster() {
	if e.v.Schedule.Cluster > 1 && !e.awaited {
		e.line("cluster_wait();")
		e.awaited = true
	}
}

// laneRoots are the expressions a section evaluates at every lane: a wide store's
// offset is evaluated once a vector.
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
	for _, p := range sec.Partials {
		out = append(out, p.Body, p.Offset)
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
