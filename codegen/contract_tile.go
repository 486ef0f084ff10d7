package codegen

import (
	"fmt"
	"strings"

	"github.com/fusec/fusec/codegen/skeleton"
	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/ir"
)

// contractTile writes kernels of tiles of a product through tensor cores (mma.sync).
type contractTile struct{ contractEmitter }

func newContractTile(e *emitter) *contractTile { return &contractTile{newContract(e)} }

// kernel writes a kernel that computes tiles of a matrix product. Operands go to pipeline stages in shared
// memory: copied unchanged, or through registers where a prologue computes them. Sums stay in registers,
// where the epilogue reads them.
func (e *contractTile) kernel() {
	c := e.v.Contract
	e.line("using Half = %s;", spell.StorageType(c.Type))
	e.line("const INDEX extent_m = %s, extent_n = %s, extent_k = %s;", e.size(c.M), e.columnsOf(c), e.size(e.contracted()))
	e.tilePosition(c, "blockIdx.x")
	e.line("using TileA = Tile<Half, TILE_M, %t>;", c.A.KLast)
	e.line("using TileB = Tile<Half, TILE_N, %t>;", c.B[0].KLast)
	e.line("extern __shared__ __align__(16) unsigned char tiles[];")
	e.line("TileA *const tile_a = reinterpret_cast<TileA *>(tiles);")
	e.fetch("a", "m", c.M, c.A)
	for i, b := range c.B {
		e.line("TileB *const tile_%s = reinterpret_cast<TileB *>(tiles + STAGES * (sizeof(TileA) + %d * sizeof(TileB)));", rightName(i), i)
		e.fetch(rightName(i), "n", c.N, b)
	}
	if c.Product != nil {
		e.line("const FoldRows rows((int)origin_m, (int)origin_n);")
		e.foldPrefetch(c)
		e.mainLoop(c)
		e.foldTiles(c, "sums[0]")
		return
	}
	e.mainLoop(c)
	e.epilogue(c)
}

func contractPreludes(_ *ir.Kernel, v *ir.Variant) string {
	return skeleton.Text("contract") + foldPrelude(v)
}

// fetch writes a function that reads a thread's chunks of an operand's tile at column origin_k. A wide
// operand is copied to shared memory; any other goes to registers, from which store puts it there. Outside
// the operand is zero.
func (e *contractTile) fetch(side, row string, own []*ir.Range, o ir.Operand) {
	tile := "Tile" + strings.ToUpper(side[:1])
	if !o.Wide {
		e.line("Vec<Half, 8> next_%s[%s::CHUNKS];", side, tile)
	}
	e.open("auto fetch_%s = [&](int stage, INDEX origin_k)", side)
	e.line("#pragma unroll")
	e.open("for (int chunk = 0; chunk < %s::CHUNKS; ++chunk)", tile)
	line, first := tile+"::line(chunk)", tile+"::first(chunk)"
	if !o.KLast {
		line, first = first, line
	}
	e.line("const INDEX at_%s = origin_%s + %s, at_k = origin_k + %s;", row, row, line, first)
	if o.Wide {
		read := e.operandRead(o.Value)
		e.line("const bool inside = at_%s < extent_%s && at_k < extent_k;", row, row)
		e.take(own, "at_"+row, read.Args[0])
		e.take(e.contracted(), "at_k", read.Args[0])
		e.noted(read.Span, "copy_async(tile_%s[stage].slot(chunk), %s + (inside ? %s : 0), inside);", side, e.args[read.Arg], e.s.Expr(read.Args[0]))
	} else {
		e.fetchElements(side, row, own, o)
	}
	e.close()
	e.closeWith(";")
}

// fetchElements computes the eight elements of a chunk one by one.
func (e *contractTile) fetchElements(side, row string, own []*ir.Range, o ir.Operand) {
	e.line("#pragma unroll")
	e.open("for (int v = 0; v < 8; ++v)")
	if o.KLast {
		e.line("const INDEX at_row = at_%s, at_col = at_k + v;", row)
	} else {
		e.line("const INDEX at_row = at_%s + v, at_col = at_k;", row)
	}
	e.line("float element = 0.0f;")
	e.open("if (at_row < extent_%s && at_col < extent_k)", row)
	locals := e.operandLocals(o.Value)
	uses := append(definitions(locals), o.Value)
	e.take(own, "at_row", uses...)
	e.take(e.contracted(), "at_col", uses...)
	for _, l := range locals {
		e.constant(l)
	}
	e.noted(o.Value.Span, "element = %s;", e.s.Bare(o.Value))
	for _, l := range locals {
		delete(e.place, l) // because another operand, or the epilogue, computes it again
	}
	e.close()
	e.line("next_%s[chunk].v[v] = from_f32<Half>(element);", side)
	e.close()
}

