package codegen

import (
	"fmt"
	"strings"

	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/ir"
)

// A windowed operand whose tile is a box of places. The block copies what the windows of the box cover, plane by
// plane, and the parts of the tile are multiplied from there; see ir.Halo.

// halo is what the windows of a tile cover; nil where each is copied into the tile.
func haloOf(v *ir.Variant) *ir.Halo {
	if c := v.Contract; c != nil && c.B[0].Window != nil {
		return c.B[0].Window.Halo
	}
	return nil
}

// haloBoxes is the number of boxes along an axis.
func haloBoxes(d *ir.HaloDim) *ir.Expr {
	return ir.Simplify(ceilDiv(d.Row.Extent, int64(d.Tile)), ir.Facts{})
}

// haloGrid is the number of blocks: boxes of places times tiles of weights, in every batch.
func haloGrid(v *ir.Variant, h *ir.Halo) *ir.Expr {
	c := v.Contract
	n := ir.Apply(ir.OpMul, ceilDiv(product(extents(c.M)), int64(v.Schedule.TileM)), product(extents(c.Batch)))
	for i := range h.Dims {
		if d := &h.Dims[i]; d.Row != nil {
			n = ir.Apply(ir.OpMul, n, haloBoxes(d))
		}
	}
	return n
}

// haloKernel writes a kernel that multiplies tiles of windows from what they cover.
func (e *contractSplitK) haloKernel(h *ir.Halo) {
	c := e.v.Contract
	e.line("using Element = %s;", spell.StorageType(c.Type))
	e.line("using Total = %s;", spell.ComputeType(e.v.Sections[0].Folds[0].Result.Type))
	e.line("const INDEX extent_m = %s, extent_k = %s;", e.size(c.M), e.size(e.k.Cols))
	e.haloPosition(c, h)
	e.line("using TileA = OperandTile<Element, TILE_M, %t, %d>;", kInner(c, c.A), padding(c, c.A))
	e.line("extern __shared__ __align__(16) unsigned char tiles[];")
	e.line("TileA *const tile_a = reinterpret_cast<TileA *>(tiles);")
	e.line("Element *const planes = reinterpret_cast<Element *>(tiles + sizeof(TileA));")
	a := &side{e: &e.contractEmitter, name: "a", row: "m", tile: "TileA", own: c.M, o: c.A, element: c.Type, turned: true}
	a.write()
	e.haloTaps(h)
	e.haloCopy(h)
	e.haloPlaces(h)
	e.line("%s parts;", haloUnits[c.Unit].parts)
	e.line("#pragma unroll 1")
	e.open("for (INDEX origin_k = 0; origin_k < extent_k; origin_k += COLUMNS)")
	e.line("fetch_a(0, origin_k, false);")
	e.line("copy_planes(origin_k / (COLUMNS / CHANNELS));")
	e.line("put_a(0, origin_k, false);")
	e.line("pieces_commit();")
	e.line("pieces_wait<0>();")
	e.line("__syncthreads();")
	e.line("parts.step(tile_a[0], planes, taps);")
	e.line("__syncthreads();")
	e.close()
	e.haloEpilogue(c, h)
}

// haloUnits is the classes that multiply parts of a tile from planes, and the skeletons that have them.
var haloUnits = map[ir.Multiplier]struct{ parts, skeleton string }{
	ir.FMAUnit:  {"HaloFMA<Element, Places>", "halo_fma"},
	ir.HalfUnit: {"HaloParts<Element, PART_M, PART_N, Places>", "halo"},
	ir.TF32Unit: {"HaloParts<Element, PART_M, PART_N, Places>", "halo"},
}

