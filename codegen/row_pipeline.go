package codegen

import (
	"fmt"

	"github.com/fusec/fusec/codegen/skeleton"
	"github.com/fusec/fusec/ir"
)

// rowPipeline writes pipelined reductions: blocks go from row to row, and the next rows are copied to shared memory
// while one is worked on.
type rowPipeline struct {
	*rowEmitter
	refilled bool // the copy of the next row has been started
}

func newRowPipeline(e *emitter) *rowPipeline {
	p := &rowPipeline{rowEmitter: newRow(e, false)}
	p.rowKind = rowKind{stays: true, fetched: true, vector: p.position, arrive: p.arrive, arrived: p.arrivedVector,
		before: p.refillEarly, after: p.refill}
	return p
}

func (e *rowPipeline) kernel() {
	e.line("const INDEX cols = %s;", e.s.Bare(product(extents(e.k.Cols))))
	e.loopRows(e.rowBody)
}

// position writes the first column of a vector, and how many of its elements exist.
func (e *rowPipeline) position() {
	e.line("[[maybe_unused]] const INDEX c = first + (INDEX)(u * ROW_THREADS + threadIdx.x) * VECTOR;")
	e.line("[[maybe_unused]] const int n = c < end ? VECTOR : 0;")
}

func (e *rowPipeline) arrive() { e.line("barrier_wait(shared_address(&arrived[stage]), parity);") }

func (e *rowPipeline) arrivedVector(name string) string {
	return name + "[u * ROW_THREADS + threadIdx.x]"
}

func pipelinePreludes(k *ir.Kernel, v *ir.Variant) string {
	if v.Schedule.Dynamic {
		return skeleton.Text("hopper", "scheduler") + scanPreludes(k, v)
	}
	return skeleton.Text("hopper") + scanPreludes(k, v)
}

func pipelineDefines(v *ir.Variant) string {
	return rowDefines(v) + fmt.Sprintf("#define STAGES %d\n#define ROWS_SHARED %d\n", v.Schedule.Stages, v.Schedule.Shared)
}

func pipelineShared(v *ir.Variant) int { return v.Schedule.Shared }

// loopRows writes the loop of a block, or of a cluster, over its rows. The blocks of a cluster have neighbouring
// shares of a row. One warp starts the copies of rows; for each prefetched row a barrier counts the bytes that have
// arrived.
func (e *rowPipeline) loopRows(body func()) {
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
	if e.v.Schedule.Dynamic {
		e.firstRows()
		e.startScheduler()
		e.open("for (; row < rows; %s, ++turn)", nextRow)
		e.takeTile()
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

// fetchRow writes the function by which a warp starts the copies of the block's share of a row. Its lanes take the
// contiguous runs of the row in turn.
func (e *rowPipeline) fetchRow() {
	run := product(extents(e.k.Cols[len(e.k.Cols)-e.v.Run:]))
	length := "(INDEX)(ROW_THREADS * VECTOR)" // a contiguous row may be cut anywhere
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

// refill starts the copy of another row, once all threads have read theirs out of shared memory. That is after the
// first exchange of a row, for which all threads wait anyway. In a block the exchange has a barrier. In a cluster
// there is none: the exchange orders the values sent, which depend on these reads, but not the reads themselves.
func (e *rowPipeline) refill() {
	if !e.refilled {
		if e.v.Schedule.Cluster > 1 {
			e.line("__syncthreads();")
		}
		e.line("if (threadIdx.x < 32 && row + stages * stride < rows) fetch(row + stages * stride, stage);")
		e.refilled = true
	}
}

// refillEarly does the same before that exchange, for blocks with a dynamic scheduler. They have room for only
// one prefetched row, so otherwise no copy would be under way during the exchange.
func (e *rowPipeline) refillEarly() {
	if e.v.Schedule.Dynamic && !e.refilled {
		e.line("__syncthreads(); // all threads have taken theirs out of shared memory")
		e.line("if (threadIdx.x < 32 && row_1 < rows) fetch(row_1, stage);")
		e.refilled = true
	}
}
