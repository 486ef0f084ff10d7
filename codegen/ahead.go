package codegen

import (
	"fmt"

	"github.com/fusec/fusec/codegen/skeleton"
	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/ir"
)

// ahead reports whether blocks stay and walk the rows, with the reads of the next row
// on their way through shared memory while one is worked on.
func (e *emitter) ahead() bool { return !e.walking() && aheadOf(e.v) }

// aheadOf reports whether reads of rows ahead pass through shared memory.
func aheadOf(v *ir.Variant) bool {
	return v.Strategy == ir.RowPipeline || v.Strategy == ir.RowChunk || v.Strategy == ir.RowWalkPipeline
}

func pipelinePreludes(k *ir.Kernel, v *ir.Variant) string {
	if v.Schedule.Tickets {
		return skeleton.Text("hopper", "tickets") + scanPreludes(k, v)
	}
	return skeleton.Text("hopper") + scanPreludes(k, v)
}

func pipelineDefines(v *ir.Variant) string {
	return rowDefines(v) + fmt.Sprintf("#define STAGES %d\n#define ROWS_SHARED %d\n", v.Schedule.Stages, v.Schedule.Shared)
}

func pipelineShared(v *ir.Variant) int { return v.Schedule.Shared }

// aheadShared is the shared memory of the rows ahead of a walk.
func aheadShared(v *ir.Variant) int {
	s := v.Schedule
	return s.Stages * s.Items * s.Threads * s.Vector * stagedBytes(v)
}

// walkRows writes the loop of a block, or of a cluster, over its rows. The blocks of a
// cluster have neighbouring shares of a row. One warp has the copy engine fetch rows; a
// barrier for each row ahead counts the bytes as they arrive.
func (e *emitter) walkRows(body func()) {
	e.line("const INDEX rows = %s;", e.s.Bare(product(extents(e.k.Rows))))
	e.line("const INDEX stride = gridDim.x / CLUSTER;")
	e.line("const int rank = CLUSTER > 1 ? cluster_rank() : 0;")
	e.line("[[maybe_unused]] const int lane = rank * ROW_THREADS + threadIdx.x;")
	e.line("const INDEX share = (cols / VECTOR + CLUSTER - 1) / CLUSTER * VECTOR;")
	e.line("const INDEX first = min(cols, rank * share), end = min(cols, first + share); // this block's columns")
	e.divisors()
	e.line("extern __shared__ __align__(128) unsigned char next_rows[];")
	e.line("__shared__ Barrier arrived[STAGES], meeting[2];")
	e.line("const int row_bytes = (int)share * %d;", stagedBytes(e.v))
	e.line("const int stages = min(STAGES, ROWS_SHARED / max(row_bytes, 1));")
	e.fetchRow()
	e.open("if (threadIdx.x == 0)")
	e.line("for (int s = 0; s < stages; ++s) barrier_init(shared_address(&arrived[s]), 1);")
	e.line("for (int s = 0; s < 2; ++s) barrier_init(shared_address(&meeting[s]), 1);")
	e.line("barriers_publish();")
	e.close()
	e.line("__syncthreads();")
	e.open("if (threadIdx.x < 32)")
	e.open("for (int s = 0; s < stages; ++s)")
	e.line("const INDEX row = blockIdx.x / CLUSTER + s * stride;")
	e.line("if (row < rows) fetch(row, s);")
	e.close()
	e.close()
	if e.v.Schedule.Cluster > 1 {
		e.line("row_sync<ROW_THREADS, CLUSTER>(); // all blocks of the cluster are there")
	}
	e.awaited = true
	e.line("unsigned turn = 0, parity = 0;")
	e.line("Meetings meetings{meeting, 0};")
	e.line("int stage = 0;")
	if e.v.Schedule.Tickets {
		e.firstRows()
		e.startTickets()
		e.open("for (; row < rows; %s, ++turn)", nextRow)
		e.takeTicket()
	} else {
		e.open("for (INDEX row = blockIdx.x / CLUSTER; row < rows; row += stride, ++turn)")
	}
	e.take(e.k.Rows, "row", e.every()...)
	e.stagedVectors("const ", "next_rows + stage * row_bytes", "share / VECTOR")
	e.rowReads()
	body()
	e.line("if (++stage == stages) stage = 0, parity ^= 1;")
	e.close()
}

// stagedVectors writes where in shared memory the vectors of each staged read begin: the
// first at a place, each of the others as many vectors behind the one before.
func (e *emitter) stagedVectors(qualifier, at, vectors string) {
	for _, l := range e.v.Staged {
		name := e.names.Fresh(l.Name + "_next")
		e.staged[l] = name
		e.line("%[1]sauto *%[2]s = reinterpret_cast<%[1]sVec<%[3]s, VECTOR> *>(%[4]s);", qualifier, name,
			spell.StorageType(readOf(l.Def).Type), at)
		at = name + " + " + vectors
	}
}

// stagedBytes is what one column of all staged reads takes.
func stagedBytes(v *ir.Variant) int {
	bytes := 0
	for _, l := range v.Staged {
		bytes += readOf(l.Def).Type.Size()
	}
	return bytes
}

