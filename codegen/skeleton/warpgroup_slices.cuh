
// --- tiles of a product whose columns are cut into slices ----------------------------

// The slices of all tiles. Those of all tiles at the same columns follow each other.
struct SlicedTiles : Tiles {
    int tiles, slices, all_steps;
    int tile, slice, first_step; // the present tile and slice, and its first stage
    DEVICE SlicedTiles(int extent_m, int extent_n, int batches, int slices, int all_steps)
        : Tiles(extent_m, extent_n, batches), tiles(count), slices(slices), all_steps(all_steps) {
        count *= slices;
    }
    DEVICE int first_of(int slice) const { return (int)((long long)all_steps * slice / slices); }
    DEVICE int steps_of(int item) const { return first_of(item / tiles + 1) - first_of(item / tiles); }
    DEVICE void go_to(int item) {
        slice = item / tiles, tile = item - slice * tiles, first_step = first_of(slice);
        Tiles::go_to(tile);
    }
};

// Whether a condition holds in any thread of a warpgroup. All of them call it together, with a barrier of their own.
DEVICE bool warpgroup_any(int barrier, bool mine) {
    unsigned any;
    asm volatile("{\n.reg .pred p, q;\nsetp.ne.u32 p, %1, 0;\nbar.red.or.pred q, %2, 128, p;\nselp.u32 %0, 1, 0, q;\n}"
                 : "=r"(any) : "r"((unsigned)mine), "r"(barrier) : "memory");
    return any != 0;
}

// Adds up the sums of a tile over its slices. A warpgroup leaves its sums in device memory, in the order of its registers.
// The one that comes last adds up all, in the order of the slices, and returns true. Device memory has room for all slices
// of all tiles, and a counter for each tile, which is zero again at the end.
DEVICE bool add_tile_slices(float (&sums)[BLOCKS_M][TILE_N / 2], void *memory, unsigned *counters, const SlicedTiles &tiles) {
    static_assert(TURNS > 1 && CLUSTER == 1, "a warpgroup has a tile of its own");
    constexpr int QUADS = BLOCKS_M * TILE_N / 8, TOGETHER = 16; // of a thread, and how many it reads at once
    static_assert(QUADS % TOGETHER == 0, "whole rounds");
    const int barrier = threadIdx.x / 128, thread = threadIdx.x % 128;
    Vec<float, 4> *const parts = reinterpret_cast<Vec<float, 4> *>(memory) + (long long)tiles.tile * tiles.slices * QUADS * 128 + thread;
    Vec<float, 4> *const own = parts + tiles.slice * QUADS * 128;
#pragma unroll
    for (int q = 0; q < QUADS; ++q) {
        Vec<float, 4> x;
#pragma unroll
        for (int v = 0; v < 4; ++v) x.v[v] = sums[q / (TILE_N / 8)][q % (TILE_N / 8) * 4 + v];
        own[q * 128] = x;
    }
    named_sync(barrier, 128); // all threads have written; the release below covers that
    bool last = false;
    if (thread == 0) {
        unsigned taken;
        asm volatile("atom.release.gpu.global.inc.u32 %0, [%1], %2;" : "=r"(taken) : "l"(counters + tiles.tile), "r"(tiles.slices - 1) : "memory");
        last = taken == tiles.slices - 1;
        if (last) asm volatile("fence.acq_rel.gpu;" ::: "memory");
    }
    if (!warpgroup_any(barrier, last)) return false;
#pragma unroll 1
    for (int slice = 0; slice < tiles.slices; ++slice) {
        const Vec<float, 4> *const from = parts + slice * QUADS * 128;
#pragma unroll
        for (int first = 0; first < QUADS; first += TOGETHER) {
            Vec<float, 4> x[TOGETHER];
#pragma unroll
            for (int q = 0; q < TOGETHER; ++q) x[q] = fresh(from + (first + q) * 128);
#pragma unroll
            for (int q = 0; q < TOGETHER; ++q)
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                    float &sum = sums[(first + q) / (TILE_N / 8)][(first + q) % (TILE_N / 8) * 4 + v];
                    sum = (slice > 0 ? sum : 0.0f) + x[q].v[v];
                }
        }
    }
    return true;
}
