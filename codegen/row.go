package codegen

import (
	"fmt"
	"maps"

	"github.com/fusec/fusec/codegen/skeleton"
	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/ir"
)

// rowKernel writes a kernel whose rows are each worked on by ROW_THREADS threads.
// Kept values live in registers: [ITEMS][VECTOR] arrays with constant indices.
func (e *emitter) rowKernel() {
	s := e.v.Schedule
	if e.walking() {
		e.line("[[maybe_unused]] const int lane = threadIdx.x %% ROW_THREADS;")
		e.line("const INDEX cols = %s;", e.s.Bare(product(extents(e.k.Cols))))
		e.walkKernel(e.rowBody)
		return
	}
	if e.ahead() {
		e.line("const INDEX cols = %s;", e.s.Bare(product(extents(e.k.Cols))))
		if e.chunked() {
			e.walkChunks(e.rowBody)
		} else {
			e.walkRows(e.rowBody)
		}
		return
	}
	rows, cols := product(extents(e.rows())), e.s.Bare(product(extents(e.k.Cols)))
	at := fmt.Sprintf("(INDEX)%s * (THREADS / ROW_THREADS) + threadIdx.x / ROW_THREADS", e.block)
	switch {
	case s.Cluster > 1:
		e.line("cluster_arrive(); // waited for before the first exchange")
		e.line("const int lane = cluster_rank() * ROW_THREADS + threadIdx.x;")
		block := e.block
		if e.v.Finish == nil {
			block = "(blockIdx.x / CLUSTER)"
		}
		e.line("[[maybe_unused]] const INDEX row = (INDEX)%s;", block)
	case e.sharesWarp(): // which stays whole for exchanges; the last rows may be beyond what INDEX counts
		e.line("const int lane = threadIdx.x %% ROW_THREADS;")
		e.line("const bool inside = (unsigned long long)%s * (THREADS / ROW_THREADS) + threadIdx.x / ROW_THREADS < (unsigned long long)%s;",
			e.block, e.s.Expr(rows))
		e.line("[[maybe_unused]] const INDEX row = inside ? %s : 0;", at)
		cols = fmt.Sprintf("inside ? %s : 0", cols)
	case s.Threads > s.RowThreads || e.streaming():
		e.line("const int lane = threadIdx.x %% ROW_THREADS;")
		e.line("[[maybe_unused]] const INDEX row = %s;", at)
	default: // the same row for all threads, as the compiler can see. Loops would keep more in registers
		e.line("const int lane = threadIdx.x;")
		e.line("[[maybe_unused]] const INDEX row = (INDEX)%s;", e.block)
	}
	e.line("const INDEX cols = %s;", cols)
	if s.Threads > s.RowThreads && !e.sharesWarp() { // a row is a warp here: no barrier waits for the others
		e.line("if (row >= %s) return;", e.s.Expr(rows))
	}
	e.take(e.rows(), "row", e.every()...)
	out := e.stagedRows()
	e.rowBody()
	out()
}

func rowPreludes(k *ir.Kernel, v *ir.Variant) string {
	text := scanPreludes(k, v)
	if stagesRows(v) {
		text = skeleton.Text("staged") + text
	}
	return text
}

func rowDefines(v *ir.Variant) string {
	s := v.Schedule
	return fmt.Sprintf("#define ROW_THREADS %d\n#define CLUSTER %d\n#define ITEMS %d\n", s.RowThreads, max(s.Cluster, 1), max(s.Items, s.Unroll))
}

// rowBlocks is the number of blocks, or clusters, that rows are dealt out over.
func rowBlocks(k *ir.Kernel, v *ir.Variant) *ir.Expr {
	return ceilDiv(product(extents(dealt(k, v))), int64(v.Schedule.Threads/v.Schedule.RowThreads))
}

// lastColumn is the range that vectors of a row run along.
func lastColumn(k *ir.Kernel, _ *ir.Variant) *ir.Range { return k.Cols[len(k.Cols)-1] }

