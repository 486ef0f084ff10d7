package codegen

import (
	"fmt"
	"slices"

	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/ir"
)

// tileKernel writes a pointwise kernel in two steps. Staged reads go along the range that is contiguous in
// memory, are transposed in registers and put into shared memory. Then every thread computes vectors of
// the innermost range from there. What is the same at all points of a short range is computed once for all of them.
func (e *pointEmitter) tileKernel() {
	p := e.v.Across
	e.tileOrigin(p)
	e.line("constexpr int ACROSS = TILE_M / VECTOR, ALONG = TILE_N / VECTOR; // vectors of a tile either way")
	tiles := map[*ir.Local]string{}
	for _, l := range e.v.Staged {
		tiles[l] = e.names.Fresh(l.Name + "_tile")
		e.line("__shared__ Vec<%s, VECTOR> %s[TILE_M][ALONG];", spell.StorageType(readOf(l.Def).Type), tiles[l])
	}
	e.tileLoads(p, tiles)
	e.line("__syncthreads();")
	r, unroll := repeatedRow(e.k, e.v), tileUnroll
	if r != nil { // the text for each point is there as often
		unroll = max(1, tileUnroll/int(r.Extent.Int))
	}
	e.chunks("TILE_M * ALONG", unroll)
	e.line("const unsigned at_p = chunk / ALONG, at_q = chunk %% ALONG * VECTOR;")
	e.line("[[maybe_unused]] const INDEX %s = origin_p + at_p;", e.ranges[p])
	e.line("[[maybe_unused]] const INDEX first = origin_q + at_q;")
	if !e.wholeTiles(p) {
		e.line("if (%s >= %s || first >= %s) continue;", e.ranges[p], e.s.Expr(p.Extent), e.s.Expr(e.lane.Extent))
	}
	e.vectorInside("first", e.lane)
	for _, l := range e.v.Staged {
		e.line("const auto %s = %s;", e.raw(l, ".v[v]"), tileAt(tiles[l], "at_p"))
		e.done[l] = true
	}
	if r != nil {
		e.line("#pragma unroll")
		e.open("for (int %[1]s = 0; %[1]s < %[2]s; ++%[1]s)", e.ranges[r], e.s.Expr(r.Extent))
	}
	e.sections()
	if r != nil {
		e.close()
	}
	e.close()
}

// mostRepeated is the most points of a range that are computed by the block that has what it reads for all of them.
const mostRepeated = 8

// repeatedRow is a range of few points around a tile on which nothing that is read depends; nil for none.
func repeatedRow(k *ir.Kernel, v *ir.Variant) *ir.Range {
	for _, r := range outerRows(k, v) {
		if r.Extent.Op == ir.OpConst && r.Extent.Int <= mostRepeated && !readsAlong(v, r) {
			return r
		}
	}
	return nil
}

// readsAlong reports whether something that a variant reads depends on a range.
func readsAlong(v *ir.Variant, r *ir.Range) (found bool) {
	for _, root := range rootsOf(v) {
		ir.Walk(root, func(e *ir.Expr) bool {
			found = found || e.Op == ir.OpRead && ir.DependsOn(e, r)
			return !found
		})
	}
	return found
}

// tileRows are the ranges of rows that neither tiles nor a block's loop cover.
func tileRows(k *ir.Kernel, v *ir.Variant) []*ir.Range {
	repeated := repeatedRow(k, v)
	return slices.DeleteFunc(outerRows(k, v), func(r *ir.Range) bool { return r == repeated })
}

// tileAt is a vector of a tile in shared memory. Its place is swizzled by its row, so that threads
// that go through the tile in either direction do not use the same bank.
func tileAt(tile, row string) string {
	return fmt.Sprintf("%s[%s][at_q / VECTOR ^ (at_p / VECTOR) %% ALONG]", tile, row)
}

const tileUnroll = 8 // rounds of a thread over a tile

// chunks opens a loop over the thread's share of a tile's vectors or squares. It is unrolled so
// that many reads are under way together, but not fully for single elements, of which there are
// more than registers hold.
func (e *pointEmitter) chunks(count string, unroll int) {
	e.line("#pragma unroll %d", unroll)
	e.open("for (int turn = 0; turn < %s / THREADS; ++turn)", count)
	e.line("const unsigned chunk = threadIdx.x + turn * THREADS;")
}

// wholeTiles reports whether both ranges are whole tiles.
func (e *pointEmitter) wholeTiles(p *ir.Range) bool {
	s := e.v.Schedule
	return ir.Multiple(p.Extent, int64(s.TileM), e.v.Facts) && ir.Multiple(e.lane.Extent, int64(s.TileN), e.v.Facts)
}

