package codegen

import (
	"fmt"
	"maps"

	"github.com/fusec/fusec/codegen/skeleton"
	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/ir"
)

// rowEmitter writes kernels of the row mapping: ROW_THREADS threads share a row, whose columns are contiguous in
// memory. Kept values are in registers, as [ITEMS][VECTOR] arrays that are indexed by constants.
type rowEmitter struct {
	*emitter
	rowKind
	inRows  map[*ir.Local]string // the place in shared memory of a read of a row
	hoisted map[*ir.Local]bool   // kept values that are the same for all rows of a chunk, and read once
	issued  []string             // names of values that were read for a store and are not used yet
	base    string               // in a looped reduction: the first column of the current piece
	awaited bool                 // the kernel has waited until all blocks of the cluster run
}

// rowKind is the differences between the strategies of this family. A function that is nil does
// nothing, or does what RowPersistent and RowLoop do.
type rowKind struct {
	looped      bool // rows are read in pieces, again in every pass
	stays       bool // persistent blocks go from row to row, instead of one block for each row
	accumulates bool // threads go through all rows of a chunk
	fetched     bool // reads of a row are prefetched to shared memory

	vector  func()                   // writes the column c of a vector, and n
	arrive  func()                   // waits for the prefetched row
	arrived func(name string) string // the expression for a vector of the prefetched row
	taken   func()                   // called when the row has been read out of shared memory
	before  func()                   // called before an exchange between the row's threads,
	after   func()                   // and called after it, when all threads have met
	row     func()                   // called when a block has got its next row from the scheduler
	staging func() (store func())    // fills the block's shared memory, and returns the function that stores from it
	partial func(sec *ir.Section)    // adds an element to the results that are accumulated over rows
	// pass is a pass over the columns, and pairs folds two elements at a time where it can.
	pass  func(number int, sec *ir.Section, full []*ir.Local, states map[*ir.Fold]string)
	pairs func(f *ir.Fold, state string) bool
}

func newRow(e *emitter, looped bool) *rowEmitter {
	return &rowEmitter{emitter: e, rowKind: rowKind{looped: looped}, hoisted: map[*ir.Local]bool{},
		inRows: map[*ir.Local]string{}}
}

