package codegen

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fusec/fusec/ir"
)

// openVectors opens the loop over the current vectors of a thread.
func (e *rowEmitter) openVectors() {
	e.line("#pragma unroll")
	e.open("for (int u = 0; u < ITEMS; ++u)")
	e.position()
	if !e.whole {
		e.open("if (n > 0)")
	}
}

// position writes c, the first column of a vector, and n, the number of its elements that are inside the row.
func (e *rowEmitter) position() {
	if e.vector != nil {
		e.vector()
		return
	}
	base := ""
	if e.looped {
		base = e.base + " + "
	}
	place := fmt.Sprintf("%s(INDEX)(u * (CLUSTER * ROW_THREADS) + lane) * VECTOR", base)
	e.line("[[maybe_unused]] const INDEX c = %s;", place)
	switch {
	case e.whole:
		e.line("[[maybe_unused]] constexpr int n = VECTOR;")
	case e.wholeVectors():
		e.line("[[maybe_unused]] const int n = %sc < cols ? VECTOR : 0;", e.alwaysInside())
	default:
		e.line("[[maybe_unused]] const int n = (int)min(cols - c, (INDEX)VECTOR);")
	}
}

// alwaysInside is a condition on the number of a vector under which it is inside the row, for every length that this
// variant takes.
func (e *rowEmitter) alwaysInside() string {
	s := e.v.Schedule
	if full := e.v.Least / (s.RowThreads * max(1, s.Cluster) * s.Vector); full > 0 {
		return fmt.Sprintf("u < %d || ", full)
	}
	return ""
}

func (e *rowEmitter) closeVectors() {
	if !e.whole {
		e.close()
	}
	e.close()
}

// wholeVectors reports whether a row is a whole number of vectors.
func (e *rowEmitter) wholeVectors() bool {
	return e.stays || ir.Multiple(product(extents(e.k.Cols)), int64(e.v.Schedule.Vector), e.v.Facts)
}

// lanes writes a loop over the elements of one vector, with the coordinates of each. Where a vector stays inside the
// innermost range, only that coordinate differs, and the divisions for the others are done once a vector.
func (e *rowEmitter) lanes(uses []*ir.Expr, body func()) {
	varies := e.dependsOn(e.k.Cols, uses)
	together := varies && len(e.k.Cols) > 1 && ir.Multiple(e.lane.Extent, int64(e.v.Schedule.Vector), e.v.Facts)
	name, first := e.ranges[e.lane], ""
	if together {
		first = e.names.Fresh(name + "_first")
		e.open("")
		e.ranges[e.lane] = first
		e.take(e.k.Cols, "c", uses...)
		e.ranges[e.lane] = name
	}
	e.line("#pragma unroll")
	e.open("for (int v = 0; v < VECTOR; ++v)")
	if !e.whole && !e.wholeVectors() {
		e.line("if (v >= n) continue;")
	}
	switch {
	case together && e.used(uses)[e.lane]:
		e.line("[[maybe_unused]] const INDEX %s = %s + v;", name, first)
	case varies && !together:
		e.line("const INDEX col = c + v;")
		e.take(e.k.Cols, "col", uses...)
	}
	body()
	e.close()
	if together {
		e.close()
	}
}

// vectors writes the loops over the current vectors of a thread and their elements.
func (e *rowEmitter) vectors(uses []*ir.Expr, body func()) {
	e.openVectors()
	e.lanes(uses, body)
	e.closeVectors()
}

// laneLocals writes those of the given locals that the roots need, for one element of a vector. Kept locals go to
// their arrays.
func (e *rowEmitter) laneLocals(rest []*ir.Local, roots []*ir.Expr) {
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

// vectorReads writes the wide reads among the locals as one vector each, and
// returns the others.
func (e *rowEmitter) vectorReads(locals []*ir.Local) []*ir.Local {
	wide, rest := splitWide(locals)
	if len(wide) == 0 {
		return rest
	}
	apart := slices.DeleteFunc(slices.Clone(wide), func(l *ir.Local) bool { return usesFull(l.Def) })
	e.take(e.k.Cols, "c", e.wideUses(apart)...)
	for _, l := range apart {
		if e.kept[l] && e.rawName[l] == "" { // random bits are kept as numbers
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

// vectorAt writes a wide read whose offset depends on values of the columns, such as the row of a table. These values
// are the same for all elements of the vector, so those of the first are used.
func (e *rowEmitter) vectorAt(l *ir.Local, rest []*ir.Local) {
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
	if e.kept[l] { // in registers that were declared before the passes
		e.line("#pragma unroll")
		e.line("for (int v = 0; v < VECTOR; ++v) %s = %s;", e.place[l], converted(l, e.laneOf(l, name+".v[v]")))
		return
	}
	e.rawName[l] = name
	e.raw(l, ".v[v]")
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