// rowReads writes, ahead of the wait for a row, the row-level values that do not depend
// on its folds: what they read is on its way meanwhile. What is made of it waits until it
// is wanted, as threads would wait for it here.
func (e *emitter) rowReads() {
	have := func(l *ir.Local) bool { return e.done[l] }
	after := map[*ir.Local]bool{} // those that wait for a fold, or for what is read
	for _, l := range e.wants(ir.RowLevel, have, e.every()...) {
		read := readOf(l.Def)
		after[l] = ir.Contains(l.Def, func(x *ir.Expr) bool {
			return x.Op == ir.OpLocal && (x.Local.Def == nil || after[x.Local] || read == nil && readOf(x.Local.Def) != nil)
		})
		switch {
		case after[l]:
		case read != nil && read != l.Def:
			e.convertedLater(l, read)
		default:
			e.done[l] = true
			e.scalar(l)
		}
	}
}

// convertedLater reads a row-level value as memory holds it; scalar converts it.
func (e *emitter) convertedLater(l *ir.Local, read *ir.Expr) {
	e.settle(read.Args[0])
	if read.Guard != nil {
		e.settle(read.Guard)
	}
	name := e.names.Fresh(l.Name + "_stored")
	e.noted(l.Span, "const %s %s = %s;", spell.StorageType(read.Type), name, e.read(read))
	e.stored[l] = name
}

// settle writes the values that a place is made of and that were to be converted later.
func (e *emitter) settle(place *ir.Expr) {
	ir.Walk(place, func(x *ir.Expr) bool {
		if x.Op == ir.OpLocal && e.stored[x.Local] != "" && !e.done[x.Local] {
			e.done[x.Local] = true
			e.scalar(x.Local)
		}
		return true
	})
}

// divisors writes the sizes by which a column's position is divided, each with the
// factor that makes a product of the division.
func (e *emitter) divisors() {
	for _, r := range e.k.Cols[1:] {
		if r.Extent.Op == ir.OpConst {
			continue
		}
		e.divisor[r] = e.names.Fresh(e.ranges[r] + "_extent")
		e.line("const Divisor<INDEX> %s(%s);", e.divisor[r], e.s.Bare(r.Extent))
	}
}

// fetchRow writes the function with which a warp has this block's share of a row copied:
// each lane the runs of memory that are its turn.
func (e *emitter) fetchRow() {
	run := product(extents(e.k.Cols[len(e.k.Cols)-e.v.Run:]))
	length := "(INDEX)(ROW_THREADS * VECTOR)" // of a contiguous row any pieces will do
	if e.v.Run < len(e.k.Cols) {
		length = e.s.Bare(run)
	}
	e.line("const INDEX run = %s; // columns that are neighbours in memory, or a piece of those", length)
	e.open("auto fetch = [&](INDEX row, int stage)")
	e.take(e.k.Rows, "row", definitions(e.v.Staged)...)
	e.line("const unsigned bar = shared_address(&arrived[stage]), to = shared_address(next_rows) + stage * row_bytes;")
	e.line("if (threadIdx.x == 0) barrier_expect(bar, (int)(end - first) * %d);", stagedBytes(e.v))
	e.line("__syncwarp();")
	e.open("for (INDEX at = first / run * run + threadIdx.x * run; at < end; at += 32 * run)")
	e.line("const INDEX c = max(at, first);")
	e.line("const int n = (int)(min(at + run, end) - c);")
	e.line("if (n <= 0) break;")
	e.copyRun("share", "first")
	e.close()
	e.closeWith(";")
}

// copyRun writes the copies of n columns from c on, which are neighbours in memory, of all staged
// reads: each has room for so many columns behind the one before, from the column first on.
func (e *emitter) copyRun(room, first string) {
	e.take(e.k.Cols, "c", e.wideUses(e.v.Staged)...)
	before := 0
	for _, l := range e.v.Staged {
		r := readOf(l.Def)
		e.noted(l.Span, "bytes_load(to + (int)%s * %d + (int)(c - %s) * %d, %s + %s, n * %d, bar%s);", room, before,
			first, r.Type.Size(), e.args[r.Arg], e.s.Expr(e.wideOffset(r.Args[0])), r.Type.Size(), e.under(r))
		before += r.Type.Size()
	}
}

// refill fetches another row, once all threads have taken theirs out of shared memory: behind
// the first exchange of a row, which they all wait for anyway. In a block that is their barrier.
// In a cluster it orders what is sent, which has come from these reads, but not the reads.
func (e *emitter) refill() {
	if e.ahead() && !e.refilled {
		if e.v.Schedule.Cluster > 1 {
			e.line("__syncthreads();")
		}
		e.line("if (threadIdx.x < 32 && row + stages * stride < rows) fetch(row + stages * stride, stage);")
		e.refilled = true
	}
}

// refillEarly does so ahead of that exchange, for blocks with tickets, which have room for one
// row: nothing else would be on its way meanwhile.
func (e *emitter) refillEarly() {
	if e.v.Schedule.Tickets && !e.refilled {
		e.line("__syncthreads(); // all threads have taken theirs out of shared memory")
		e.line("if (threadIdx.x < 32 && row_1 < rows) fetch(row_1, stage);")
		e.refilled = true
	}
}
