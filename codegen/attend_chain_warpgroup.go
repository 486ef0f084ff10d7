package codegen

import (
	"fmt"

	"github.com/fusec/fusec/ir"
)

// chainWarpgroupKernel writes a chain through the tensor copy engine and wgmma. The first warpgroup copies tiles; each
// of the others has 64 queries. These multiply the next keys, for every product, while the weights of the previous keys
// are multiplied by their values. Blocks may be persistent and go from one tile of queries to the next, so that tiles
// are copied while the sums of the previous one are stored.
func (e *attendEmitter) chainWarpgroupKernel() {
	a := e.v.Attend
	e.attendShape(a)
	e.attendTiles(a)
	if len(a.Outer) > 0 {
		e.line("const INDEX outers = %s;", e.size(a.Outer))
	}
	e.productCount(a)
	e.chainMemory(a)
	e.b.WriteString(`    const int role = uniform(threadIdx.x / 128);
    if (role == 0) {
        registers_give<GIVEN>();
        if (threadIdx.x == 0) {
            int stage = 0, phase = 1, query_phase = 1;
`)
	e.indent += 2
	e.eachTile(a, func() { e.copyTiles(a) })
	e.indent--
	e.line("}")
	e.copyKeyNumbers(a)
	e.b.WriteString(`    } else {
        registers_take<TAKEN>();
        int stage = 0, phase = 0, query_phase = 0;
        // The first warpgroup has no queries.
        const int warp_m = threadIdx.x / 32 * 16 - 64, lane = threadIdx.x % 32;
        const unsigned own_queries = queries + (role - 1) * 64 * LINE;
`)
	e.eachTile(a, func() {
		e.weightFunctions(a)
		if a.InPlace() { // otherwise registers hold weights beside the scores of the next tile
			e.pairWarpgroupLoop(a)
		} else {
			e.chainWarpgroupLoop(a)
		}
		e.attendEpilogue(a)
	})
	e.indent--
	e.line("}")
}

// chainMemory writes where tiles, numbers and barriers are in shared memory.
func (e *attendEmitter) chainMemory(a *ir.Attend) {
	e.b.WriteString(`    extern __shared__ __align__(1024) unsigned char tiles[];
    constexpr int DEPTH_SLABS = TILE_K / 64;
    constexpr int QUERY_BYTES = TILE_M * TILE_K * 2, KEY_BYTES = TILE_N * TILE_K * 2;
`)
	if a.ValueIn == 0 {
		e.line("constexpr int VALUE_SLABS = TILE_V / 64, VALUE_BYTES = TILE_N * TILE_V * 2;")
	} else {
		e.line("constexpr int VALUE_BYTES = 0;")
	}
	e.b.WriteString(`    constexpr int STAGE_BYTES = PRODUCTS * KEY_BYTES + VALUE_BYTES;
    const unsigned queries = (shared_address(tiles) + 1023) / 1024 * 1024;
    const unsigned keys = queries + PRODUCTS * QUERY_BYTES;
    __shared__ Barrier barriers[2 + 2 * STAGES];
    const unsigned query_here = shared_address(barriers), query_free = query_here + 8, key_here = query_free + 8,
                   key_free = key_here + 8 * STAGES;
`)
	arrivals := 1
	if count := len(a.Brought); count > 0 {
		// A thread has two neighbouring keys of every eight, and reads the numbers of both at once.
		e.line("struct alignas(%d) Brought { float of[%d][2]; }; // numbers of two keys that come with their tile", 16-count%2*8, count)
		e.line("__shared__ Brought brought[STAGES][TILE_N / 2];")
		arrivals++
	}
	e.b.WriteString(`    if (threadIdx.x == 0) {
        barrier_init(query_here, 1);
        barrier_init(query_free, 4 * GROUPS); // an arrival of each warp that multiplies
        for (int stage = 0; stage < STAGES; ++stage) {
`)
	fmt.Fprintf(&e.b, "            barrier_init(key_here + 8 * stage, %d);\n", arrivals)
	e.b.WriteString(`            barrier_init(key_free + 8 * stage, 4 * GROUPS);
        }
        barriers_publish();
    }
    __syncthreads();
`)
}

