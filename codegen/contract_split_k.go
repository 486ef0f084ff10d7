package codegen

import (
	"fmt"
	"strings"

	"github.com/fusec/fusec/codegen/skeleton"
	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/ir"
)

// contractSplitK writes kernels of small tiles of a product, whose sums may be split over a cluster, or
// over blocks that add them up through memory (split-K).
type contractSplitK struct {
	contractEmitter
	first map[*ir.Range]string // for tiles that are boxes of places: the first place along each range
}

func newContractSplitK(e *emitter) *contractSplitK {
	return &contractSplitK{newContract(e), map[*ir.Range]string{}}
}

// kernel writes a kernel that computes tiles of a product, the columns of each split over the blocks of a
// cluster. Operands go through pipeline stages in shared memory. Each block then writes the epilogue of a
// part of the tile: it adds the sums of all splits in order, from shared memory.
func (e *contractSplitK) kernel() {
	if h := haloOf(e.v); h != nil {
		e.haloKernel(h)
		return
	}
	c := e.v.Contract
	e.line("using Element = %s;", spell.StorageType(c.Type))
	e.line("using Total = %s;", spell.ComputeType(e.v.Sections[0].Folds[0].Result.Type))
	if c.Taps == nil {
		e.line("const INDEX extent_m = %s, extent_n = %s, extent_k = %s;", e.size(c.M), e.size(c.N), e.size(e.k.Cols))
	} else {
		e.line("const INDEX extent_m = %s, extent_n = %s;", e.size(c.M), e.size(c.N))
	}
	switch {
	case e.splits():
		e.line("const int split = cluster_rank();")
		e.line("const INDEX block = blockIdx.x / CLUSTER;")
	case c.Slices != nil: // tiles that run at the same time read the same columns
		e.line("const INDEX slices = %s, every_tile = gridDim.x / slices;", e.s.Bare(c.Slices))
		e.line("const INDEX block = blockIdx.x %% every_tile, slice = blockIdx.x / every_tile;")
	default:
		e.line("const INDEX block = blockIdx.x;")
	}
	e.splitPosition(c)
	e.line("using TileA = %s;", e.tileText("TILE_M", c.A))
	e.line("using TileB = %s;", e.tileText("TILE_N", c.B[0]))
	e.line("extern __shared__ __align__(16) unsigned char tiles[];")
	e.line("TileA *const tile_a = reinterpret_cast<TileA *>(tiles);")
	e.line("TileB *const tile_b = reinterpret_cast<TileB *>(tiles + STAGES * sizeof(TileA));")
	a := &side{e: &e.contractEmitter, name: "a", row: "m", tile: "TileA", own: c.M, o: c.A, element: c.Type, turned: true}
	a.write()
	sides := []*side{a}
	for i, o := range c.B {
		if i > 0 {
			e.line("TileB *const tile_%s = tile_b + %d * STAGES;", rightName(i), i)
		}
		b := &side{e: &e.contractEmitter, name: rightName(i), row: "n", tile: "TileB", own: c.N, o: o, element: c.Type, turned: true}
		b.write()
		sides = append(sides, b)
	}
	parts := partsOf[c.Unit]
	if hasBands(c) {
		parts = "BandParts<Element, PART_M, PART_N>"
	}
	e.line("using Parts = %s;", parts)
	for i := range c.B {
		e.line("Parts %s;", ofFold("parts", i))
	}
	if e.v.Schedule.Run > 0 { // the stages and the totals are in use at the same time
		e.line("unsigned char *const after_tiles = tiles + STAGES * (sizeof(TileA) + sizeof(TileB));")
		e.line("Total *const totals = reinterpret_cast<Total *>(after_tiles);")
		e.line("Parts::clear(totals);")
	}
	e.tileLoop(sides...)
	e.tileEpilogue(c)
}

// partsOf is the classes that multiply parts of a tile.
var partsOf = map[ir.Multiplier]string{
	ir.FMAUnit:     "FMAParts<Element>",
	ir.IntegerUnit: "IntegerParts<Element, Total>",
	ir.HalfUnit:    "HalfParts<Element, PART_M, PART_N>",
	ir.TF32Unit:    "TF32Parts<PART_M, PART_N>",
	ir.DoubleUnit:  "DoubleParts<PART_M, PART_N>",
}

func (e *contractSplitK) splits() bool { return e.v.Schedule.Cluster > 1 }

// kInner reports whether an operand's tile runs along K: it does where memory does, unless threads
// multiply neighbours along the rows.
func kInner(c *ir.Contract, o ir.Operand) bool { return o.KLast && c.Unit.TensorCores() }

// padding is the elements after each line of a tile that keep the threads of a warp from using the same
// bank.
func padding(c *ir.Contract, o ir.Operand) int {
	switch {
	case c.Unit == ir.TF32Unit && !kInner(c, o):
		return 8 // four threads read a line, eight neighbours each
	case c.Unit == ir.DoubleUnit:
		return 4 // half a warp reads four elements of four lines each
	}
	return 16 / c.Type.Size()
}