// mainLoop multiplies tile by tile while the next STAGES-1 tiles are being copied.
func (e *contractTile) mainLoop(c *ir.Contract) {
	e.line("const int warp_m = threadIdx.x / 32 %% 2 * (TILE_M / 2), warp_n = threadIdx.x / 64 * (TILE_N / 4);")
	e.line("constexpr int FRAGS_M = TILE_M / 2 / 16, FRAGS_N = TILE_N / 4 / 8;")
	e.line("float sums[%d][FRAGS_M][FRAGS_N][4] = {};", len(c.B))
	e.line("#pragma unroll")
	e.open("for (int stage = 0; stage < STAGES - 1; ++stage)")
	e.fetches(c, "stage", "(INDEX)stage * TILE_K")
	e.put(c, "stage")
	e.line("copies_commit();")
	e.close()
	e.line("int stage = 0;")
	e.open("for (INDEX origin_k = 0; origin_k < extent_k; origin_k += TILE_K)")
	e.line("copies_wait<STAGES - 2>();")
	e.line("__syncthreads(); // this tile is here, and everyone is done with the one before")
	e.line("const int fetch_stage = stage == 0 ? STAGES - 1 : stage - 1;")
	e.fetches(c, "fetch_stage", "origin_k + (STAGES - 1) * TILE_K")
	e.line("copies_commit();")
	e.line("#pragma unroll")
	e.open("for (int k = 0; k < TILE_K; k += 16)")
	e.line("unsigned a[FRAGS_M][4];")
	e.line("#pragma unroll")
	e.line("for (int i = 0; i < FRAGS_M; ++i) tile_a[stage].left(a[i], warp_m + 16 * i, k);")
	for i := range c.B {
		e.line("multiply_columns(sums[%d], a, tile_%s[stage], warp_n, k);", i, rightName(i))
	}
	e.close()
	e.put(c, "fetch_stage")
	e.line("stage = stage == STAGES - 1 ? 0 : stage + 1;")
	e.close()
}

// fetches writes the calls that copy one stage of all operands.
func (e *contractTile) fetches(c *ir.Contract, stage, origin string) {
	e.line("fetch_a(%s, %s);", stage, origin)
	for i := range c.B {
		e.line("fetch_%s(%s, %s);", rightName(i), stage, origin)
	}
}

// put writes the stores of the operands that go through registers.
func (e *contractTile) put(c *ir.Contract, stage string) {
	if !c.A.Wide {
		e.line("tile_a[%s].put(next_a);", stage)
	}
	for i, b := range c.B {
		if !b.Wide {
			e.line("tile_%s[%s].put(next_%s);", rightName(i), stage, rightName(i))
		}
	}
}

// epilogue writes the epilogue, for each element that a thread holds.
func (e *contractTile) epilogue(c *ir.Contract) {
	e.line("#pragma unroll")
	e.open("for (int frag_m = 0; frag_m < FRAGS_M; ++frag_m)")
	e.line("#pragma unroll")
	e.open("for (int frag_n = 0; frag_n < FRAGS_N; ++frag_n)")
	e.line("#pragma unroll")
	e.open("for (int part = 0; part < 4; ++part)")
	e.line("const INDEX at_m = origin_m + warp_m + 16 * frag_m + threadIdx.x %% 32 / 4 + part / 2 * 8;")
	e.line("const INDEX at_n = origin_n + warp_n + 8 * frag_n + threadIdx.x %% 4 * 2 + part %% 2;")
	e.line("if (at_m >= extent_m || at_n >= extent_n) continue;")
	row := e.v.Sections[1]
	locals := e.wants(ir.RowLevel, func(*ir.Local) bool { return false }, sectionRoots(row)...)
	uses := append(definitions(locals), sectionRoots(row)...)
	e.take(c.M, "at_m", uses...)
	e.take(c.N, "at_n", uses...)
	for i, f := range e.v.Sections[0].Folds {
		name := e.names.Fresh(f.Result.Name)
		e.noted(f.Result.Span, "const float %s = sums[%d][frag_m][frag_n][part];", name, i)
		e.place[f.Result] = name
	}
	for _, l := range locals {
		e.constant(l)
	}
	for _, st := range row.Stores {
		e.scalarStore(st)
	}
	e.close()
	e.close()
	e.close()
}

func contractDefines(v *ir.Variant) string {
	s := v.Schedule
	return foldDefine(v) + fmt.Sprintf("#define TILE_M %d\n#define TILE_N %d\n#define TILE_K %d\n#define STAGES %d\n", s.TileM, s.TileN, s.TileK, s.Stages)
}

// contractShared is the dynamic shared memory of the pipeline stages.
func contractShared(v *ir.Variant) int {
	s := v.Schedule
	tile := func(rows int, kLast bool) int {
		const padding = 8
		if kLast {
			return rows * (s.TileK + padding)
		}
		return s.TileK * (rows + padding)
	}
	elements := tile(s.TileM, v.Contract.A.KLast) + len(v.Contract.B)*tile(s.TileN, v.Contract.B[0].KLast)
	return s.Stages * elements * v.Contract.Type.Size()
}