// eachTile writes the work for each tile of queries of a block, after the place of the tile and the keys that it needs.
// Tiles are in order of their work, most first. If blocks are persistent, every second round takes tiles in reverse
// order, so that all blocks have about the same work.
func (e *attendEmitter) eachTile(a *ir.Attend, body func()) {
	number := "blockIdx.x"
	if e.v.Schedule.Blocks > 0 {
		number = "number"
		e.open("for (INDEX round = 0;; ++round)")
		e.line("const INDEX number = round * gridDim.x + (round %% 2 == 0 ? blockIdx.x : gridDim.x - 1 - blockIdx.x);")
		e.line("if (number >= tiles_m * batches) break;")
		defer e.close()
	}
	e.tilePosition(a, number)
	if len(a.Outer) > 0 {
		e.line("INDEX outer = 0; // of the tile of keys that comes next")
		e.line("[[maybe_unused]] INDEX key_outer = 0; // of the tile whose weights are computed")
	}
	e.tileTests(a)
	body()
}

// copyTiles writes the copies of a tile of queries, and of all its tiles of keys.
func (e *attendEmitter) copyTiles(a *ir.Attend) {
	e.chainTiles(a)
	e.line("INDEX tile = next(0);")
	e.line("// Else nobody waits for queries, and the block may end before they come.")
	e.open("if (tile * TILE_N < extent_n)")
	e.line("barrier_wait(query_free, query_phase);")
	e.line("query_phase ^= 1;")
	e.line("barrier_expect(query_here, PRODUCTS * QUERY_BYTES);")
	e.close()
	e.open("for (int slab = 0; tile * TILE_N < extent_n && slab < DEPTH_SLABS; ++slab)")
	e.line("const unsigned to = queries + slab * TILE_M * LINE;")
	for i := range a.Products() {
		e.line("%s(to + %d * QUERY_BYTES, query_here, 64 * slab, origin_m);", chained("tma_queries", i), i)
	}
	e.close()
	e.open("for (; tile * TILE_N < extent_n; tile = next(tile + 1))")
	e.line("const unsigned bar = key_here + 8 * stage, to = keys + stage * STAGE_BYTES;")
	e.line("barrier_wait(key_free + 8 * stage, phase);")
	e.line("barrier_expect(bar, STAGE_BYTES);")
	e.open("for (int slab = 0; slab < DEPTH_SLABS; ++slab)")
	for i := range a.Products() {
		e.line("%s(to + %d * KEY_BYTES + slab * TILE_N * LINE, bar, 64 * slab, tile * TILE_N);", chained("tma_keys", i), i)
	}
	e.close()
	if a.ValueIn == 0 {
		e.line("for (int slab = 0; slab < VALUE_SLABS; ++slab)")
		e.line("    tma_values(to + PRODUCTS * KEY_BYTES + slab * TILE_N * LINE, bar, 64 * slab, tile * TILE_N);")
	}
	e.line("if (++stage == STAGES) stage = 0, phase ^= 1;")
	e.close()
}