// tileOrigin writes which tile the block takes.
func (e *pointEmitter) tileOrigin(p *ir.Range) {
	s := e.v.Schedule
	along := e.tiles("q", "TILE_N", e.lane.Extent, s.TileN)
	e.line("const INDEX strip = (INDEX)blockIdx.x / %[1]s, origin_q = (INDEX)blockIdx.x %% %[1]s * TILE_N;", along)
	outer := tileRows(e.k, e.v)
	if len(outer) == 0 {
		e.line("const INDEX origin_p = strip * TILE_M;")
		return
	}
	across := e.tiles("p", "TILE_M", p.Extent, s.TileM)
	e.line("const INDEX outer = strip / %[1]s, origin_p = strip %% %[1]s * TILE_M;", across)
	e.take(outer, "outer", e.every()...)
}

// tiles is the number of tiles along a range, as text to divide by.
func (e *pointEmitter) tiles(name, side string, extent *ir.Expr, points int) string {
	text := fmt.Sprintf("(%[1]s + %[2]s - 1) / %[2]s", e.s.Expr(extent), side)
	return e.divisorOf("tiles_"+name, text, ceilDiv(extent, int64(points)))
}

// outerRows are the ranges of rows that tiles do not cover.
func outerRows(k *ir.Kernel, v *ir.Variant) []*ir.Range {
	var out []*ir.Range
	for _, r := range k.Rows[:len(k.Rows)-1] {
		if r != v.Across {
			out = append(out, r)
		}
	}
	return out
}

// tileLoads reads the staged tensors in squares of a vector's length, along p, and transposes them.
func (e *pointEmitter) tileLoads(p *ir.Range, tiles map[*ir.Local]string) {
	e.chunks("ACROSS * ALONG", tileUnroll)
	e.line("const unsigned at_q = chunk / ACROSS * VECTOR, at_p = chunk %% ACROSS * VECTOR;")
	e.line("[[maybe_unused]] const INDEX %s = origin_p + at_p;", e.ranges[p])
	whole := e.wholeTiles(p)
	if !whole {
		e.line("if (%s >= %s) continue;", e.ranges[p], e.s.Expr(p.Extent))
	}
	e.vectorInside(e.ranges[p], p)
	squares := map[*ir.Local]string{}
	for _, l := range e.v.Staged {
		squares[l] = e.names.Fresh(l.Name + "_square")
		e.line("Vec<%s, VECTOR> %s[VECTOR];", spell.StorageType(readOf(l.Def).Type), squares[l])
	}
	e.line("#pragma unroll")
	e.open("for (int u = 0; u < VECTOR; ++u)")
	e.line("[[maybe_unused]] const INDEX %s = origin_q + at_q + u;", e.ranges[e.lane])
	if !whole {
		e.line("if (%s >= %s) continue;", e.ranges[e.lane], e.s.Expr(e.lane.Extent))
	}
	for _, l := range e.v.Staged {
		e.tileRead(l, squares[l], p)
	}
	e.close()
	e.line("#pragma unroll")
	e.open("for (int v = 0; v < VECTOR; ++v)")
	for _, l := range e.v.Staged {
		turned := e.names.Fresh(l.Name + "_turned")
		e.line("Vec<%s, VECTOR> %s;", spell.StorageType(readOf(l.Def).Type), turned)
		e.line("#pragma unroll")
		e.line("for (int u = 0; u < VECTOR; ++u) %s.v[u] = %s[u].v[v];", turned, squares[l])
		e.line("%s = %s;", tileAt(tiles[l], "at_p + v"), turned)
	}
	e.close()
	e.close()
}

// tileRead reads a vector of a square along p, or element by element where it may not be aligned.
func (e *pointEmitter) tileRead(l *ir.Local, square string, p *ir.Range) {
	r := readOf(l.Def)
	if l.Wide {
		e.noted(l.Span, "%s[u] = %s;", square, e.wide(r))
		return
	}
	e.line("#pragma unroll")
	e.open("for (int v = 0; v < VECTOR; ++v)")
	if step, ok := ir.Stride(r.Args[0], p, ir.Facts{}); r.Guard == nil && ok && step.IsConst(1) {
		e.noted(l.Span, "if (v < n) %s[u].v[v] = %s[%s + v];", square, e.args[r.Arg], e.s.Expr(r.Args[0]))
	} else { // any element may be outside, or lies some elements after the one before
		first := e.ranges[p]
		e.ranges[p] = "(" + first + " + v)"
		e.noted(l.Span, "if (v < n) %s[u].v[v] = %s;", square, e.read(r))
		e.ranges[p] = first
	}
	e.close()
}

func tileDefines(v *ir.Variant) string {
	return fmt.Sprintf("#define TILE_M %d\n#define TILE_N %d\n", v.Schedule.TileM, v.Schedule.TileN)
}

// tileGrid is the number of tiles.
func tileGrid(k *ir.Kernel, v *ir.Variant) *ir.Expr {
	s := v.Schedule
	tiles := ir.Apply(ir.OpMul, ceilDiv(v.Across.Extent, int64(s.TileM)), ceilDiv(k.Rows[len(k.Rows)-1].Extent, int64(s.TileN)))
	return ir.Apply(ir.OpMul, tiles, product(extents(tileRows(k, v))))
}
