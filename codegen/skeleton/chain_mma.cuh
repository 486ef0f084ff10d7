
// --- chained products through mma.sync ----------------------------------------------

// The scores of a warp's 16 rows and a tile of keys, in the layout of accumulators.
template <typename T, typename Rows, typename Keys>
DEVICE void scores_of(float (&s)[TILE_N / 2], const Rows &rows, const Keys &keys, int warp_m) {
#pragma unroll
    for (int k = 0; k < TILE_K; k += 16) {
        unsigned q[4];
        rows.left(q, warp_m, k);
#pragma unroll
        for (int j = 0; j < TILE_N / 8; j += 2) {
            unsigned b[4];
            keys.right(b, 8 * j, k);
            multiply(fragment(s, j), q, b[0], b[1], T{});
            multiply(fragment(s, j + 1), q, b[2], b[3], T{});
        }
    }
}
// Adds the product of weights and a tile of values.
template <typename T, typename Values>
DEVICE void add_weighted(float (&acc)[TILE_V / 2], const float (&s)[TILE_N / 2], const Values &values) {
    unsigned weights[TILE_N / 4];
    pack_weights<T>(weights, s);
#pragma unroll
    for (int k = 0; k < TILE_N / 8; k += 2) {
        const unsigned(&w)[4] = reinterpret_cast<const unsigned(&)[4]>(weights[2 * k]);
#pragma unroll
        for (int j = 0; j < TILE_V / 8; j += 2) {
            unsigned b[4];
            values.right_across(b, 8 * j, 8 * k);
            multiply(fragment(acc, j), w, b[0], b[1], T{});
            multiply(fragment(acc, j + 1), w, b[2], b[3], T{});
        }
    }
}