// haloPosition writes which tile the block computes: its rows of weights, and the first place of its box along each axis.
func (e *contractSplitK) haloPosition(c *ir.Contract, h *ir.Halo) {
	e.line("const INDEX tiles_m = (extent_m + TILE_M - 1) / TILE_M;")
	e.line("const INDEX origin_m = blockIdx.x %% tiles_m * TILE_M;")
	left := "blockIdx.x / tiles_m"
	for i := len(h.Dims) - 1; i >= 0; i-- {
		d := &h.Dims[i]
		if d.Row == nil {
			continue
		}
		first, boxes := e.names.Fresh(e.ranges[d.Row]+"_first"), e.s.Bare(haloBoxes(d))
		at := e.names.Fresh(first + "_left")
		e.line("const INDEX %s = %s, %s = %s %% (%s) * %d;", at, left, first, at, boxes, d.Tile)
		e.first[d.Row], left = first, fmt.Sprintf("%s / (%s)", at, boxes)
	}
	if len(c.Batch) > 0 {
		e.line("const INDEX batch = %s;", left)
		e.take(c.Batch, "batch", e.every()...)
	}
}

// haloTaps writes a table of where the element of each column is, from where its window begins.
func (e *contractSplitK) haloTaps(h *ir.Halo) {
	e.line("__shared__ int taps[TILE_K];")
	e.open("for (int column = threadIdx.x; column < TILE_K; column += THREADS)")
	at := h.AtTap(e.k.Cols)
	e.take(e.k.Cols, "column", at)
	e.line("taps[column] = column < COLUMNS ? %s : 0;", e.s.Expr(at))
	e.close()
}

// haloCopy writes the copy of planes: a thread has the same spots of each. Elements of 16 bits go through registers,
// because copies to shared memory are of four bytes at least.
func (e *contractSplitK) haloCopy(h *ir.Halo) {
	e.open("auto copy_planes = [&]([[maybe_unused]] INDEX channel)")
	e.line("#pragma unroll")
	e.open("for (int turn = 0; turn < (COVERED + THREADS - 1) / THREADS; ++turn)")
	e.line("const int spot = threadIdx.x + turn * THREADS;")
	e.line("if (COVERED %% THREADS != 0 && spot >= COVERED) break;")
	at, inner := e.s.Bare(h.Start), int64(1)
	var inside []string
	for i := len(h.Dims) - 1; i >= 0; i-- {
		d := &h.Dims[i]
		name, first := e.names.Fresh(fmt.Sprintf("axis_%d", i)), e.s.Expr(d.First)
		if d.Row != nil {
			first = fmt.Sprintf("%s * %d + %s", e.first[d.Row], d.Stride, first)
		}
		e.line("const INDEX %s = %s + spot / %d %% %d;", name, first, inner, d.Covers())
		inside = append(inside, fmt.Sprintf("%s >= 0 && %s < %s", name, name, e.s.Expr(d.Extent)))
		at += fmt.Sprintf(" + %s * %s", name, e.s.Expr(d.Apart))
		inner *= d.Covers()
	}
	e.line("const bool inside = %s;", strings.Join(inside, " && "))
	e.line("const int slot = spot + spot / %d * %d;", h.Line(), h.Pad)
	e.haloPlanes(h, at)
	e.close()
	e.closeWith(";")
}

// haloPlanes writes the copy of one spot of all planes.
func (e *contractSplitK) haloPlanes(h *ir.Halo, at string) {
	read := e.operandRead(e.v.Contract.B[0].Value)
	there, plane := "inside", "0"
	if h.Channel != nil {
		plane = fmt.Sprintf("(channel + c) * %s", e.s.Expr(h.Plane))
		if n := h.Channel.Extent; n.Op != ir.OpConst || n.Int%int64(h.Channels) != 0 {
			there = fmt.Sprintf("inside && channel + c < %s", e.s.Expr(n))
		}
	}
	from := e.args[read.Arg]
	e.line("const INDEX base = inside ? %s : 0;", at)
	if e.v.Contract.Type.Size() >= 4 {
		e.line("#pragma unroll")
		e.open("for (int c = 0; c < CHANNELS; ++c)")
		e.line("const bool there = %s;", there)
		e.noted(read.Span, "copy_piece<4>(planes + c * PLANE + slot, %s + (there ? base + %s : 0), there);", from, plane)
		e.close()
		return
	}
	e.line("Element piece[CHANNELS];") // all reads are under way at once
	e.line("#pragma unroll")
	e.open("for (int c = 0; c < CHANNELS; ++c)")
	e.noted(read.Span, "piece[c] = %s ? %s[base + %s] : Element{};", there, from, plane)
	e.close()
	e.line("#pragma unroll")
	e.line("for (int c = 0; c < CHANNELS; ++c) planes[c * PLANE + slot] = piece[c];")
}