// sharesWarp reports whether rows share a warp. Lanes without a row do as if theirs had no columns.
func (e *emitter) sharesWarp() bool { return sharesWarp(e.v) }

func sharesWarp(v *ir.Variant) bool {
	return v.Schedule.RowThreads < 32
}

// rowBody writes the sections of one row.
func (e *emitter) rowBody() { e.rowSections(e.v.Sections) }

// rowSections writes the given sections of one row.
func (e *emitter) rowSections(sections []*ir.Section) {
	for _, l := range e.v.Keep {
		if readOf(l.Def) == nil || usesFull(l.Def) {
			name := e.names.Fresh(l.Name)
			e.place[l] = name + "[u][v]"
			e.line("%s %s[ITEMS][VECTOR];", spell.ComputeType(l.Type), name)
		}
	}
	if e.streaming() && !e.ahead() {
		e.earlyReads(sections)
	}
	held := maps.Clone(e.hoisted)
	for i, sec := range sections {
		e.rowLocals(sectionRoots(sec)...)
		if sec.Level == ir.RowLevel {
			e.rowStores(sec)
			continue
		}
		e.sweep(i, sec, held)
	}
}

// earlyReads issues what is read of a row itself, at places that its number gives, ahead
// of the sweeps: it is there when they are done. What is looked up at places that are
// read waits: the sweeps would wait for those.
func (e *emitter) earlyReads(sections []*ir.Section) {
	for _, sec := range sections {
		have := func(l *ir.Local) bool { return e.done[l] }
		if sec.Level != ir.RowLevel {
			continue
		}
		for _, l := range e.wants(ir.RowLevel, have, sectionRoots(sec)...) {
			if r := readOf(l.Def); r != nil && r.Guard == nil && readDepth(l.Def) == 1 && !ir.Has(r.Args[0], ir.OpLocal) {
				e.done[l] = true
				e.scalar(l)
			}
		}
	}
}

// rowLocals writes the row-level locals that the roots need and that are not written yet.
func (e *emitter) rowLocals(roots ...*ir.Expr) {
	have := func(l *ir.Local) bool { return e.done[l] }
	for _, l := range e.wants(ir.RowLevel, have, roots...) {
		e.done[l] = true
		e.scalar(l)
	}
}

// scalar writes a local as a constant.
func (e *emitter) scalar(l *ir.Local) {
	text := ""
	if stored := e.stored[l]; stored != "" {
		text = converted(l, stored)
	} else {
		text = e.s.Bare(l.Def)
	}
	name := e.names.Fresh(l.Name)
	e.noted(l.Span, "const %s %s = %s;", e.typeOf(l), name, text)
	e.place[l] = name
}

func (e *emitter) typeOf(l *ir.Local) string {
	if l.Type != l.Type.Info().Compute {
		return spell.StorageType(l.Type)
	}
	return spell.ComputeType(l.Type)
}

// rowStores writes the stores of one element a row, by its first thread.
func (e *emitter) rowStores(sec *ir.Section) {
	first := "lane == 0"
	if e.sharesWarp() {
		first += " && inside"
	}
	e.open("if (%s)", first)
	for _, st := range sec.Stores {
		e.scalarStore(st)
	}
	e.close()
}