// copyKeyNumbers writes the work of the second warp: it reads the numbers that belong to the keys of a tile, and the
// barrier of the tile waits for it.
func (e *attendEmitter) copyKeyNumbers(a *ir.Attend) {
	if len(a.Brought) == 0 {
		return
	}
	e.open("if (threadIdx.x / 32 == 1)")
	e.line("int stage = 0, phase = 1;")
	e.eachTile(a, func() {
		e.open("for (INDEX tile = next(0); tile * TILE_N < extent_n; tile = next(tile + 1))")
		e.line("barrier_wait(key_free + 8 * stage, phase);")
		e.line("#pragma unroll")
		e.open("for (int column = threadIdx.x %% 32; column < TILE_N; column += 32)")
		e.line("const INDEX at_n = min(tile * TILE_N + column, extent_n - 1);")
		e.take(a.Keys(e.k), "at_n", definitions(a.Brought)...)
		e.take(a.Outer, "outer", definitions(a.Brought)...)
		for i, l := range a.Brought {
			e.noted(l.Span, "brought[stage][column / 2].of[%d][column %% 2] = %s;", i, e.s.Bare(l.Def))
		}
		e.close()
		e.line("__syncwarp();")
		e.line("if (threadIdx.x == 32) barrier_arrive(key_here + 8 * stage);")
		e.line("if (++stage == STAGES) stage = 0, phase ^= 1;")
		e.close()
	})
	e.close()
}

// chainWarpgroupShared is the dynamic shared memory of the tiles, and of their alignment.
func chainWarpgroupShared(v *ir.Variant) int { return ir.ChainWarpgroupBytes(v.Schedule, v.Attend) }

// chainTiles writes the functions that start the copy of a slab of an operand's tile.
func (e *attendEmitter) chainTiles(a *ir.Attend) {
	for i, p := range a.Products() {
		e.tmaTile(chained("queries", i), p.QTile)
		e.tmaTile(chained("keys", i), p.KTile)
	}
	if a.ValueIn == 0 {
		e.tmaTile("values", a.VTile)
	}
}

// startValues writes the start of the products of weights and values, which are in a stage.
func (e *attendEmitter) startValues(a *ir.Attend, stage string) {
	value := a.ValueIn - 1
	if a.ValueIn == 0 {
		value = len(a.Products())
	}
	e.line("values_start<Half>(acc, weights, keys + %s * STAGE_BYTES + %d * KEY_BYTES);", stage, value)
	if a.Also != nil {
		e.line("values_start<Half>(also, also_weights, keys + %s * STAGE_BYTES + %d * KEY_BYTES);", stage, a.Also.ValueIn-1)
	}
}

// waitValues writes the wait for these products.
func (e *attendEmitter) waitValues(a *ir.Attend) {
	e.line("wgmma_wait<0>();")
	e.line("wgmma_hold(acc);")
	if a.Also != nil {
		e.line("wgmma_hold(also);")
	}
}

// packWeights writes the step from weights to operands.
func (e *attendEmitter) packWeights(a *ir.Attend) {
	e.line("pack_weights<Half>(weights, s[0]);")
	if a.Also != nil {
		e.line("pack_weights<Half>(also_weights, s[1]);")
	}
}

// warpgroupRows writes the queries of a thread and their sums, and opens the block of text for queries that have keys.
func (e *attendEmitter) warpgroupRows(a *ir.Attend) {
	e.line("const INDEX row[2] = {min(origin_m + warp_m + lane / 4, extent_m - 1),")
	e.line("                      min(origin_m + warp_m + lane / 4 + 8, extent_m - 1)};")
	e.line("float acc[TILE_V / 2] = {};")
	e.ofQuery(a)
	scores := "PRODUCTS"
	if a.Also != nil {
		e.line("float also[TILE_V / 2] = {};")
		e.line("[[maybe_unused]] unsigned also_weights[TILE_N / 4];")
		scores = "SCORES"
	}
	e.line("INDEX tile = next(0);")
	e.open("if (tile * TILE_N < extent_n)")
	e.line("float s[%s][TILE_N / 2];", scores)
	e.line("unsigned weights[TILE_N / 4];")
	e.startScores(a)
	e.line("barrier_wait(key_here + 8 * stage, phase);")
}

// keyOuter writes that the weights of the last tile found are computed next.
func (e *attendEmitter) keyOuter(a *ir.Attend) {
	if len(a.Outer) > 0 {
		e.line("key_outer = outer;")
	}
}

