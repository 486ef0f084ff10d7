package codegen

import (
	"fmt"
	"maps"

	"github.com/fusec/fusec/ir"
)

// rowKernel writes a kernel whose rows are each worked on by ROW_THREADS threads.
// Kept values live in registers: [ITEMS][VECTOR] arrays with constant indices.
func (e *emitter) rowKernel() {
	s := e.v.Schedule
	if e.walking() {
		e.line("[[maybe_unused]] const int lane = threadIdx.x %% ROW_THREADS;")
		e.line("const INDEX cols = %s;", e.s.bare(product(extents(e.k.Cols))))
		e.walkKernel(e.rowBody)
		return
	}
	if e.ahead() {
		e.line("const INDEX cols = %s;", e.s.bare(product(extents(e.k.Cols))))
		e.walkRows(e.rowBody)
		return
	}
	if s.Cluster > 1 {
		e.line("cluster_arrive(); // waited for before the first exchange")
		e.line("const int lane = cluster_rank() * ROW_THREADS + threadIdx.x;")
		block := e.block
		if e.v.Finish == nil {
			block = "(blockIdx.x / CLUSTER)"
		}
		e.line("[[maybe_unused]] const INDEX row = (INDEX)%s;", block)
	} else {
		e.line("const int lane = threadIdx.x %% ROW_THREADS;")
		e.line("[[maybe_unused]] const INDEX row = (INDEX)%s * (THREADS / ROW_THREADS) + threadIdx.x / ROW_THREADS;", e.block)
	}
	e.line("const INDEX cols = %s;", e.s.bare(product(extents(e.k.Cols))))
	if s.Threads > s.RowThreads { // a row is a warp here: no barrier waits for the others
		e.line("if (row >= %s) return;", e.s.expr(product(extents(e.rows()))))
	}
	e.take(e.rows(), "row", e.every()...)
	e.rowBody()
}

// rowBody writes the sections of one row.
func (e *emitter) rowBody() { e.rowSections(e.v.Sections) }

// rowSections writes the given sections of one row.
func (e *emitter) rowSections(sections []*ir.Section) {
	for _, l := range e.v.Keep {
		if readOf(l.Def) == nil || usesFull(l.Def) {
			name := e.names.fresh(l.Name)
			e.place[l] = name + "[u][v]"
			e.line("%s %s[ITEMS][VECTOR];", computeType(l.Type), name)
		}
	}
	held := maps.Clone(e.hoisted)
	for i, sec := range sections {
		e.rowLocals(sec)
		if sec.Level == ir.RowLevel {
			e.rowStores(sec)
			continue
		}
		e.sweep(i, sec, held)
	}
}

// rowLocals writes the row-level locals a section needs.
func (e *emitter) rowLocals(sec *ir.Section) {
	have := func(l *ir.Local) bool { return e.done[l] }
	for _, l := range e.wants(ir.RowLevel, have, sectionRoots(sec)...) {
		e.done[l] = true
		e.scalar(l)
	}
}

// scalar writes a local as a constant.
func (e *emitter) scalar(l *ir.Local) {
	text := e.s.bare(l.Def)
	name := e.names.fresh(l.Name)
	e.noted(l.Span, "const %s %s = %s;", e.typeOf(l), name, text)
	e.place[l] = name
}

func (e *emitter) typeOf(l *ir.Local) string {
	if l.Type != l.Type.Info().Compute {
		return storageType(l.Type)
	}
	return computeType(l.Type)
}

// rowStores writes the stores of one element a row, by its first thread.
func (e *emitter) rowStores(sec *ir.Section) {
	e.open("if (lane == 0)")
	for _, st := range sec.Stores {
		e.scalarStore(st)
	}
	e.close()
}

func (e *emitter) scalarStore(st *ir.Store) {
	text := fmt.Sprintf("%s[%s] = %s;", e.args[st.Arg], e.s.bare(st.Offset), storedAs(st, e.s.bare(st.Value)))
	if guard := e.given(st.Guard); guard != nil {
		text = fmt.Sprintf("if (%s) %s", e.s.bare(guard), text)
	}
	e.noted(st.Span, "%s", text)
}

// storedAs converts a computed value to what a store writes.
func storedAs(st *ir.Store, value string) string {
	if t := st.Arg.Type; t != t.Info().Compute {
		return fmt.Sprintf("from_f32<%s>(%s)", t, value)
	}
	return value
}