// splitPosition writes which tile the block computes, and which of its columns. Groups of eight rows of
// tiles go along N together, so that what they read stays in the L2 cache.
func (e *contractSplitK) splitPosition(c *ir.Contract) {
	e.tilePosition(c, "block")
	if c.Taps != nil {
		e.tapExtents(c)
	}
	switch {
	case e.splits():
		e.line("const INDEX steps = (extent_k + TILE_K - 1) / TILE_K;")
		e.line("const INDEX begin_k = steps * split / CLUSTER * TILE_K, end_k = min(steps * (split + 1) / CLUSTER * TILE_K, extent_k);")
	case c.Slices != nil: // if slices cannot all have the same number of steps, the first have one more
		e.line("const INDEX steps = (extent_k + TILE_K - 1) / TILE_K, even = steps / slices, odd = steps %% slices;")
		e.line("const INDEX begin_k = (even * slice + min(slice, odd)) * TILE_K, end_k = min((even * (slice + 1) + min(slice + 1, odd)) * TILE_K, extent_k);")
	default:
		e.line("constexpr INDEX begin_k = 0;")
		if e.v.Schedule.Stages != 1 {
			e.line("const INDEX end_k = extent_k;")
		}
	}
}

// tapExtents writes how many taps and columns the tile's batch has. Columns are counted without those of absent taps.
func (e *contractSplitK) tapExtents(c *ir.Contract) {
	last := len(e.k.Cols) - 1
	columns := e.size(e.k.Cols[last:])
	for d, n := range c.Taps {
		r := e.k.Cols[d]
		e.divisor[r] = e.names.Fresh(e.ranges[r] + "_taps")
		e.line("const INDEX %s = %s;", e.divisor[r], e.s.Bare(n))
		columns = e.divisor[r] + " * " + columns
	}
	e.line("const INDEX extent_k = %s;", columns)
}

// tileLoop multiplies tile by tile while the next STAGES-1 tiles are being copied. Multiply-adds of
// threads leave few issue slots, so with them whole tiles are copied without checks. The sums of a
// run of columns are added to those of the runs before, which are in shared memory.
func (e *contractSplitK) tileLoop(sides ...*side) {
	if e.v.Schedule.Stages == 1 {
		e.singleTile(sides)
		return
	}
	meet := e.firstTaps(sides)
	e.b.WriteString(`#pragma unroll 1
    for (int stage = 0; stage < STAGES - 1; ++stage) {
        const INDEX origin_k = begin_k + (INDEX)stage * TILE_K;
        if (origin_k < end_k) {
            fetch_a(stage, origin_k, false);
            fetch_b(stage, origin_k, false);
            put_a(stage, origin_k, false);
            put_b(stage, origin_k, false);
        }
        pieces_commit();
` + meet + `    }
    int stage = 0;
`)
	s := e.v.Schedule
	multiplyAdds := !e.v.Contract.Unit.TensorCores()
	if multiplyAdds {
		e.line("const bool inside_tile = origin_m + TILE_M <= extent_m && origin_n + TILE_N <= extent_n;")
		e.line("const INDEX whole_k = inside_tile ? max((end_k - begin_k) / TILE_K - (STAGES - 1), (INDEX)0) * TILE_K + begin_k : begin_k;")
	}
	begin, end, whole := "begin_k", "end_k", "whole_k"
	if s.Run > 0 {
		e.line("#pragma unroll 1")
		e.open("for (INDEX run_k = begin_k; run_k < end_k; run_k += RUN)")
		e.line("const INDEX run_end = min(run_k + RUN, end_k), run_whole = min(max(whole_k, run_k), run_end);")
		begin, end, whole = "run_k", "run_end", "run_whole"
	}
	if multiplyAdds {
		e.tileSteps(begin, whole, "true", "true")
		e.tileSteps(whole, end, "false", "next_k < end_k")
	} else {
		e.tileSteps(begin, end, "false", "next_k < end_k")
	}
	if s.Run > 0 {
		e.line("parts.drain(totals);")
		e.close()
	}
	e.b.WriteString(`    pieces_wait<0>();
    __syncthreads();
`)
}

// ofFold is the name of something that each fold of a product has.
func ofFold(name string, i int) string {
	if i == 0 {
		return name
	}
	return fmt.Sprintf("%s_%d", name, i+1)
}

// singleTile multiplies all columns in one tile.
func (e *contractSplitK) singleTile(sides []*side) {
	for _, call := range []string{"fetch", "put"} {
		for _, s := range sides {
			e.line("%s_%s(0, begin_k, false);", call, s.name)
		}
	}
	e.line("pieces_commit();")
	e.line("pieces_wait<0>();")
	e.line("__syncthreads();")
	for i, b := range sides[1:] {
		e.line("%s.step(tile_a[0], tile_%s[0]);", ofFold("parts", i), b.name)
	}
	e.line("__syncthreads();")
}

