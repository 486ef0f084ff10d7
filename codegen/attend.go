package codegen

import (
	"fmt"
	"math"
	"slices"

	"github.com/fusec/fusec/codegen/skeleton"
	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/ir"
)

// attendEmitter writes kernels of attention, in which a tile of queries goes through all keys and values.
type attendEmitter struct{ *emitter }

// panel is a tile of an operand in shared memory.
type panel struct {
	name, class string // name of the operand, and class of its tile in the text
	row, lane   string // names in the text of the positions across and along its lines
	rows, lanes []*ir.Range
	o           ir.Operand
}

func newAttend(e *emitter) *attendEmitter { return &attendEmitter{e} }

// tileKernel writes a kernel in which a tile of queries goes through the keys and values in two pipeline
// stages of shared memory. A warp has 16 queries. It multiplies them by all keys of a stage, makes weights
// of the scores in registers, and multiplies the weights by the values: registers hold them as the left
// operand of that product already.
func (e *attendEmitter) tileKernel() {
	a := e.v.Attend
	e.attendShape(a)
	e.attendPosition(a)
	e.line("extern __shared__ __align__(16) unsigned char tiles[];")
	if a.Parts > 0 {
		e.partPanels(a)
	} else {
		e.panels(a)
	}
	e.tileTests(a)
	e.logits(a)
	if a.Skip.Table {
		e.line("__syncthreads(); // the table is filled")
	}
	if a.Parts > 0 {
		e.partLoop(a)
	} else {
		e.attendLoop(a)
	}
	e.attendEpilogue(a)
}

// panels writes the panels of 16-bit operands and the functions that fill them.
func (e *attendEmitter) panels(a *ir.Attend) {
	e.line("using Queries = Panel<Half, TILE_M, TILE_K>;")
	e.line("using Keys = Panel<Half, TILE_N, TILE_K>;")
	e.line("using Values = Panel<Half, TILE_N, TILE_V>;")
	e.placePanels()
	for _, p := range e.panelsOf(a) {
		e.fetchPanel(p)
	}
}

// placePanels writes where the panels are in shared memory: that of the queries, and two stages of the others.
func (e *attendEmitter) placePanels() {
	e.line("Queries &queries = *reinterpret_cast<Queries *>(tiles);")
	e.line("Keys *const keys = reinterpret_cast<Keys *>(tiles + sizeof(Queries));")
	e.line("Values *const values = reinterpret_cast<Values *>(tiles + sizeof(Queries) + 2 * sizeof(Keys));")
}

// panelsOf are the panels of the queries, the keys and the values.
func (e *attendEmitter) panelsOf(a *ir.Attend) [3]panel {
	return [3]panel{
		{"queries", "Queries", "m", "depth", a.M, a.Depth, a.Q},
		{"keys", "Keys", "n", "depth", e.k.Cols, a.Depth, a.K},
		{"values", "Values", "n", "width", e.k.Cols, a.N, a.V},
	}
}

// attendPreludes are the preludes that both strategies need beside prelude.cuh.
func attendPreludes(a *ir.Attend) string {
	if a.Skip.Table {
		return skeleton.Text("attend", "attend_table")
	}
	return skeleton.Text("attend")
}

func attendTilePreludes(_ *ir.Kernel, v *ir.Variant) string {
	if v.Attend.Parts > 0 {
		return attendPreludes(v.Attend) + skeleton.Text("contract", "attend_mma", "attend_parts")
	}
	return attendPreludes(v.Attend) + skeleton.Text("contract", "attend_mma")
}

// attendShape writes the sizes that the kernel runs over.
func (e *attendEmitter) attendShape(a *ir.Attend) {
	if a.Parts == 0 {
		e.line("using Half = %s;", spell.StorageType(a.Type))
	}
	e.line("[[maybe_unused]] const int extent_width = %s, extent_depth = %s;", e.size(a.N), e.size(a.Depth))
	if a.Max != nil {
		e.line("constexpr float SCALE = %s; // of logits, for powers of 2", spell.Float32Literal(a.Scale*math.Log2E))
	}
	e.line("const INDEX extent_m = %s, extent_n = %s;", e.size(a.M), e.size(a.Keys(e.k)))
}

