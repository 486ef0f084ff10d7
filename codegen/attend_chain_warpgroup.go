package codegen

import (
	"fmt"

	"github.com/fusec/fusec/ir"
)

// chainWarpgroupKernel writes a chain through the tensor copy engine and wgmma. The first warpgroup copies tiles; each
// of the others has 64 queries. These multiply the next keys, for every product, while the weights of the last ones
// are multiplied by their values.
func (e *attendEmitter) chainWarpgroupKernel() {
	a := e.v.Attend
	e.attendShape(a)
	e.attendPosition(a)
	if len(a.Outer) > 0 {
		e.line("INDEX outer = 0; // of the tile of keys that comes next")
		e.line("[[maybe_unused]] INDEX key_outer = 0; // of the tile whose weights are computed")
		e.line("const INDEX outers = %s;", e.size(a.Outer))
	}
	e.chainTiles(a)
	e.tileTests(a)
	e.productCount(a)
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
    __shared__ Barrier barriers[1 + 2 * STAGES];
    const unsigned query_here = shared_address(barriers), key_here = query_here + 8, key_free = key_here + 8 * STAGES;
`)
	arrivals := 1
	if len(a.Brought) > 0 {
		// A thread has two neighbouring keys of every eight, and reads the numbers of both at once.
		count := len(a.Brought)
		e.line("struct alignas(%d) Brought { float of[%d][2]; }; // numbers of two keys that come with their tile", 16-count%2*8, count)
		e.line("__shared__ Brought brought[STAGES][TILE_N / 2];")
		arrivals++
	}
	e.b.WriteString(`    if (threadIdx.x == 0) {
        barrier_init(query_here, 1);
        for (int stage = 0; stage < STAGES; ++stage) {
`)
	fmt.Fprintf(&e.b, "            barrier_init(key_here + 8 * stage, %d);\n", arrivals)
	e.b.WriteString(`            barrier_init(key_free + 8 * stage, 4 * GROUPS); // an arrival of each warp that multiplies
        }
        barriers_publish();
    }
    __syncthreads();
    const int role = uniform(threadIdx.x / 128);
    if (role == 0) {
        registers_give<GIVEN>();
        if (threadIdx.x == 0) {
            int stage = 0, phase = 1;
            INDEX tile = next(0);
            // Else nobody waits for queries, and the block may end before they come.
            const bool any = tile * TILE_N < extent_n;
            if (any) barrier_expect(query_here, PRODUCTS * QUERY_BYTES);
            for (int slab = 0; any && slab < DEPTH_SLABS; ++slab) {
                const unsigned to = queries + slab * TILE_M * LINE;
`)
	e.indent += 4
	for i := range a.Products() {
		e.line("%s(to + %d * QUERY_BYTES, query_here, 64 * slab, origin_m);", chained("tma_queries", i), i)
	}
	e.indent -= 4
	e.b.WriteString(`            }
            for (; tile * TILE_N < extent_n; tile = next(tile + 1)) {
                const unsigned bar = key_here + 8 * stage, to = keys + stage * STAGE_BYTES;
                barrier_wait(key_free + 8 * stage, phase);
                barrier_expect(bar, STAGE_BYTES);
                for (int slab = 0; slab < DEPTH_SLABS; ++slab) {
`)
	e.indent += 5
	for i := range a.Products() {
		e.line("%s(to + %d * KEY_BYTES + slab * TILE_N * LINE, bar, 64 * slab, tile * TILE_N);", chained("tma_keys", i), i)
	}
	e.indent--
	e.line("}")
	if a.ValueIn == 0 {
		e.line("for (int slab = 0; slab < VALUE_SLABS; ++slab)")
		e.line("    tma_values(to + PRODUCTS * KEY_BYTES + slab * TILE_N * LINE, bar, 64 * slab, tile * TILE_N);")
	}
	e.indent -= 4
	e.b.WriteString(`                if (++stage == STAGES) stage = 0, phase ^= 1;
            }
        }
`)
	e.bring(a)
	e.b.WriteString(`    } else {
        registers_take<TAKEN>();
`)
	e.indent++
	e.weightFunctions(a)
	if a.InPlace() {
		e.pairWarpgroupLoop(a)
	} else {
		e.chainWarpgroupLoop(a)
	}
	e.attendEpilogue(a)
	e.indent--
	e.line("}")
}

// bring writes what the second warp does: it reads the numbers of the keys of a tile, as its barrier waits for.
func (e *attendEmitter) bring(a *ir.Attend) {
	if len(a.Brought) == 0 {
		return
	}
	e.b.WriteString(`        if (threadIdx.x / 32 == 1) {
            int stage = 0, phase = 1;
            for (INDEX tile = next(0); tile * TILE_N < extent_n; tile = next(tile + 1)) {
                barrier_wait(key_free + 8 * stage, phase);
#pragma unroll
                for (int column = threadIdx.x % 32; column < TILE_N; column += 32) {
                    const INDEX at_n = min(tile * TILE_N + column, extent_n - 1);
`)
	e.indent += 4
	e.take(a.Keys(e.k), "at_n", definitions(a.Brought)...)
	e.take(a.Outer, "outer", definitions(a.Brought)...)
	for i, l := range a.Brought {
		e.noted(l.Span, "brought[stage][column / 2].of[%d][column %% 2] = %s;", i, e.s.Bare(l.Def))
	}
	e.indent -= 4
	e.b.WriteString(`                }
                __syncwarp();
                if (threadIdx.x == 32) barrier_arrive(key_here + 8 * stage);
                if (++stage == STAGES) stage = 0, phase ^= 1;
            }
        }
`)
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

// warpgroupRows writes which queries a thread has, their sums, and the beginning of what is done where they have keys.
func (e *attendEmitter) warpgroupRows(a *ir.Attend) {
	e.b.WriteString(`        // The first warpgroup has no queries.
        const int warp_m = threadIdx.x / 32 * 16 - 64, lane = threadIdx.x % 32;
        const INDEX row[2] = {min(origin_m + warp_m + lane / 4, extent_m - 1),
                              min(origin_m + warp_m + lane / 4 + 8, extent_m - 1)};
        const unsigned own_queries = queries + (role - 1) * 64 * LINE;
        float acc[TILE_V / 2] = {};
`)
	e.indent++
	e.ofQuery(a)
	e.indent--
	scores := "PRODUCTS"
	if a.Also != nil {
		e.b.WriteString("        float also[TILE_V / 2] = {};\n        [[maybe_unused]] unsigned also_weights[TILE_N / 4];\n")
		scores = "SCORES"
	}
	turn := ""
	if a.Turns {
		turn = "        if (role == GROUPS) named_arrive(1, 256); // the first group has the first turn\n"
	}
	fmt.Fprintf(&e.b, `        INDEX tile = next(0);
%s        if (tile * TILE_N < extent_n) {
            int stage = 0, phase = 0;
            float s[%s][TILE_N / 2];
            unsigned weights[TILE_N / 4];
`, turn, scores)
}

// keyOuter writes that the weights of the last tile found are computed next.
func (e *attendEmitter) keyOuter(a *ir.Attend) {
	if len(a.Outer) > 0 {
		e.line("key_outer = outer;")
	}
}

// startScores writes the wait for the queries, which registers of these are, and the function that starts the products of
// a stage.
func (e *attendEmitter) startScores(a *ir.Attend) {
	slabs := e.v.Schedule.TileK / 64
	starts := make([]string, len(a.Products()))
	e.indent++
	defer func() { e.indent-- }()
	e.line("barrier_wait(query_here, 0);")
	for i := range starts {
		from, held := fmt.Sprintf("own_queries + %d * QUERY_BYTES", i), ""
		if n := min(a.Held-i*slabs, slabs); n > 0 {
			held = fmt.Sprintf("held_%d, ", i)
			e.line("unsigned held_%d[%d][4];", i, 4*n)
			e.line("hold_queries(held_%d, %s);", i, from)
		}
		starts[i] = fmt.Sprintf("scores_start<Half>(s[%[1]d], %[2]s%[3]s, keys + stage * STAGE_BYTES + %[1]d * KEY_BYTES);", i, held, from)
	}
	e.open("auto start_scores = [&](int stage)")
	for _, s := range starts {
		e.line("%s", s)
	}
	e.closeWith(";")
}

// chainWarpgroupLoop writes the loop over the keys, for the queries of a warpgroup.
func (e *attendEmitter) chainWarpgroupLoop(a *ir.Attend) {
	sums := 1
	if a.Also != nil {
		sums = 2
	}
	e.warpgroupRows(a)
	e.startScores(a)
	e.b.WriteString(`            barrier_wait(key_here, 0);
            wgmma_fence();
            start_scores(0);
            wgmma_wait<0>();
#pragma unroll
            for (int product = 0; product < PRODUCTS; ++product) wgmma_hold(s[product]);
            INDEX key = tile * TILE_N;
`)
	e.indent += 2
	e.keyOuter(a)
	e.chainWeights(a)
	e.indent--
	e.packWeights(a)
	e.b.WriteString(`            for (tile = next(tile + 1); tile * TILE_N < extent_n; tile = next(tile + 1)) {
                const int used = stage;
                key = tile * TILE_N;
                if (++stage == STAGES) stage = 0, phase ^= 1;
                barrier_wait(key_here + 8 * stage, phase);
`)
	e.indent++
	e.keyOuter(a)
	if a.Turns {
		e.line("named_sync(role, 256);")
	}
	e.line("wgmma_fence();")
	e.line("start_scores(stage);")
	e.startValues(a, "used")
	if a.Turns {
		e.line("named_arrive(role %% GROUPS + 1, 256);")
	}
	e.line("wgmma_wait<%d>();", sums)
	e.b.WriteString(`#pragma unroll
                for (int product = 0; product < PRODUCTS; ++product) wgmma_hold(s[product]);
`)
	e.indent++
	e.chainWeights(a)
	e.indent--
	e.waitValues(a)
	e.line("if (lane == 0) barrier_arrive(key_free + 8 * used);")
	e.packWeights(a)
	e.close()
	e.line("wgmma_fence();")
	e.startValues(a, "stage")
	e.waitValues(a)
	e.close()
	if a.Turns {
		e.line("if (role == 1) named_sync(1, 256); // the last turn is nobody's")
	}
}