// haloPlaces writes the class that says where the window of a place of the tile begins.
func (e *contractSplitK) haloPlaces(h *ir.Halo) {
	var terms []string
	inner := 1
	for i := len(h.Dims) - 1; i >= 0; i-- {
		if n := h.Dims[i].Tile; n > 1 {
			terms = append(terms, fmt.Sprintf("place / %d %% %d * %d", inner, n, h.ApartRows(i)))
			inner *= n
		}
	}
	e.open("struct Places")
	e.line("static DEVICE constexpr int at(int place) { return %s; }", strings.Join(terms, " + "))
	e.closeWith(";")
}

// haloEpilogue writes the epilogue, VECTOR neighbours of a result at a time.
func (e *contractSplitK) haloEpilogue(c *ir.Contract, h *ir.Halo) {
	e.epilogueLane(c)
	alongN := e.lane == nil || h.Dims[len(h.Dims)-1].Row == e.lane
	f, row := productFold(e.v), e.v.Sections[1]
	e.line("using Sums = SumTile<Total, %t>;", alongN)
	e.line("Sums *const sums = reinterpret_cast<Sums *>(tiles);")
	e.line("parts.each([&](int m, int n, Total x) { sums->put(m, n, x); });")
	e.line("__syncthreads();")
	e.line("constexpr int CHUNKS = TILE_M * TILE_N / VECTOR;")
	e.line("#pragma unroll 2")
	e.open("for (int chunk = threadIdx.x; chunk < CHUNKS; chunk += THREADS)")
	e.line("const int sum_line = chunk / (Sums::WIDTH / VECTOR), sum_at = chunk %% (Sums::WIDTH / VECTOR) * VECTOR;")
	m, n := "sum_at", "sum_line"
	if alongN {
		m, n = n, m
	}
	e.line("const INDEX at_m = origin_m + %s;", m)
	outside := []string{"at_m >= extent_m"}
	inner := 1
	for i := len(h.Dims) - 1; i >= 0; i-- {
		d := &h.Dims[i]
		if d.Row == nil {
			continue
		}
		name := e.ranges[d.Row]
		if d.Row == e.lane {
			name = "first"
		}
		e.line("[[maybe_unused]] const INDEX %s = %s + %s / %d %% %d;", name, e.first[d.Row], n, inner, d.Tile)
		outside = append(outside, fmt.Sprintf("%s >= %s", name, e.s.Expr(d.Row.Extent)))
		inner *= d.Tile
	}
	e.line("if (%s) continue;", strings.Join(outside, " || "))
	e.line("Total total[VECTOR];")
	e.line("add_splits<1>(total, &sums->at[sum_line][sum_at]);")
	if alongN && e.lane != nil {
		e.laneCount()
	}
	e.sumPlace(c.M, "at_m", row)
	e.storeSums(f, row)
	e.close()
}

// haloShared is the dynamic shared memory: the weights and the planes, and then in their place the sums.
func haloShared(v *ir.Variant, h *ir.Halo, weights int) int {
	return max(weights+h.Channels*int(h.Room())*v.Contract.Type.Size(), sumsOf(v))
}

// haloDefines are the figures of a halo.
func haloDefines(h *ir.Halo) string {
	return fmt.Sprintf("#define COLUMNS %d\n#define CHANNELS %d\n#define COVERED %d\n#define PLANE %d\n", h.Columns(), h.Channels, h.Covers(), h.Room())
}
