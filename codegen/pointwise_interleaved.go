package codegen

import (
	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/ir"
)

// interleaved writes a pointwise kernel in two steps. The block copies the runs of memory that hold the elements of its
// TILE_N lanes, TILE_M of each, to shared memory. Then every thread computes vectors of the innermost range from there.
func (e *pointEmitter) interleaved() {
	p := e.v.Across
	along := e.tiles("q", "TILE_N", e.lane.Extent, e.v.Schedule.TileN)
	e.line("const INDEX strip = (INDEX)blockIdx.x / %[1]s, origin_q = (INDEX)blockIdx.x %% %[1]s * TILE_N;", along)
	if outer := outerRows(e.k, e.v); len(outer) > 0 {
		e.take(outer, "strip", e.every()...)
	}
	tiles := e.runs()
	e.line("const unsigned whole = (unsigned)min(%s - origin_q, (INDEX)TILE_N) * TILE_M; // elements of the run", e.s.Expr(e.lane.Extent))
	for _, l := range e.v.Staged {
		e.copyRun(l, tiles[l], p)
	}
	e.line("__syncthreads();")
	e.line("constexpr unsigned ALONG = TILE_N / VECTOR;")
	e.line("#pragma unroll 4")
	e.open("for (unsigned chunk = threadIdx.x; chunk < TILE_M * ALONG; chunk += THREADS)")
	e.line("const unsigned at_q = chunk %% ALONG * VECTOR;")
	e.line("[[maybe_unused]] const INDEX %s = chunk / ALONG;", e.ranges[p])
	e.line("[[maybe_unused]] const INDEX first = origin_q + at_q;")
	e.line("if (first >= %s) continue;", e.s.Expr(e.lane.Extent))
	e.vectorInside("first", e.lane)
	for _, l := range e.v.Staged {
		e.line("const auto %s = %s.template lanes<VECTOR>(at_q, (unsigned)%s);", e.raw(l, ".v[v]"), tiles[l], e.ranges[p])
		e.done[l] = true
	}
	e.sections()
	e.close()
}

// runs declares the shared memory of the staged reads, and names it.
func (e *pointEmitter) runs() map[*ir.Local]string {
	names := map[*ir.Local]string{}
	for _, l := range e.v.Staged {
		names[l] = e.names.Fresh(l.Name + "_run")
		e.line("__shared__ Run<%s, TILE_M, TILE_N> %s;", spell.StorageType(readOf(l.Def).Type), names[l])
	}
	return names
}

// copyRun copies the run of one read, in vectors where they are aligned.
func (e *pointEmitter) copyRun(l *ir.Local, tile string, p *ir.Range) {
	r, step := readOf(l.Def), "1"
	if l.Wide {
		step = "VECTOR"
	}
	e.line("#pragma unroll 4")
	e.open("for (unsigned at = threadIdx.x * %[1]s; at < TILE_M * TILE_N; at += THREADS * %[1]s)", step)
	e.line("if (at >= whole) continue;")
	lane, across := e.ranges[e.lane], e.ranges[p]
	e.ranges[e.lane], e.ranges[p] = "origin_q", "at" // elements of the range across lie next to each other, and so do all of the run
	if l.Wide {
		e.line("constexpr int n = VECTOR;")
		e.noted(l.Span, "%s.put(at, %s);", tile, e.wide(r))
	} else {
		e.noted(l.Span, "%s.put(at, %s);", tile, e.read(r))
	}
	e.ranges[e.lane], e.ranges[p] = lane, across
	e.close()
}

// interleavedGrid is the number of runs.
func interleavedGrid(k *ir.Kernel, v *ir.Variant) *ir.Expr {
	return ir.Apply(ir.OpMul, ceilDiv(k.Rows[len(k.Rows)-1].Extent, int64(v.Schedule.TileN)), product(extents(outerRows(k, v))))
}
