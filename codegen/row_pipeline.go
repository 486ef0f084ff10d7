package codegen

import (
	"fmt"

	"github.com/fusec/fusec/codegen/skeleton"
	"github.com/fusec/fusec/ir"
)

// rowPipeline writes kernels whose blocks stay and go from row to row, with the reads of the next rows on
// their way through shared memory while one is worked on.
type rowPipeline struct {
	*rowEmitter
	refilled bool // the row after this one is on its way
}

func newRowPipeline(e *emitter) *rowPipeline {
	p := &rowPipeline{rowEmitter: newRow(e, false)}
	p.rowKind = rowKind{stays: true, fetched: true, vector: p.position, arrive: p.arrive, arrived: p.arrivedVector,
		before: p.refillEarly, behind: p.refill}
	return p
}

func (e *rowPipeline) kernel() {
	e.line("const INDEX cols = %s;", e.s.Bare(product(extents(e.k.Cols))))
	e.loopRows(e.rowBody)
}

// position writes a vector's first column and how many of its lanes are inside.
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

// loopRows writes the loop of a block, or of a cluster, over its rows. The blocks of a
// cluster have neighbouring shares of a row. One warp has the copy engine fetch rows; a
// barrier for each row ahead counts the bytes as they arrive.
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

// fetchRow writes the function with which a warp has this block's share of a row copied:
// each lane the runs of memory that are its turn.
func (e *rowPipeline) fetchRow() {
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

// refill fetches another row, once all threads have taken theirs out of shared memory: behind
// the first exchange of a row, which they all wait for anyway. In a block that is their barrier.
// In a cluster it orders what is sent, which has come from these reads, but not the reads.
func (e *rowPipeline) refill() {
	if !e.refilled {
		if e.v.Schedule.Cluster > 1 {
			e.line("__syncthreads();")
		}
		e.line("if (threadIdx.x < 32 && row + stages * stride < rows) fetch(row + stages * stride, stage);")
		e.refilled = true
	}
}

// refillEarly does so ahead of that exchange, for blocks with a dynamic scheduler, which have room for one
// row: nothing else would be on its way meanwhile.
func (e *rowPipeline) refillEarly() {
	if e.v.Schedule.Dynamic && !e.refilled {
		e.line("__syncthreads(); // all threads have taken theirs out of shared memory")
		e.line("if (threadIdx.x < 32 && row_1 < rows) fetch(row_1, stage);")
		e.refilled = true
	}
}