// startScores writes the wait for the queries, their load into registers, and the function that starts the products of
// a stage.
func (e *attendEmitter) startScores(a *ir.Attend) {
	slabs := e.v.Schedule.TileK / 64
	starts := make([]string, len(a.Products()))
	e.line("barrier_wait(query_here, query_phase);")
	e.line("query_phase ^= 1;")
	for i := range starts {
		from, held := fmt.Sprintf("own_queries + %d * QUERY_BYTES", i), ""
		if n := min(a.Held-i*slabs, slabs); n > 0 {
			held = fmt.Sprintf("held_%d, ", i)
			e.line("unsigned held_%d[%d][4];", i, 4*n)
			e.line("hold_queries(held_%d, %s);", i, from)
		}
		starts[i] = fmt.Sprintf("scores_start<Half>(s[%[1]d], %[2]s%[3]s, keys + stage * STAGE_BYTES + %[1]d * KEY_BYTES);", i, held, from)
	}
	if e.holdsAll(a) {
		e.freeQueries()
	}
	e.open("auto start_scores = [&]")
	e.line("wgmma_fence();")
	for _, s := range starts {
		e.line("%s", s)
	}
	e.closeWith(";")
	e.open("auto finish_scores = [&]")
	e.line("#pragma unroll")
	e.line("for (int product = 0; product < PRODUCTS; ++product) wgmma_hold(s[product]);")
	e.closeWith(";")
}

// holdsAll reports whether registers hold all queries, so that their tile is free at once.
func (e *attendEmitter) holdsAll(a *ir.Attend) bool {
	return a.Held == len(a.Products())*e.v.Schedule.TileK/64
}

// freeQueries writes that a warp no longer needs its tile of queries.
func (e *attendEmitter) freeQueries() {
	e.line("__syncwarp();")
	e.line("if (lane == 0) barrier_arrive(query_free);")
}

// nextStage writes the step to the stage of the next tile of keys.
func (e *attendEmitter) nextStage(a *ir.Attend) {
	e.line("const int used = stage;")
	e.line("key = tile * TILE_N;")
	e.keyOuter(a)
	e.line("if (++stage == STAGES) stage = 0, phase ^= 1;")
	e.line("barrier_wait(key_here + 8 * stage, phase);")
}

// lastStage writes that the stage of the last tile of keys is free, and the queries too, if they are not
// free yet.
func (e *attendEmitter) lastStage(a *ir.Attend) {
	e.line("if (lane == 0) barrier_arrive(key_free + 8 * stage);")
	e.line("if (++stage == STAGES) stage = 0, phase ^= 1;")
	if !e.holdsAll(a) {
		e.freeQueries()
	}
}

// chainWarpgroupLoop writes the loop over the keys, for the queries of a warpgroup.
func (e *attendEmitter) chainWarpgroupLoop(a *ir.Attend) {
	sums := 1
	if a.Also != nil {
		sums = 2
	}
	e.warpgroupRows(a)
	e.line("start_scores();")
	e.line("wgmma_wait<0>();")
	e.line("finish_scores();")
	e.line("INDEX key = tile * TILE_N;")
	e.keyOuter(a)
	e.chainWeights(a)
	e.packWeights(a)
	e.open("for (tile = next(tile + 1); tile * TILE_N < extent_n; tile = next(tile + 1))")
	e.nextStage(a)
	e.line("start_scores();")
	e.startValues(a, "used")
	e.line("wgmma_wait<%d>();", sums)
	e.line("finish_scores();")
	e.chainWeights(a)
	e.waitValues(a)
	e.line("if (lane == 0) barrier_arrive(key_free + 8 * used);")
	e.packWeights(a)
	e.close()
	e.line("wgmma_fence();")
	e.startValues(a, "stage")
	e.waitValues(a)
	e.lastStage(a)
	e.close()
}