// attendPosition writes which tile a block computes. Blocks start in order, so the tiles of queries with the
// most work come first. Under a causal mask these are the last tiles, or the first ones where keys and queries
// have changed places, as in gradients. Tiles are taken from as many batches at a time as have their keys and
// values in half of the L2 cache.
func (e *attendEmitter) attendPosition(a *ir.Attend) {
	e.attendTiles(a)
	e.tilePosition(a, "blockIdx.x")
}

// attendTiles writes how many tiles there are.
func (e *attendEmitter) attendTiles(a *ir.Attend) {
	e.line("const INDEX tiles_m = (extent_m + TILE_M - 1) / TILE_M, batches = %s;", e.size(a.Batch))
	e.line("const INDEX together = " +
		"max(min((INDEX)(L2_ELEMENTS / ((long long)extent_n * (TILE_K + TILE_V) + 1)), batches), (INDEX)1);")
}

// tilePosition writes the place of the tile with a given number in that order.
func (e *attendEmitter) tilePosition(a *ir.Attend, number string) {
	e.line("const INDEX group = %s / (together * tiles_m) * together, group_size = min(together, batches - group);", number)
	e.line("const INDEX in_group = %s - group * tiles_m;", number)
	e.line("[[maybe_unused]] const INDEX batch = group + in_group %% group_size;")
	if a.Skip.FirstMost {
		e.line("const INDEX origin_m = in_group / group_size * TILE_M;")
	} else {
		e.line("const INDEX origin_m = (tiles_m - 1 - in_group / group_size) * TILE_M;")
	}
	if len(a.Batch) > 0 {
		e.take(a.Batch, "batch", e.attendUses(a)...)
	}
}

// attendUses returns every expression of the kernel.
func (e *attendEmitter) attendUses(a *ir.Attend) []*ir.Expr {
	uses := append(e.every(), a.V.Value, a.Weight, a.Skip.Any, a.Skip.All, a.Skip.Clear,
		a.Skip.Kept, a.Skip.Settled, a.Skip.Placed)
	if a.Also != nil {
		uses = append(uses, a.Also.Value, a.Also.Weight, a.Also.Clear)
	}
	for _, p := range a.Products() {
		uses = append(uses, p.Q.Value, p.K.Value)
	}
	return uses
}

// fetchPanel writes a function that fills a panel with rows from origin on, and with zeros where these are
// outside. A wide operand is copied asynchronously until the next barrier, any other goes through
// registers. Neighbouring threads copy neighbours in memory.
func (e *attendEmitter) fetchPanel(p panel) {
	if p.o.Band != nil {
		e.fetchBand(p)
		return
	}
	e.open("auto fetch_%s = [&](%s &panel, INDEX origin)", p.name, p.class)
	e.line("constexpr int ROWS = %[1]s::LINES, PER_ROW = %[1]s::PER_LINE;", p.class)
	e.line("#pragma unroll")
	e.open("for (int first = 0; first < ROWS * PER_ROW; first += THREADS)")
	e.line("const int chunk = first + threadIdx.x;")
	e.placeInPanel(p)
	if p.o.Wide {
		read, tensor, offset := e.wideRead(p)
		if offset != "" {
			tensor = fmt.Sprintf("%s + (inside ? %s : 0)", tensor, offset)
		}
		e.noted(read.Span, "copy_async(&panel.at[line][column], %s, inside);", tensor)
	} else {
		e.panelElements(p)
	}
	e.close()
	e.closeWith(";")
}

// placeInPanel writes the line and the columns of a panel that a thread's chunk is. Neighbouring threads read
// neighbours in memory.
func (e *attendEmitter) placeInPanel(p panel) {
	e.line("if (ROWS * PER_ROW %% THREADS != 0 && chunk >= ROWS * PER_ROW) break;")
	if p.o.KLast {
		e.line("const int line = chunk / PER_ROW, column = chunk %% PER_ROW * 8;")
	} else {
		e.line("const int line = chunk %% ROWS, column = chunk / ROWS * 8;")
	}
}

