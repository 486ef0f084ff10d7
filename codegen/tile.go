package codegen

import (
	"fmt"

	"github.com/fusec/fusec/ir"
)

// tileKernel writes a pointwise kernel in two steps: Staged reads are read along
// the range in which memory has them and put into shared memory; then every
// thread computes vectors of the innermost range from there.
func (e *emitter) tileKernel() {
	p := e.v.Across
	e.tileOrigin(p)
	for _, l := range e.v.Staged {
		e.rawName[l] = e.names.fresh(l.Name + "_tile")
		t := readOf(l.Def).Type
		// A word of padding lets threads walk the tile either way without meeting in a bank.
		e.line("__shared__ %s %s[TILE_M][TILE_N + %d];", storageType(t), e.rawName[l], max(1, 4/t.Size()))
	}
	e.tileLoads(p)
	e.line("__syncthreads();")
	for _, l := range e.v.Staged {
		e.place[l] = converted(l, e.rawName[l]+"[at_p][at_q + v]")
		e.done[l] = true
	}
	e.chunks("TILE_M * (TILE_N / VECTOR)")
	e.line("const int at_p = chunk / (TILE_N / VECTOR), at_q = chunk %% (TILE_N / VECTOR) * VECTOR;")
	e.line("[[maybe_unused]] const INDEX %s = origin_p + at_p;", e.ranges[p])
	e.line("[[maybe_unused]] const INDEX first = origin_q + at_q;")
	e.line("if (%s >= %s || first >= %s) continue;", e.ranges[p], e.s.expr(p.Extent), e.s.expr(e.lane.Extent))
	e.line("[[maybe_unused]] const int n = (int)min(%s - first, (INDEX)VECTOR);", e.s.expr(e.lane.Extent))
	for _, sec := range e.v.Sections {
		e.rowValues(sectionRoots(sec))
		e.flatStores(sec, nil, nil)
	}
	e.close()
}

// chunks opens a loop over the thread's share of a tile's vectors, unrolled so that
// all reads are under way together.
func (e *emitter) chunks(count string) {
	e.line("#pragma unroll")
	e.open("for (int turn = 0; turn < %s / THREADS; ++turn)", count)
	e.line("const int chunk = threadIdx.x + turn * THREADS;")
}

// tileOrigin writes which tile the block takes.
func (e *emitter) tileOrigin(p *ir.Range) {
	e.line("const INDEX tiles_p = (%s + TILE_M - 1) / TILE_M, tiles_q = (%s + TILE_N - 1) / TILE_N;", e.s.expr(p.Extent), e.s.expr(e.lane.Extent))
	e.line("const INDEX tile = blockIdx.x %% (tiles_p * tiles_q);")
	if outer := outerRows(e.k, e.v); len(outer) > 0 {
		e.line("const INDEX outer = blockIdx.x / (tiles_p * tiles_q);")
		e.take(outer, "outer", e.every()...)
	}
	e.line("const INDEX origin_p = tile / tiles_q * TILE_M, origin_q = tile %% tiles_q * TILE_N;")
}

// outerRows are the row ranges that tiles do not cover.
func outerRows(k *ir.Kernel, v *ir.Variant) []*ir.Range {
	var out []*ir.Range
	for _, r := range k.Rows[:len(k.Rows)-1] {
		if r != v.Across {
			out = append(out, r)
		}
	}
	return out
}

// tileLoads reads the staged tensors, vectors along p.
func (e *emitter) tileLoads(p *ir.Range) {
	e.chunks("TILE_N * (TILE_M / VECTOR)")
	e.line("const int at_q = chunk / (TILE_M / VECTOR), at_p = chunk %% (TILE_M / VECTOR) * VECTOR;")
	e.line("[[maybe_unused]] const INDEX %s = origin_p + at_p, %s = origin_q + at_q;", e.ranges[p], e.ranges[e.lane])
	e.line("if (%s >= %s || %s >= %s) continue;", e.ranges[p], e.s.expr(p.Extent), e.ranges[e.lane], e.s.expr(e.lane.Extent))
	e.line("[[maybe_unused]] const int n = (int)min(%s - %s, (INDEX)VECTOR);", e.s.expr(p.Extent), e.ranges[p])
	chunks := make([]string, len(e.v.Staged)) // vectors that are read at once
	for i, l := range e.v.Staged {
		if l.Wide {
			chunks[i] = e.names.fresh(fmt.Sprintf("chunk_%d", i))
			e.noted(l.Span, "const auto %s = %s;", chunks[i], e.wide(readOf(l.Def)))
		}
	}
	e.line("#pragma unroll")
	e.open("for (int v = 0; v < VECTOR; ++v)")
	e.line("if (v >= n) continue;")
	for i, l := range e.v.Staged {
		r := readOf(l.Def)
		value := chunks[i] + ".v[v]"
		if !l.Wide { // contiguous along p all the same
			value = fmt.Sprintf("%s[%s + v]", e.args[r.Arg], e.s.expr(r.Args[0]))
		}
		e.noted(l.Span, "%s[at_p + v][at_q] = %s;", e.rawName[l], value)
	}
	e.close()
	e.close()
}

// tileGrid is the number of tiles.
func tileGrid(k *ir.Kernel, v *ir.Variant) *ir.Expr {
	s := v.Schedule
	tiles := ir.Apply(ir.OpMul, ceilDiv(v.Across.Extent, int64(s.TileM)), ceilDiv(k.Rows[len(k.Rows)-1].Extent, int64(s.TileN)))
	return ir.Apply(ir.OpMul, tiles, product(extents(outerRows(k, v))))
}
