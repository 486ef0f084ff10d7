package codegen

import (
	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/ir"
)

// interleaving writes a pointwise kernel in two steps. The block reads along the range around the innermost one, of which it has
// TILE_N points, and puts the elements where their results will be: those of a point, TILE_M of them, side by side. Then every
// thread computes and stores vectors of results, at the coordinates of each.
func (e *pointEmitter) interleaving() {
	p := e.v.Across
	along := e.tiles("p", "TILE_N", p.Extent, e.v.Schedule.TileN)
	e.line("const INDEX strip = (INDEX)blockIdx.x / %[1]s, origin_p = (INDEX)blockIdx.x %% %[1]s * TILE_N;", along)
	e.line("const unsigned whole = (unsigned)min(%s - origin_p, (INDEX)TILE_N) * TILE_M; // results of the block", e.s.Expr(p.Extent))
	tiles := e.runs()
	e.interleavedReads(p, tiles)
	e.line("__syncthreads();")
	e.line("#pragma unroll 2")
	e.open("for (unsigned at = threadIdx.x * VECTOR; at < TILE_M * TILE_N; at += THREADS * VECTOR)")
	e.line("if (at >= whole) continue;")
	e.line("[[maybe_unused]] const INDEX first = (strip * %s + origin_p) * TILE_M + at;", e.s.Expr(p.Extent))
	e.allLanes = len(e.k.Rows) > 2 || e.wholeLanes() // where there are rows around both ranges, each of these has whole vectors
	if e.allLanes {
		e.line("[[maybe_unused]] constexpr int n = VECTOR;")
	} else {
		e.line("[[maybe_unused]] const int n = min((int)(whole - at), VECTOR);")
	}
	e.coordinates()
	for _, l := range e.v.Staged {
		e.line("const auto %s = %s.template get<VECTOR>(at);", e.raw(l, ".v[v]"), tiles[l])
		e.done[l] = true
	}
	e.sections()
	e.close()
}

// interleavedReads writes the reads of the block: vectors along the range across, for each point of the innermost one.
func (e *pointEmitter) interleavedReads(p *ir.Range, tiles map[*ir.Local]string) {
	e.open("")
	var offsets []*ir.Expr
	for _, l := range e.v.Staged {
		offsets = append(offsets, readOf(l.Def).Args[0])
	}
	e.take(outerRows(e.k, e.v), "strip", offsets...)
	e.line("constexpr unsigned ALONG = TILE_N / VECTOR;")
	e.line("#pragma unroll 4")
	e.open("for (unsigned chunk = threadIdx.x; chunk < TILE_M * ALONG; chunk += THREADS)")
	e.line("const unsigned at_p = chunk %% ALONG * VECTOR;")
	e.line("[[maybe_unused]] const INDEX %s = chunk / ALONG, %s = origin_p + at_p;", e.ranges[e.lane], e.ranges[p])
	e.line("if (%s >= %s) continue;", e.ranges[p], e.s.Expr(p.Extent))
	e.vectorInside(e.ranges[p], p)
	for _, l := range e.v.Staged {
		r := readOf(l.Def)
		values := e.names.Fresh(l.Name + "_line")
		if l.Wide {
			e.noted(l.Span, "const auto %s = load<VECTOR>(%s + %s, n);", values, e.args[r.Arg], e.s.Expr(r.Args[0]))
		} else {
			e.line("Vec<%s, VECTOR> %s;", spell.StorageType(r.Type), values)
			e.line("#pragma unroll")
			e.noted(l.Span, "for (int v = 0; v < VECTOR; ++v) if (v < n) %s.v[v] = %s[%s + v];", values, e.args[r.Arg], e.s.Expr(r.Args[0]))
		}
		e.line("#pragma unroll")
		e.line("for (int v = 0; v < VECTOR; ++v) if (v < n) %s.put((at_p + v) * TILE_M + (unsigned)%s, %s.v[v]);", tiles[l], e.ranges[e.lane], values)
	}
	e.close()
	e.close()
}

// interleavingGrid is the number of blocks.
func interleavingGrid(k *ir.Kernel, v *ir.Variant) *ir.Expr {
	return ir.Apply(ir.OpMul, ceilDiv(v.Across.Extent, int64(v.Schedule.TileN)), product(extents(outerRows(k, v))))
}
