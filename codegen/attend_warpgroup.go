package codegen

import (
	"fmt"
	"slices"

	"github.com/fusec/fusec/codegen/skeleton"
	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/ir"
)

// warpgroupKernel writes attention through the tensor copy engine and wgmma. The first warpgroup copies
// tiles; each of the others has 64 queries. These multiply the next keys while they compute the weights of
// the last ones, whose values are multiplied at the same time. They take turns, so that the products of
// one overlap with the exponentials of the other (Shah et al., "FlashAttention-3", 2024).
func (e *attendEmitter) warpgroupKernel() {
	a := e.v.Attend
	e.attendShape(a)
	e.attendPosition(a)
	e.tmaTiles(a)
	e.tileTests(a)
	e.b.WriteString(`    extern __shared__ __align__(1024) unsigned char tiles[];
    constexpr int DEPTH_SLABS = TILE_K / 64, VALUE_SLABS = TILE_V / 64;
    constexpr int QUERY_BYTES = TILE_M * TILE_K * 2, KEY_BYTES = TILE_N * TILE_K * 2;
    constexpr int VALUE_BYTES = TILE_N * TILE_V * 2;
    const unsigned queries = (shared_address(tiles) + 1023) / 1024 * 1024;
    const unsigned keys = queries + QUERY_BYTES, values = keys + STAGES * KEY_BYTES;
    __shared__ Barrier barriers[1 + 4 * STAGES];
    const unsigned query_here = shared_address(barriers), key_here = query_here + 8,
                   value_here = key_here + 8 * STAGES, key_free = value_here + 8 * STAGES,
                   value_free = key_free + 8 * STAGES;
    if (threadIdx.x == 0) {
        barrier_init(query_here, 1);
        for (int stage = 0; stage < STAGES; ++stage) {
            barrier_init(key_here + 8 * stage, 1);
            barrier_init(value_here + 8 * stage, 1);
            barrier_init(key_free + 8 * stage, 4 * GROUPS); // an arrival of each warp that multiplies
            barrier_init(value_free + 8 * stage, 4 * GROUPS);
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
            if (any) barrier_expect(query_here, QUERY_BYTES);
            for (int slab = 0; any && slab < DEPTH_SLABS; ++slab) {
                tma_queries(queries + slab * TILE_M * LINE, query_here, 64 * slab, origin_m);
            }
            for (; tile * TILE_N < extent_n; tile = next(tile + 1)) {
                barrier_wait(key_free + 8 * stage, phase);
                barrier_expect(key_here + 8 * stage, KEY_BYTES);
                for (int slab = 0; slab < DEPTH_SLABS; ++slab) {
                    tma_keys(keys + stage * KEY_BYTES + slab * TILE_N * LINE, key_here + 8 * stage, 64 * slab,
                             tile * TILE_N);
                }
                barrier_wait(value_free + 8 * stage, phase);
                barrier_expect(value_here + 8 * stage, VALUE_BYTES);
                for (int slab = 0; slab < VALUE_SLABS; ++slab) {
                    tma_values(values + stage * VALUE_BYTES + slab * TILE_N * LINE, value_here + 8 * stage,
                               64 * slab, tile * TILE_N);
                }
                if (++stage == STAGES) stage = 0, phase ^= 1;
            }
        }
    } else {
        registers_take<TAKEN>();
`)
	e.indent++
	e.logits(a)
	e.attendWarpgroupLoop(a)
	e.attendEpilogue(a)
	e.indent--
	e.line("}")
}

func attendWarpgroupPreludes(_ *ir.Kernel, v *ir.Variant) string {
	a := v.Attend
	held := ""
	if a.Held > 0 {
		held = skeleton.Text("attend_held")
		if v.Schedule.TileN != a.Width {
			held = spell.WGMMA(v.Schedule.TileN, a.Type, true) + held
		}
	}
	return attendPreludes(a) + skeleton.Text("hopper") + "\n" + spell.WGMMA(v.Schedule.TileN, a.Type, false) +
		spell.WGMMA(a.Width, a.Type, true) + skeleton.Text("attend_warpgroup") + held
}

// registersSM is the registers of a multiprocessor, all of which one block has.
const registersSM = 1 << 16

func attendWarpgroupDefines(v *ir.Variant) string {
	groups, given, taken := v.Schedule.Threads/128-1, 24, 240
	if groups == 3 {
		given, taken = 32, 160
	}
	// The registers of a block are those that its threads have at first, in multiples of eight. A warpgroup that asks
	// for more than are left waits for ever.
	if at := registersSM / v.Schedule.Threads / 8 * 8; given+groups*taken > (groups+1)*at {
		panic(fmt.Sprintf("BUG: warpgroups of %d and %d registers in a block of %d each", given, taken, at))
	}
	return fmt.Sprintf("#define GROUPS %d\n#define GIVEN %d\n#define TAKEN %d\n#define STAGES %d\n",
		groups, given, taken, v.Schedule.Stages) + attendDefines(v)
}