// wideRead writes whether a thread's chunk of a wide operand is inside. It returns the read that the chunk is, its tensor, and
// the offset at which it lies if it is inside. Of an operand whose elements lie in several tensors, the tensor is a
// pointer to the chunk in the one that has it, without an offset.
func (e *attendEmitter) wideRead(p panel) (read *ir.Expr, tensor, offset string) {
	e.line("const INDEX at_%s = origin + line, at_%s = column;", p.row, p.lane)
	reads, conditions, _ := ir.JoinedReads(p.o.Value)
	uses := slices.Clone(conditions)
	for _, r := range reads {
		uses = append(uses, r.Args[0], r.Guard)
	}
	e.take(p.rows, "at_"+p.row, uses...)
	e.take(p.lanes, "at_"+p.lane, uses...)
	read = reads[0]
	if len(conditions) > 0 {
		start, there := e.joined(p.o.Value)
		e.line("const bool inside = %s && (%s);", p.inside(), there)
		e.line("const auto *from = inside ? %s : %s;", start, e.args[read.Arg])
		return read, "from", ""
	}
	guard, offset := e.access(read, read.Guard, read.Args[0])
	if guard != "" {
		guard = " && " + guard
	}
	e.line("const bool inside = %s%s;", p.inside(), guard)
	return read, e.args[read.Arg], offset
}

// joined writes where the elements of an operand lie, which one of several tensors has, and the condition that one has them.
func (e *attendEmitter) joined(x *ir.Expr) (start, there string) {
	x = ir.Unconverted(x)
	if x.Op == ir.OpRead {
		guard, offset := e.access(x, x.Guard, x.Args[0])
		if guard == "" {
			guard = "true"
		}
		return fmt.Sprintf("%s + %s", e.args[x.Arg], offset), guard
	}
	condition := e.s.Expr(x.Args[0])
	if x.Args[2].IsConst(0) {
		start, there = e.joined(x.Args[1])
		return start, fmt.Sprintf("%s && (%s)", condition, there)
	}
	if x.Args[1].IsConst(0) {
		start, there = e.joined(x.Args[2])
		return start, fmt.Sprintf("!%s && (%s)", condition, there)
	}
	one, inOne := e.joined(x.Args[1])
	other, inOther := e.joined(x.Args[2])
	return fmt.Sprintf("(%s ? %s : %s)", condition, one, other), fmt.Sprintf("(%s ? %s : %s)", condition, inOne, inOther)
}

func (p panel) inside() string {
	return fmt.Sprintf("at_%[1]s < extent_%[1]s && at_%[2]s < extent_%[2]s", p.row, p.lane)
}

// panelElements computes the eight elements of a chunk one by one.
func (e *attendEmitter) panelElements(p panel) {
	e.line("Vec<Half, 8> elements;")
	e.line("#pragma unroll")
	e.open("for (int v = 0; v < 8; ++v)")
	e.panelElement(p, "float ", "element")
	e.line("elements.v[v] = from_f32<Half>(element);")
	e.close()
	e.line("*reinterpret_cast<Vec<Half, 8> *>(&panel.at[line][column]) = elements;")
}

// panelElement writes the v-th element of a chunk, 0 outside, to a variable. declare is the text that declares
// the variable.
func (e *attendEmitter) panelElement(p panel, declare, variable string) {
	e.line("const INDEX at_%s = origin + line, at_%s = column + v;", p.row, p.lane)
	e.line("%s%s = 0.0f;", declare, variable)
	e.open("if (%s)", p.inside())
	e.take(p.rows, "at_"+p.row, p.o.Value)
	e.take(p.lanes, "at_"+p.lane, p.o.Value)
	e.noted(p.o.Value.Span, "%s = %s;", variable, e.s.Bare(p.o.Value))
	e.close()
}

// tileWeights writes the step from the scores of a tile of keys to weights, and rescales the sums so far.
func (e *attendEmitter) tileWeights(a *ir.Attend) {
	e.indent++
	e.keep(a, "key", "key + warp_n")
	e.tileLogits(a, "key", "key + warp_n")
	e.indent--
	e.b.WriteString(`        float factor[2];
        stream.step(s, SCALE, factor);
        rescale(acc, factor);
`)
	e.indent++
	e.tileFactors(a, "key + warp_n")
	e.indent--
}

