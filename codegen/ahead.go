package codegen

import (
	"fmt"

	"github.com/fusec/fusec/ir"
)

// ahead reports whether blocks stay and walk the rows, with the reads of the next row
// on their way through shared memory while one is worked on.
func (e *emitter) ahead() bool { return !e.walking() && aheadOf(e.v) }

// aheadOf reports whether reads of rows ahead pass through shared memory.
func aheadOf(v *ir.Variant) bool {
	return v.Schedule.Mapping == ir.RowMapping && v.Schedule.Stages > 0
}

// aheadShared is the shared memory of the rows ahead.
func aheadShared(v *ir.Variant) int {
	bytes := 0
	for _, l := range v.Staged {
		bytes += v.Schedule.Stages * v.Schedule.Items * v.Schedule.Threads * v.Schedule.Vector * readOf(l.Def).Type.Size()
	}
	return bytes
}

// walkRows writes the loop of a block, or of a cluster, over its rows. One thread has
// the copy engine fetch a row; a barrier counts the bytes as they arrive.
func (e *emitter) walkRows(body func()) {
	e.line("const INDEX rows = %s;", e.s.bare(product(extents(e.k.Rows))))
	e.line("const INDEX stride = gridDim.x / CLUSTER;")
	e.line("const int rank = CLUSTER > 1 ? cluster_rank() : 0;")
	e.line("const int lane = rank * ROW_THREADS + threadIdx.x;")
	e.line("extern __shared__ __align__(128) unsigned char next_rows[];")
	e.line("__shared__ Barrier arrived;")
	at := "next_rows"
	for _, l := range e.v.Staged {
		name := e.names.fresh(l.Name + "_next")
		e.staged[l] = name
		e.line("auto *%s = reinterpret_cast<Vec<%s, VECTOR> *>(%s);", name, storageType(readOf(l.Def).Type), at)
		at = fmt.Sprintf("%s + ITEMS * THREADS", name)
	}
	e.fetchRow()
	e.open("if (threadIdx.x == 0)")
	e.line("barrier_init(shared_address(&arrived), 1);")
	e.line("barriers_publish();")
	e.line("if (blockIdx.x / CLUSTER < rows) fetch(blockIdx.x / CLUSTER);")
	e.close()
	e.line("row_sync<ROW_THREADS, CLUSTER>(); // all blocks of the cluster are there, and their barriers")
	e.awaited = true
	e.line("unsigned turn = 0;")
	e.open("for (INDEX row = blockIdx.x / CLUSTER; row < rows; row += stride, ++turn)")
	e.take(e.k.Rows, "row", e.every()...)
	body()
	e.close()
}

// fetchRow writes the function that has this block's share of a row copied.
func (e *emitter) fetchRow() {
	defs := definitions(e.v.Staged)
	e.line("auto fetch = [&](INDEX row) {")
	e.indent++
	e.take(e.k.Rows, "row", defs...)
	e.line("int columns = 0; // of this block")
	share := "const int n = (int)max((INDEX)0, min(cols - c, (INDEX)(ROW_THREADS * VECTOR)));"
	first := "const INDEX c = (INDEX)(u * CLUSTER + rank) * ROW_THREADS * VECTOR;"
	e.open("for (int u = 0; u < ITEMS; ++u)")
	e.line("%s", first)
	e.line("%s", share)
	e.line("columns += n;")
	e.close()
	size := 0
	for _, l := range e.v.Staged {
		size += readOf(l.Def).Type.Size()
	}
	e.line("barrier_expect(shared_address(&arrived), columns * %d);", size)
	e.open("for (int u = 0; u < ITEMS; ++u)")
	e.line("%s", first)
	e.line("%s", share)
	e.line("if (n == 0) break;")
	e.take(e.k.Cols, "c", e.wideUses(e.v.Staged)...)
	for _, l := range e.v.Staged {
		r := readOf(l.Def)
		e.noted(l.Span, "bytes_load(shared_address(%s + u * THREADS), %s + %s, n * %d, shared_address(&arrived));",
			e.staged[l], e.args[r.Arg], e.s.expr(e.wideOffset(r.Args[0])), r.Type.Size())
	}
	e.close()
	e.indent--
	e.line("};")
}

// refill fetches the next row, once all threads have taken theirs out of shared memory.
func (e *emitter) refill() {
	if e.ahead() && !e.refilled {
		e.line("if (threadIdx.x == 0 && row + stride < rows) fetch(row + stride);")
		e.refilled = true
	}
}