// sweep writes one pass over the columns.
func (e *emitter) sweep(number int, sec *ir.Section, held map[*ir.Local]bool) {
	have := func(l *ir.Local) bool { return held[l] || l.Level == ir.RowLevel }
	full := e.wants(ir.FullLevel, have, sectionRoots(sec)...)
	e.line("")
	e.line("// sweep %d%s", number+1, foldNames(sec))
	states := e.states(sec)
	reads, rest := e.splitReads(full)
	if e.streaming() {
		e.stream(sec, full, func() { e.pass(sec, reads, rest, states) })
	} else {
		e.launder(held)
		if number > 0 {
			reads, rest = e.keptFirst(reads, rest)
		}
		e.pass(sec, reads, rest, states)
	}
	for _, l := range full {
		if e.kept[l] {
			held[l] = true
		}
	}
	e.finish(sec, states)
}

// streaming reports whether rows are read in pieces.
func (e *emitter) streaming() bool { return e.v.Schedule.Items == 0 }

// stream writes the loop over the pieces of a row: first those that are whole, whose
// reads need no checks and so are all under way together, then what is left.
func (e *emitter) stream(sec *ir.Section, full []*ir.Local, body func()) {
	base, step, whole := e.names.fresh("base"), e.names.fresh("step"), e.names.fresh("whole")
	e.base = base
	e.line("constexpr INDEX %s = (INDEX)ITEMS * (CLUSTER * ROW_THREADS) * VECTOR;", step)
	if sec.Reverse {
		e.open("for (INDEX %s = (cols - 1) / %s * %s; %s >= 0; %s -= %s)", base, step, step, base, base, step)
		body()
		e.close()
		return
	}
	conds, limit := e.prefix(sec, full, "cols")
	e.line("const INDEX %s = %s - %s;", whole, limit, step)
	e.line("INDEX %s = 0;", base)
	e.inside(conds, func() {
		e.open("for (; %s <= %s; %s += %s)", base, whole, base, step)
		body()
		e.close()
	})
	e.open("for (; %s < cols; %s += %s)", base, base, step)
	body()
	e.close()
}

// inside writes text for pieces that are whole and where the conditions hold.
func (e *emitter) inside(conds []*ir.Expr, body func()) {
	e.whole, e.assumed = true, conds
	body()
	e.whole, e.assumed = false, nil
}

// pass reads, folds and stores the vectors in hand.
func (e *emitter) pass(sec *ir.Section, reads, rest []*ir.Local, states map[*ir.Fold]string) {
	e.loadLoop(reads)
	e.rowScans(sec, rest, states)
	if streamed(sec) {
		e.maxima(sec, rest, states)
		e.refillStage()
		e.forget()
	}
	e.computeLoop(sec, rest, states)
	e.refillStage()
}