func (e *emitter) scalarStore(st *ir.Store) {
	text := fmt.Sprintf("%s[%s] = %s;", e.args[st.Arg], e.s.Bare(st.Offset), storedAs(st, e.s.Bare(st.Value)))
	if guard := e.given(st.Guard); guard != nil {
		text = fmt.Sprintf("if (%s) %s", e.s.Bare(guard), text)
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
	if e.chunked() {
		e.sweepChunks(number, sec, full, states)
		e.finish(sec, states)
		return
	}
	reads, rest := e.splitReads(full)
	early := e.earlyColumns(held)
	reads = append(reads, early...)
	e.earlyRows()
	if e.streaming() {
		e.stream(sec, full, func() { e.pass(sec, reads, rest, states) })
	} else {
		e.launder(held)
		if number > 0 {
			reads, rest = e.keptFirst(reads, rest)
		}
		e.once(sec, full, len(early) > 0, func() { e.pass(sec, reads, rest, states) })
	}
	for _, l := range full {
		if e.kept[l] {
			held[l] = true
		}
	}
	e.lookUps(number)
	e.finish(sec, states)
}

// streaming reports whether rows are read in pieces.
func (e *emitter) streaming() bool { return e.v.Schedule.Items == 0 }

// stream writes the loop over the pieces of a row: first those that are whole, whose
// reads need no checks and so are all under way together, then what is left.
func (e *emitter) stream(sec *ir.Section, full []*ir.Local, body func()) {
	base, step, whole := e.names.Fresh("base"), e.names.Fresh("step"), e.names.Fresh("whole")
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

// once writes a pass over a row that threads have at once. Where its end has conditions that
// most rows do not meet, as the last of many chunks does, the others go without, and so do whole
// rows that are scanned: the work of one vector would wait for that of the others. What later
// passes find held stands in no branch.
func (e *emitter) once(sec *ir.Section, full []*ir.Local, holds bool, body func()) {
	if holds || len(e.v.Keep) > 0 || e.ahead() || e.ringed() {
		body()
		return
	}
	conds, limit := e.prefix(sec, full, "cols")
	if len(conds) == 0 && len(sec.Scans()) == 0 {
		body()
		return
	}
	inside := ""
	if e.sharesWarp() {
		inside = "inside && "
	}
	e.inside(conds, func() {
		e.open("if (%s(INDEX)ITEMS * (CLUSTER * ROW_THREADS) * VECTOR <= %s)", inside, limit)
		body()
		e.close()
	})
	e.open("else")
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
	if e.chunked() {
		e.line("[[maybe_unused]] const INDEX c = base + (u * 32 + threadIdx.x %% 32) * VECTOR;")
		e.line("[[maybe_unused]] const int n = c < cols ? VECTOR : 0;")
		return
	}
	if e.ahead() {
		e.line("[[maybe_unused]] const INDEX c = first + (INDEX)(u * ROW_THREADS + threadIdx.x) * VECTOR;")
		e.line("[[maybe_unused]] const int n = c < end ? VECTOR : 0;")
		return
	}
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
		e.line("[[maybe_unused]] const int n = %sc < cols ? VECTOR : 0;", e.surely())
	default:
		e.line("[[maybe_unused]] const int n = (int)min(cols - c, (INDEX)VECTOR);")
	}
}

// surely is a condition on the vectors of a thread that hold columns however short the row is.
func (e *emitter) surely() string {
	s := e.v.Schedule
	if full := e.v.Least / (s.RowThreads * max(1, s.Cluster) * s.Vector); full > 0 {
		return fmt.Sprintf("u < %d || ", full)
	}
	return ""
}

func (e *emitter) closeVectors() {
	if !e.whole {
		e.close()
	}
	e.close()
}

// wholeVectors reports whether a row is a whole number of vectors.
func (e *emitter) wholeVectors() bool {
	return e.ahead() || ir.Multiple(product(extents(e.k.Cols)), int64(e.v.Schedule.Vector), e.v.Facts)
}

// lanes writes a loop over the lanes of one vector with each lane's coordinates.
// Where a vector stays inside the innermost range, its lanes differ in that
// coordinate alone, and the divisions for the others are done once a vector.
func (e *emitter) lanes(uses []*ir.Expr, body func()) {
	walks := e.walks(e.k.Cols, uses)
	together := walks && len(e.k.Cols) > 1 && ir.Multiple(e.lane.Extent, int64(e.v.Schedule.Vector), e.v.Facts)
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