// kernel writes a kernel each of whose blocks, or clusters, has rows of its own.
func (e *rowEmitter) kernel() {
	s := e.v.Schedule
	rows, cols := product(extents(e.rows())), e.s.Bare(product(extents(e.k.Cols)))
	at := fmt.Sprintf("(INDEX)%s * (THREADS / ROW_THREADS) + threadIdx.x / ROW_THREADS", e.block)
	switch {
	case s.Cluster > 1:
		e.line("cluster_arrive(); // waited for before the first exchange")
		e.line("const int lane = cluster_rank() * ROW_THREADS + threadIdx.x;")
		block := e.block
		if e.v.LastBlock == nil {
			block = "(blockIdx.x / CLUSTER)"
		}
		e.line("[[maybe_unused]] const INDEX row = (INDEX)%s;", block)
	case sharesWarp(e.v): // the warp stays whole for exchanges; the numbers of its last rows may not fit INDEX
		e.line("const int lane = threadIdx.x %% ROW_THREADS;")
		e.line("const bool inside = (unsigned long long)%s * (THREADS / ROW_THREADS) + threadIdx.x / ROW_THREADS < (unsigned long long)%s;",
			e.block, e.s.Expr(rows))
		e.line("[[maybe_unused]] const INDEX row = inside ? %s : 0;", at)
		cols = fmt.Sprintf("inside ? %s : 0", cols)
	case s.Threads > s.RowThreads || e.looped:
		e.line("const int lane = threadIdx.x %% ROW_THREADS;")
		e.line("[[maybe_unused]] const INDEX row = %s;", at)
	default: // the compiler can see that all threads have the same row; a loop would keep more in registers
		e.line("const int lane = threadIdx.x;")
		e.line("[[maybe_unused]] const INDEX row = (INDEX)%s;", e.block)
	}
	e.line("const INDEX cols = %s;", cols)
	if s.Threads > s.RowThreads && !sharesWarp(e.v) { // a row is a warp here: no barrier waits for the others
		e.line("if (row >= %s) return;", e.s.Expr(rows))
	}
	e.take(e.rows(), "row", e.every()...)
	staging := e.stagedRows
	if e.rowKind.staging != nil {
		staging = e.rowKind.staging
	}
	out := staging()
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

// rowBlocks is the number of blocks, or of clusters, that share the rows.
func rowBlocks(k *ir.Kernel, v *ir.Variant) *ir.Expr {
	return ceilDiv(product(extents(dealt(k, v))), int64(v.Schedule.Threads/v.Schedule.RowThreads))
}

// lastColumn is the range along which a vector's elements lie.
func lastColumn(k *ir.Kernel, _ *ir.Variant) *ir.Range { return k.Cols[len(k.Cols)-1] }

// sharesWarp reports whether several rows share a warp, or the threads of all rows work together at some point. Lanes
// without a row take part as if their row had no columns.
func sharesWarp(v *ir.Variant) bool { return v.Schedule.RowThreads < 32 || v.Across != nil }

// rowBody writes the sections of one row.
func (e *rowEmitter) rowBody() { e.rowSections(e.v.Sections) }

// rowSections writes the given sections of one row.
func (e *rowEmitter) rowSections(sections []*ir.Section) {
	for _, l := range e.v.Keep {
		if readOf(l.Def) == nil || usesFull(l.Def) {
			name := e.names.Fresh(l.Name)
			e.place[l] = name + "[u][v]"
			e.line("%s %s[ITEMS][VECTOR];", spell.ComputeType(l.Type), name)
		}
	}
	if e.looped && !e.stays {
		e.earlyReads(sections)
	}
	inRegisters := maps.Clone(e.hoisted)
	for i, sec := range sections {
		e.rowLocals(sectionRoots(sec)...)
		if sec.Level == ir.RowLevel {
			e.rowStores(sec)
			continue
		}
		e.passOver(i, sec, inRegisters)
	}
}

// rowStores writes the stores of one element for each row, by the row's first thread.
func (e *rowEmitter) rowStores(sec *ir.Section) {
	first := "lane == 0"
	if sharesWarp(e.v) {
		first += " && inside"
	}
	e.open("if (%s)", first)
	for _, st := range sec.Stores {
		e.scalarStore(st)
	}
	e.close()
}

// passOver writes one pass over the columns.
func (e *rowEmitter) passOver(number int, sec *ir.Section, inRegisters map[*ir.Local]bool) {
	have := func(l *ir.Local) bool { return inRegisters[l] || l.Level == ir.RowLevel }
	full := e.wants(ir.FullLevel, have, sectionRoots(sec)...)
	e.line("")
	e.line("// pass %d%s", number+1, foldNames(sec))
	states := e.states(sec)
	if e.rowKind.pass != nil {
		e.rowKind.pass(number, sec, full, states)
		e.readsAhead(number)
		e.mergeStates(sec, states)
		return
	}
	reads, rest := e.splitReads(full)
	early := e.earlyColumns(inRegisters)
	reads = append(reads, early...)
	e.earlyRows()
	if e.looped {
		e.stream(sec, full, func() { e.vectorPass(sec, reads, rest, states) })
	} else {
		e.launder(inRegisters)
		if number > 0 {
			reads, rest = e.keptFirst(reads, rest)
		}
		e.once(sec, full, len(early) > 0, func() { e.vectorPass(sec, reads, rest, states) })
	}
	for _, l := range full {
		if e.kept[l] {
			inRegisters[l] = true
		}
	}
	e.lookUps(number)
	e.mergeStates(sec, states)
}

// stream writes the loop over the pieces of a row in a looped reduction. Whole pieces come first: their reads need
// no checks, so all of them are issued together. The rest of the row follows.
func (e *rowEmitter) stream(sec *ir.Section, full []*ir.Local, body func()) {
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

// once writes a pass over a row whose reads are all issued at once. If only the end of some rows needs checks,
// such as in the last of many chunks, and in scans, whole rows get a branch without checks: with checks, the
// work on one vector would wait for that on the others. Values that later passes need are computed outside of
// this branch.
func (e *rowEmitter) once(sec *ir.Section, full []*ir.Local, holds bool, body func()) {
	if holds || len(e.v.Keep) > 0 || e.fetched {
		body()
		return
	}
	conds, limit := e.prefix(sec, full, "cols")
	if len(conds) == 0 && len(sec.Scans()) == 0 || len(sec.Scans()) > 0 && sharesWarp(e.v) { // the lanes of a warp scan together
		body()
		return
	}
	inside := ""
	if sharesWarp(e.v) {
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

// vectorPass reads, folds and stores the current vectors of a thread.
func (e *rowEmitter) vectorPass(sec *ir.Section, reads, rest []*ir.Local, states map[*ir.Fold]string) {
	e.loadLoop(reads)
	e.rowScans(sec, rest, states)
	if streamed(sec) {
		e.maxima(sec, rest, states)
		e.call(e.taken)
		e.forget()
	}
	e.computeLoop(sec, rest, states)
	e.call(e.taken)
}

// call runs a part of the kind of rows, if it has it.
func (e *rowEmitter) call(part func()) {
	if part != nil {
		part()
	}
}
