package codegen

import "github.com/fusec/fusec/ir"

// Rows of a chunk in a ring: the next rows are copied to shared memory while one is worked on.
// A warp's share of a row is one piece. The warp starts its own copies by the copy engine and
// has its own barrier for their arrival, so warps wait for each other only in the folds over a
// row.

// rowRing writes these kernels.
type rowRing struct {
	*rowAccumulate
	refilled bool // the copy of the next row of the ring has been started
}

func newRowRing(e *emitter) *rowRing {
	r := &rowRing{rowAccumulate: newRowAccumulate(e, false)}
	r.fetched, r.vector, r.arrive, r.arrived, r.taken = true, r.position, r.waitForShare, r.arrivedVector, r.refillStage
	return r
}

func (e *rowRing) kernel() {
	e.placeColumns()
	e.chunkLoop(e.ring, func() { e.line("if (++stage == STAGES) stage = 0, phase ^= 1;") })
}

// position writes a vector's first column and how many of its lanes are inside.
func (e *rowRing) position() {
	e.line("[[maybe_unused]] const INDEX c = own + u * (32 * VECTOR);")
	e.line("[[maybe_unused]] const int n = c < end ? VECTOR : 0;")
}

func (e *rowRing) waitForShare() {
	e.line("barrier_wait(shared_address(&arrived[stage][warp]), phase);")
}

func (e *rowRing) arrivedVector(name string) string {
	return name + "[((stage * WARPS + warp) * ITEMS + u) * 32 + threadIdx.x % 32]"
}

// ring writes the shares of the warps and the ring, and starts the copies of the first rows.
func (e *rowRing) ring() {
	e.line("constexpr int WARPS = THREADS / 32;")
	e.line("const int warp = threadIdx.x / 32;")
	e.line("const INDEX share = (cols + THREADS * VECTOR - 1) / (THREADS * VECTOR) * (32 * VECTOR); // of a warp")
	e.line("const INDEX start = warp * share;")
	e.line("const INDEX end = min(cols, start + share);")
	e.line("const INDEX own = start + threadIdx.x %% 32 * VECTOR; // the thread's first column")
	e.line("extern __shared__ __align__(128) unsigned char next_rows[]; // of each read [STAGES][WARPS][ITEMS][32]")
	e.line("__shared__ Barrier arrived[STAGES][WARPS];")
	e.stagedVectors("", "next_rows", "STAGES * ITEMS * THREADS")
	e.fetchShare()
	e.open("if (threadIdx.x %% 32 == 0)")
	e.line("for (int stage = 0; stage < STAGES; ++stage) barrier_init(shared_address(&arrived[stage][warp]), 1);")
	e.line("barriers_publish();")
	e.line("for (int stage = 0; stage < STAGES; ++stage) fetch(stage, stage);")
	e.close()
	e.line("__syncwarp();")
	e.line("int stage = 0;")
	e.line("unsigned phase = 0;")
}

// fetchShare writes the function that starts the copy of the warp's share of a row. Rows that
// the chunk lacks are its last ones.
func (e *rowRing) fetchShare() {
	used := definitions(e.v.Staged)
	if e.k.Inside != nil {
		used = append(used, e.k.Inside)
	}
	e.open("auto fetch = [&](INDEX step, int stage)")
	e.line("if (step >= steps) return;")
	e.take(e.k.Accumulated, "step", used...)
	if e.k.Inside != nil {
		e.line("if (!(%s)) return;", e.s.Bare(e.k.Inside))
	}
	e.line("const int columns = (int)max((INDEX)0, end - start);")
	e.line("const unsigned bar = shared_address(&arrived[stage][warp]);")
	e.line("barrier_expect(bar, columns * %d);", stagedBytes(e.v))
	e.line("if (columns == 0) return;")
	e.take(e.k.Cols, "start", e.wideUses(e.v.Staged)...)
	for _, l := range e.v.Staged {
		r := readOf(l.Def)
		e.noted(l.Span, "bytes_load(shared_address(%s + (stage * WARPS + warp) * ITEMS * 32), %s + %s, columns * %d, bar%s);",
			e.staged[l], e.args[r.Arg], e.s.Expr(e.wideOffset(r.Args[0])), r.Type.Size(), e.under(r))
	}
	e.closeWith(";")
}

// refillStage writes the copy that fills the current stage again, once all lanes of the warp
// have read it.
func (e *rowRing) refillStage() {
	if !e.refilled {
		e.line("__syncwarp();")
		e.line("if (threadIdx.x %% 32 == 0) fetch(step + STAGES, stage);")
		e.refilled = true
	}
}

// ringShared is the shared memory of the prefetched rows of a chunk.
func ringShared(v *ir.Variant) int {
	s := v.Schedule
	return s.Stages * s.Items * s.Threads * s.Vector * stagedBytes(v)
}
