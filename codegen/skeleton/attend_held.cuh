
// --- queries in registers -----------------------------------------------------------

// Starts the product of 64 queries, whose first slabs are in registers, and a tile of keys.
template <typename T, int N> DEVICE void scores_start(float (&s)[TILE_N / 2], const unsigned (&held)[N][4], unsigned queries, unsigned keys) {
    const unsigned long long q = descriptor_k(queries), k = descriptor_k(keys);
#pragma unroll
    for (int d = 0; d < TILE_K; d += 16) {
        const unsigned long long key = descriptor_step(k, d / 64 * TILE_N * LINE + d % 64 * 2);
        if (d / 16 < N) wgmma<0>(s, held[d / 16 < N ? d / 16 : 0], key, d > 0, T{});
        else wgmma<0, 0>(s, descriptor_step(q, d / 64 * TILE_M * LINE + d % 64 * 2), key, d > 0, T{});
    }
    wgmma_commit();
}
// Reads the first slabs of a warpgroup's queries as left operands, one for each 16 of the depth.
template <int N> DEVICE void hold_queries(unsigned (&held)[N][4], unsigned queries) {
    const int lane = threadIdx.x % 32, row = threadIdx.x / 32 % 4 * 16 + lane % 16;
#pragma unroll
    for (int k = 0; k < N; ++k) {
        const unsigned at = queries + k / 4 * TILE_M * LINE + swizzled(row * LINE + k % 4 * 32 + lane / 16 * 16);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(held[k][0]), "=r"(held[k][1]), "=r"(held[k][2]), "=r"(held[k][3]) : "r"(at));
    }
}