// attendWarpgroupShared is the dynamic shared memory of a block.
func attendWarpgroupShared(v *ir.Variant) int { return ir.AttendWarpgroupBytes(v.Schedule, v.Attend) }

// tmaTiles writes the functions that start the copy of a slab of an operand's tile.
func (e *attendEmitter) tmaTiles(a *ir.Attend) {
	e.tmaTile("queries", a.QTile)
	e.tmaTile("keys", a.KTile)
	e.tmaTile("values", a.VTile)
}

func (e *attendEmitter) tmaTile(name string, t *ir.TMATile) {
	at := ""
	if line := t.View.TileBytes() / t.View.Box[1]; line != 128 {
		panic(fmt.Sprintf("BUG: a line of %s has %d bytes, not the 128 that the barrier is told", name, line))
	}
	for _, x := range t.At {
		at += ", (int)" + e.s.Expr(x)
	}
	line, uses := "line", t.At
	if t.Line != nil {
		line, uses = fmt.Sprintf("(line + %s)", e.s.Expr(t.Line)), append(slices.Clone(t.At), t.Line)
	}
	if outer := e.v.Attend.Outer; len(outer) > 0 {
		e.open("auto tma_%s = [&](unsigned to, unsigned bar, int lane, INDEX line)", name)
		e.take(outer, "outer", uses...)
		e.line("tma_load(to, %s, bar, lane, (int)%s%s);", e.views[t.View], line, at)
		e.closeWith(";")
		return
	}
	e.line("auto tma_%s = [&](unsigned to, unsigned bar, int lane, INDEX line) { "+
		"tma_load(to, %s, bar, lane, (int)%s%s); };",
		name, e.views[t.View], line, at)
}

// attendWarpgroupLoop writes the loop over the keys, for the queries of a warpgroup.
func (e *attendEmitter) attendWarpgroupLoop(a *ir.Attend) {
	e.b.WriteString(`        // The first warpgroup has no queries.
        const int warp_m = threadIdx.x / 32 * 16 - 64, lane = threadIdx.x % 32;
        const INDEX row[2] = {min(origin_m + warp_m + lane / 4, extent_m - 1),
                              min(origin_m + warp_m + lane / 4 + 8, extent_m - 1)};
        const unsigned own_queries = queries + (role - 1) * 64 * LINE;
        Stream stream;
        float acc[TILE_V / 2] = {};
        INDEX tile = next(0);
        if (role == GROUPS) named_arrive(1, 256); // the first group has the first turn
        if (tile * TILE_N < extent_n) {
            int stage = 0, phase = 0;
            float s[TILE_N / 2], factor[2];
            unsigned weights[TILE_N / 4];
`)
	e.indent += 2
	e.keep(a, "tile * TILE_N", "tile * TILE_N")
	e.indent -= 2
	e.b.WriteString(`            barrier_wait(query_here, 0);
            barrier_wait(key_here, 0);
            wgmma_fence();
            scores_start<Half>(s, own_queries, keys);
            wgmma_wait<0>();
            wgmma_hold(s);
            if (lane == 0) barrier_arrive(key_free);
`)
	e.indent += 2
	e.weigh(a, "tile * TILE_N")
	e.b.WriteString(`            pack_weights<Half>(weights, s);
            for (tile = next(tile + 1); tile * TILE_N < extent_n; tile = next(tile + 1)) {
                const int used = stage, used_phase = phase;
                if (++stage == STAGES) stage = 0, phase ^= 1;
                barrier_wait(key_here + 8 * stage, phase);
                named_sync(role, 256);
                wgmma_fence();
                scores_start<Half>(s, own_queries, keys + stage * KEY_BYTES);
                barrier_wait(value_here + 8 * used, used_phase);
                values_start<Half>(acc, weights, values + used * VALUE_BYTES);
                named_arrive(role % GROUPS + 1, 256);
`)
	e.indent++
	e.keep(a, "tile * TILE_N", "tile * TILE_N")
	e.indent--
	e.b.WriteString(`                wgmma_wait<1>();
                wgmma_hold(s);
                if (lane == 0) barrier_arrive(key_free + 8 * stage);
`)
	e.indent++
	e.weigh(a, "tile * TILE_N")
	e.indent -= 3
	e.b.WriteString(`                wgmma_wait<0>();
                wgmma_hold(acc);
                if (lane == 0) barrier_arrive(value_free + 8 * used);
                rescale(acc, factor);
                pack_weights<Half>(weights, s);
            }
            barrier_wait(value_here + 8 * stage, phase);
            wgmma_fence();
            values_start<Half>(acc, weights, values + stage * VALUE_BYTES);
            wgmma_wait<0>();
            wgmma_hold(acc);
        }
        if (role == 1) named_sync(1, 256); // the last turn is nobody's
        stream.finish();
`)
}

// weigh writes the step from the scores of a tile to weights.
func (e *attendEmitter) weigh(a *ir.Attend, key string) {
	e.line("{")
	e.indent++
	e.line("const INDEX key = %s;", key)
	e.tileLogits(a, "key", "key")
	e.line("stream.step(s, SCALE, factor);")
	e.tileFactors(a, "key")
	e.close()
}
