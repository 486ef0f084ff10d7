
// --- products of rows in shared memory ------------------------------------------------

// Each thread multiplies PART_M x PART_N of a tile, over the columns of its group, four at a time. A warp has a part
// of the tile. The rows of its lanes are interleaved, so that each read takes neighbouring rows of the left operand and
// one line of the right one.
template <typename T> struct RowParts {
    static constexpr int QUAD = 16 / sizeof(T), LANES_M = 4, LANES_N = 8;
    static constexpr int WARPS_N = TILE_N / (LANES_N * PART_N), WARPS = TILE_M / (LANES_M * PART_M) * WARPS_N;
    static constexpr int GROUPS = THREADS / 32 / WARPS, STEPS = (TILE_K + QUAD * GROUPS - 1) / (QUAD * GROUPS);
    static_assert(PART_N == QUAD && TILE_K % QUAD == 0, "vectors");
    T sums[PART_M][PART_N] = {};

    static DEVICE int group() { return (int)threadIdx.x / 32 / WARPS; }
    static DEVICE int first_m() { return (int)threadIdx.x / 32 % WARPS / WARPS_N * (LANES_M * PART_M) + (int)threadIdx.x % 32 / LANES_N; }
    static DEVICE int first_n() { return (int)threadIdx.x / 32 % WARPS_N * (LANES_N * PART_N) + (int)threadIdx.x % LANES_N * PART_N; }

    template <class B> DEVICE void multiply(const T *rows, const B &b) {
        const int m = first_m(), n = first_n();
#pragma unroll 2
        for (int step = 0; step < STEPS; ++step) {
            const int k = (step * GROUPS + group()) * QUAD;
            if (TILE_K % (QUAD * GROUPS) != 0 && k >= TILE_K) break;
            Vec<T, QUAD> x[PART_M], y[QUAD];
#pragma unroll
            for (int i = 0; i < PART_M; ++i) x[i] = *reinterpret_cast<const Vec<T, QUAD> *>(rows + (m + i * LANES_M) * ROW_WIDTH + k);
#pragma unroll
            for (int q = 0; q < QUAD; ++q) y[q] = *reinterpret_cast<const Vec<T, QUAD> *>(b.slot(n, k + q));
#pragma unroll
            for (int q = 0; q < QUAD; ++q)
#pragma unroll
                for (int i = 0; i < PART_M; ++i)
#pragma unroll
                    for (int j = 0; j < PART_N; ++j) sums[i][j] += x[i].v[q] * y[q].v[j];
        }
    }
    template <bool ALONG_N> DEVICE void share(SumTile<T, ALONG_N> &to) const {
        const int m = first_m(), n = first_n();
#pragma unroll
        for (int i = 0; i < PART_M; ++i) {
            if constexpr (ALONG_N) {
                *reinterpret_cast<Vec<T, QUAD> *>(&to.at[m + i * LANES_M][n]) = packed(sums[i]);
            } else {
#pragma unroll
                for (int j = 0; j < PART_N; ++j) to.put(m + i * LANES_M, n + j, sums[i][j]);
            }
        }
    }
};