// attendLoop writes the loop over the keys.
func (e *attendEmitter) attendLoop(a *ir.Attend) {
	e.b.WriteString(`    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int warp_m = warp % WARPS_M * 16, warp_n = warp / WARPS_M * OWN_N;
    const INDEX row[2] = {min(origin_m + warp_m + lane / 4, extent_m - 1),
                          min(origin_m + warp_m + lane / 4 + 8, extent_m - 1)};
    Stream stream;
    float acc[TILE_V / 2] = {};
    INDEX tile = next(0);
    fetch_queries(queries, origin_m);
    if (tile * TILE_N < extent_n) fetch_keys(keys[0], tile * TILE_N);
    copies_commit();
    if (tile * TILE_N < extent_n) fetch_values(values[0], tile * TILE_N);
    copies_commit();
    for (int stage = 0; tile * TILE_N < extent_n; stage ^= 1) {
        const INDEX key = tile * TILE_N, next_tile = next(tile + 1);
        copies_wait<1>();
        __syncthreads(); // the keys are here, and everyone is done with those before
        if (next_tile * TILE_N < extent_n) fetch_keys(keys[stage ^ 1], next_tile * TILE_N);
        copies_commit();
        float s[OWN_N / 2] = {};
#pragma unroll
        for (int k = 0; k < TILE_K; k += 16) {
            unsigned q[4];
            queries.left(q, warp_m, k);
#pragma unroll
            for (int j = 0; j < OWN_N / 8; j += 2) {
                unsigned b[4];
                keys[stage].right(b, warp_n + 8 * j, k);
                multiply(fragment(s, j), q, b[0], b[1], Half{});
                multiply(fragment(s, j + 1), q, b[2], b[3], Half{});
            }
        }
`)
	e.tileWeights(a)
	e.b.WriteString(`        copies_wait<1>();
        __syncthreads(); // the values are here, and everyone is done with those before
        if (next_tile * TILE_N < extent_n) fetch_values(values[stage ^ 1], next_tile * TILE_N);
        copies_commit();
        unsigned weights[OWN_N / 4];
        pack_weights<Half>(weights, s);
#pragma unroll
        for (int k = 0; k < OWN_N / 8; k += 2) {
            const unsigned(&w)[4] = reinterpret_cast<const unsigned(&)[4]>(weights[2 * k]);
#pragma unroll
            for (int j = 0; j < TILE_V / 8; j += 2) {
                unsigned b[4];
                values[stage].right_across(b, 8 * j, warp_n + 8 * k);
                multiply(fragment(acc, j), w, b[0], b[1], Half{});
                multiply(fragment(acc, j + 1), w, b[2], b[3], Half{});
            }
        }
        tile = next_tile;
    }
    stream.finish();
    if constexpr (WARPS_N > 1) {
        merge_warps(stream, acc, SCALE, reinterpret_cast<float *>(tiles));
        if (warp_n > 0) return;
    }
`)
}

// attendGrid is the number of blocks: tiles of queries, in every batch.
func attendGrid(_ *ir.Kernel, v *ir.Variant) *ir.Expr {
	a := v.Attend
	tiles := ir.Apply(ir.OpMul, ceilDiv(product(extents(a.M)), int64(v.Schedule.TileM)), product(extents(a.Batch)))
	if v.Schedule.Blocks == 0 {
		return tiles
	}
	return ir.Apply(ir.OpMin, tiles, ir.IntConst(int64(v.Schedule.Blocks)))
}

// attendCache is the 16-bit elements of the L2 cache that keys and values of the batches being computed
// may take: about half of the 50 MB of an H100.
const attendCache = 12 << 20

func attendDefines(v *ir.Variant) string {
	s := v.Schedule
	warpsM, warpsN := s.AttendWarps()
	parts := ""
	if n := v.Attend.Parts; n > 0 {
		parts = fmt.Sprintf("#define PARTS %d\n", n)
	}
	return parts + fmt.Sprintf("#define TILE_M %d\n#define TILE_N %d\n#define TILE_K %d\n#define TILE_V %d\n"+
		"#define L2_ELEMENTS %d\n#define WARPS_M %d\n#define WARPS_N %d\n#define OWN_N %d\n",
		s.TileM, s.TileN, s.TileK, v.Attend.Width, attendCache, warpsM, warpsN, s.TileN/warpsN)
}

// attendShared is the shared memory of the panels.
func attendShared(v *ir.Variant) int {
	s, panels := v.Schedule, ir.PanelBytes(v.Schedule, v.Attend)
	if _, keys := s.AttendWarps(); keys > 1 { // warps that divide the keys exchange their states in shared memory too
		return max(panels, s.Threads*(v.Attend.Width/2+4)*4)
	}
	return panels
}