func foldNames(sec *ir.Section) string {
	text := ""
	for i, f := range sec.Folds {
		text += []string{", ", ": "}[b2i(i == 0)] + f.Result.Name + " = " + f.Op.String()
	}
	return text
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// splitReads separates the reads whose places are known from the position alone:
// they are issued together, before anything is computed.
func (e *emitter) splitReads(full []*ir.Local) (reads, rest []*ir.Local) {
	for _, l := range full {
		if readOf(l.Def) != nil && !usesFull(l.Def) {
			reads = append(reads, l)
		} else {
			rest = append(rest, l)
		}
	}
	return reads, rest
}

// loadLoop issues the reads of all vectors in hand. What is read stays in its
// storage type, half the registers for the 16-bit floats, and is converted where
// it is used.
func (e *emitter) loadLoop(reads []*ir.Local) {
	if len(reads) == 0 {
		return
	}
	for _, l := range reads {
		e.line("Vec<%s, VECTOR> %s[ITEMS];", storageType(readOf(l.Def).Type), e.raw(l, "[u].v[v]"))
	}
	if e.stagedAmong(reads) {
		e.arrive()
	}
	e.openVectors()
	wide, narrow := splitWide(reads)
	if len(wide) > 0 {
		e.take(e.k.Cols, "c", e.wideUses(wide)...)
		for _, l := range wide {
			if next, ok := e.staged[l]; ok {
				e.line("%s[u] = %s;", e.rawName[l], e.arrivedVector(next))
				continue
			}
			e.noted(l.Span, "%s[u] = %s;", e.rawName[l], e.wide(readOf(l.Def)))
		}
	}
	if len(narrow) > 0 {
		e.lanes(definitions(narrow), func() {
			for _, l := range narrow {
				e.noted(l.Span, "%s[u].v[v] = %s;", e.rawName[l], e.read(readOf(l.Def)))
			}
		})
	}
	e.closeVectors()
}

// stagedAmong reports whether one of the reads passes through shared memory.
func (e *emitter) stagedAmong(reads []*ir.Local) bool {
	for _, l := range reads {
		if _, ok := e.staged[l]; ok {
			return true
		}
	}
	return false
}

// keptFirst leaves to the compute loop the reads of a later sweep that are not
// held: they mostly come from the L2 cache, and a vector of each at a time costs
// fewer registers than all of a row.
func (e *emitter) keptFirst(reads, rest []*ir.Local) (first, later []*ir.Local) {
	for _, l := range reads {
		if e.kept[l] {
			first = append(first, l)
		} else {
			later = append(later, l)
		}
	}
	return first, append(later, rest...)
}

// launder hides from the compiler that held 16-bit and 8-bit values are what an
// earlier sweep converted: it would keep the conversions, at twice the registers.
func (e *emitter) launder(held map[*ir.Local]bool) {
	for _, l := range e.v.Keep {
		if r := readOf(l.Def); held[l] && r != nil && (r.Type.Size() < 4 || aheadOf(e.v)) {
			e.line("launder(%s);", e.rawName[l])
		}
	}
}

// forget does so within a sweep that goes through its values twice: what the first
// time makes of a row that fills a thread's registers must not be kept for the second.
func (e *emitter) forget() {
	if !aheadOf(e.v) {
		return
	}
	for _, l := range e.v.Keep {
		e.line("launder(%s);", e.rawName[l])
	}
}

// raw names the registers that hold what a local reads, and says how the local
// is written from now on: the element, converted.
func (e *emitter) raw(l *ir.Local, element string) string {
	name := e.rawName[l]
	if name == "" {
		name = e.names.fresh(l.Name)
		e.rawName[l] = name
	}
	e.place[l] = converted(l, name+element)
	return name
}

// converted converts an element in its storage type as the local's definition does.
func converted(l *ir.Local, element string) string {
	r := readOf(l.Def)
	switch {
	case r == nil || r == l.Def:
		return element
	case r.Type != r.Type.Info().Compute:
		return convert("to_f32("+element+")", ir.F32, l.Type)
	}
	return convert(element, r.Type, l.Type)
}

func splitWide(locals []*ir.Local) (wide, narrow []*ir.Local) {
	for _, l := range locals {
		if l.Wide {
			wide = append(wide, l)
		} else {
			narrow = append(narrow, l)
		}
	}
	return wide, narrow
}

// openVectors opens the loop over the vectors in hand.
func (e *emitter) openVectors() {
	e.line("#pragma unroll")
	e.open("for (int u = 0; u < ITEMS; ++u)")
	e.position()
	if !e.whole {
		e.open("if (n > 0)")
	}
}

// position writes the column c of a vector's first lane, and n, how many of its lanes
// are inside the row.
func (e *emitter) position() {
	base := ""
	if e.streaming() {
		base = e.base + " + "
	}
	place := fmt.Sprintf("%s(INDEX)(u * (CLUSTER * ROW_THREADS) + lane) * VECTOR", base)
	if e.ringed() {
		place = "own + u * (32 * VECTOR)"
	}
	e.line("[[maybe_unused]] const INDEX c = %s;", place)
	switch {
	case e.ringed():
		e.line("[[maybe_unused]] const int n = c < end ? VECTOR : 0;")
	case e.whole:
		e.line("[[maybe_unused]] constexpr int n = VECTOR;")
	case e.wholeVectors():
		e.line("[[maybe_unused]] const int n = c < cols ? VECTOR : 0;")
	default:
		e.line("[[maybe_unused]] const int n = (int)min(cols - c, (INDEX)VECTOR);")
	}
}

func (e *emitter) closeVectors() {
	if !e.whole {
		e.close()
	}
	e.close()
}

// wholeVectors reports whether a row is a whole number of vectors.
func (e *emitter) wholeVectors() bool {
	return ir.Multiple(product(extents(e.k.Cols)), int64(e.v.Schedule.Vector), e.v.Facts)
}

// lanes writes a loop over the lanes of one vector with each lane's coordinates.
// Where a vector stays inside the innermost range, its lanes differ in that
// coordinate alone, and the divisions for the others are done once a vector.
func (e *emitter) lanes(uses []*ir.Expr, body func()) {
	walks := e.walks(e.k.Cols, uses)
	together := walks && len(e.k.Cols) > 1 && ir.Multiple(e.lane.Extent, int64(e.v.Schedule.Vector), e.v.Facts)
	name, first := e.ranges[e.lane], ""
	if together {
		first = e.names.fresh(name + "_first")
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
	case walks && !together:
		e.line("const INDEX col = c + v;")
		e.take(e.k.Cols, "col", uses...)
	}
	body()
	e.close()
	if together {
		e.close()
	}
}
