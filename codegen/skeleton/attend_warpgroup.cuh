
// --- attention through wgmma -----------------------------------------------------

constexpr int LINE = 128; // bytes of a line of a slab: 64 elements

// Starts the product of 64 queries and a tile of keys; both lie in slabs along the
// depth, of TILE_M and TILE_N lines.
template <typename T> DEVICE void scores_start(float (&s)[TILE_N / 2], unsigned queries, unsigned keys) {
    const unsigned long long q = descriptor_k(queries), k = descriptor_k(keys);
#pragma unroll
    for (int d = 0; d < TILE_K; d += 16)
        wgmma<0, 0>(s, descriptor_step(q, d / 64 * TILE_M * LINE + d % 64 * 2), descriptor_step(k, d / 64 * TILE_N * LINE + d % 64 * 2), d > 0, T{});
    wgmma_commit();
}
// Starts adding the product of weights and a tile of values, in slabs along the width.
template <typename T> DEVICE void values_start(float (&acc)[TILE_V / 2], const unsigned (&w)[TILE_N / 4], unsigned values) {
    const unsigned long long v = descriptor_mn(values, TILE_N * LINE);
#pragma unroll
    for (int k = 0; k < TILE_N; k += 16) wgmma<1>(acc, reinterpret_cast<const unsigned(&)[4]>(w[k / 4]), descriptor_step(v, k * LINE), true, T{});
    wgmma_commit();
}