// tileSteps writes the loop over the tiles from one column to another; whole says whether the tiles that
// are copied meanwhile are whole, and any whether there are such tiles.
func (e *contractSplitK) tileSteps(from, to, whole, any string) {
	e.b.WriteString(strings.NewReplacer("FROM", from, "TO", to, "WHOLE", whole, "ANY", any).Replace(
		`#pragma unroll 1
    for (INDEX origin_k = FROM; origin_k < TO; origin_k += TILE_K) {
        pieces_wait<STAGES - 2>();
        __syncthreads(); // this tile is here, and everyone is done with the one before
        const int fetch_stage = stage == 0 ? STAGES - 1 : stage - 1;
        const INDEX next_k = origin_k + (INDEX)(STAGES - 1) * TILE_K;
        if (ANY) {
            fetch_a(fetch_stage, next_k, WHOLE);
            fetch_b(fetch_stage, next_k, WHOLE);
        }
        pieces_commit();
        parts.step(tile_a[stage], tile_b[stage]);
        if (ANY) {
            put_a(fetch_stage, next_k, WHOLE);
            put_b(fetch_stage, next_k, WHOLE);
        }
        stage = stage == STAGES - 1 ? 0 : stage + 1;
    }
`))
}

// smallGrid is the number of blocks: splits of the tiles, in every batch.
func smallGrid(k *ir.Kernel, v *ir.Variant) *ir.Expr {
	if h := haloOf(v); h != nil {
		return haloGrid(v, h)
	}
	splits := ir.IntConst(int64(max(1, v.Schedule.Cluster)))
	if v.Contract.Slices != nil {
		splits = v.Contract.Slices
	}
	return ir.Apply(ir.OpMul, contractGrid(k, v), splits)
}

// sliceOwn is the workspace of slices that pass through memory: the sums of all blocks, and a counter for
// each.
func sliceOwn(k *ir.Kernel, v *ir.Variant) workspace {
	if v.Contract.Slices == nil {
		return workspace{}
	}
	blocks := smallGrid(k, v)
	return workspace{counters: blocks, bytes: ir.Apply(ir.OpMul, blocks, ir.IntConst(int64(sumsOf(v))))}
}

func smallPreludes(_ *ir.Kernel, v *ir.Variant) string {
	if haloOf(v) != nil {
		return skeleton.Text("small_tiles", haloUnits[v.Contract.Unit].skeleton)
	}
	texts := []string{"small_tiles"}
	switch v.Contract.Unit {
	case ir.DoubleUnit:
		texts = []string{"small_tiles", "double_tiles"}
	case ir.IntegerUnit:
		texts = []string{"integer_tiles", "small_tiles"}
	}
	if hasBands(v.Contract) {
		texts = append(texts, "bands", "band_parts")
	}
	if v.Contract.Slices != nil {
		texts = append(texts, "fresh", "last_block", "slices")
	}
	return skeleton.Text(texts...)
}

// sumsOf is the bytes of a block's sums in shared memory: of totals of runs, which lie one by one, or of a
// tile with padding.
func sumsOf(v *ir.Variant) int {
	s, size := v.Schedule, v.Sections[0].Folds[0].Result.Type.Size()
	if s.Run > 0 {
		return s.TileM * s.TileN * size
	}
	return max(s.TileM*(s.TileN+16/size), s.TileN*(s.TileM+16/size)) * size
}

func smallDefines(v *ir.Variant) string {
	s, run := v.Schedule, ""
	if s.Run > 0 {
		run = fmt.Sprintf("#define RUN %d\n", s.Run)
	}
	if h := haloOf(v); h != nil {
		run = haloDefines(h)
	}
	return run + fmt.Sprintf("#define TILE_M %d\n#define TILE_N %d\n#define TILE_K %d\n#define PART_M %d\n#define PART_N %d\n#define STAGES %d\n#define CLUSTER %d\n",
		s.TileM, s.TileN, s.TileK, s.PartM, s.PartN, s.Stages, max(1, s.Cluster))
}

// smallShared is the dynamic shared memory of the stages. The sums later use the same memory; the
// totals of runs come after the stages.
func smallShared(v *ir.Variant) int {
	s, c := v.Schedule, v.Contract
	tile := func(rows int, o ir.Operand) int {
		if o.Band != nil {
			return bandLength(o, rows, s.TileK) * c.Type.Size()
		}
		if kInner(c, o) {
			return rows * (s.TileK + padding(c, o)) * c.Type.Size()
		}
		return s.TileK * (rows + padding(c, o)) * c.Type.Size()
	}
	if h := haloOf(v); h != nil {
		return haloShared(v, h, tile(s.TileM, c.A))
	}
	ring := s.Stages * (tile(s.TileM, c.A) + len(c.B)*tile(s.TileN, c.B[0]))
	if s.Run > 0 {
		return ring + sumsOf(v)
	}
	return max(ring, len(c.B)*sumsOf(v))
}
