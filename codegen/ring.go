package codegen

// Rows of a walk in a ring: the next rows are on their way to shared memory while one is
// worked on. A warp's share of a row is one piece, which the warp has the copy engine
// fetch for itself and whose arrival a barrier of its own tells: warps wait for each
// other in the folds over the row alone.

// ringed reports whether the kernel is one of these.
func (e *emitter) ringed() bool { return e.walking() && e.v.Schedule.Stages > 0 }

// ring writes the shares of the warps and the ring, and has the first rows fetched.
func (e *emitter) ring() {
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

// fetchShare writes the function that has the warp's share of a row copied. Rows that
// are left out of the walk are its last ones.
func (e *emitter) fetchShare() {
	used := definitions(e.v.Staged)
	if e.k.Inside != nil {
		used = append(used, e.k.Inside)
	}
	e.open("auto fetch = [&](INDEX step, int stage)")
	e.line("if (step >= steps) return;")
	e.take(e.k.Walk, "step", used...)
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

// arrive waits for what is read from shared memory.
func (e *emitter) arrive() {
	if e.ringed() {
		e.line("barrier_wait(shared_address(&arrived[stage][warp]), phase);")
		return
	}
	e.line("barrier_wait(shared_address(&arrived[stage]), parity);")
}

// arrivedVector is the vector of a staged read that the loop over them is at.
func (e *emitter) arrivedVector(name string) string {
	if e.ringed() {
		return name + "[((stage * WARPS + warp) * ITEMS + u) * 32 + threadIdx.x % 32]"
	}
	if e.chunked() {
		return name + "[u * 32 + threadIdx.x % 32]"
	}
	return name + "[u * ROW_THREADS + threadIdx.x]"
}

// refillStage has the stage in hand filled again, once all lanes of the warp have what
// it held.
func (e *emitter) refillStage() {
	if e.ringed() && !e.refilled {
		e.line("__syncwarp();")
		e.line("if (threadIdx.x %% 32 == 0) fetch(step + STAGES, stage);")
		e.refilled = true
	}
}
