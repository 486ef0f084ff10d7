
// --- products of integers in small tiles ---------------------------------------------

DEVICE void read_peer(long long (&x)[1], unsigned at) { asm volatile("ld.shared::cluster.s64 %0, [%1];" : "=l"(x[0]) : "r"(at) : "memory"); }
DEVICE void read_peer(long long (&x)[2], unsigned at) { asm volatile("ld.shared::cluster.v2.s64 {%0, %1}, [%2];" : "=l"(x[0]), "=l"(x[1]) : "r"(at) : "memory"); }

// Each thread multiplies PART_M x PART_N of a tile in the type of the elements, where products wrap, and adds them up in
// Total. Groups of 16 bytes of neighbours are TILE / groups apart, so that a warp reads whole lines.
template <typename T, typename Total> struct IntegerParts {
    static constexpr int QUAD = 16 / sizeof(T), QUADS_M = PART_M / QUAD, QUADS_N = PART_N / QUAD;
    static constexpr int THREADS_M = TILE_M / PART_M, THREADS_N = TILE_N / PART_N;
    static constexpr int LANES_N = THREADS_N < 8 ? THREADS_N : 8, LANES_M = 32 / LANES_N, WARPS_N = THREADS_N / LANES_N;
    Total sums[PART_M][PART_N] = {};

    static DEVICE int first_m() { return ((int)threadIdx.x / 32 / WARPS_N * LANES_M + (int)threadIdx.x % 32 / LANES_N) * QUAD; }
    static DEVICE int first_n() { return ((int)threadIdx.x / 32 % WARPS_N * LANES_N + (int)threadIdx.x % LANES_N) * QUAD; }

    template <class A, class B> DEVICE void step(const A &a, const B &b) {
        const int m = first_m(), n = first_n();
#pragma unroll 4
        for (int k = 0; k < TILE_K; ++k) {
            Vec<T, QUAD> x[QUADS_M], y[QUADS_N];
#pragma unroll
            for (int q = 0; q < QUADS_M; ++q) x[q] = *reinterpret_cast<const Vec<T, QUAD> *>(a.slot(m + q * THREADS_M * QUAD, k));
#pragma unroll
            for (int q = 0; q < QUADS_N; ++q) y[q] = *reinterpret_cast<const Vec<T, QUAD> *>(b.slot(n + q * THREADS_N * QUAD, k));
#pragma unroll
            for (int i = 0; i < PART_M; ++i)
#pragma unroll
                for (int j = 0; j < PART_N; ++j) sums[i][j] += (Total)mul_(x[i / QUAD].v[i % QUAD], y[j / QUAD].v[j % QUAD]);
        }
    }
    template <class F> DEVICE void each(F f) const {
#pragma unroll
        for (int i = 0; i < PART_M; ++i)
#pragma unroll
            for (int j = 0; j < PART_N; ++j)
                f(first_m() + i / QUAD * THREADS_M * QUAD + i % QUAD, first_n() + j / QUAD * THREADS_N * QUAD + j % QUAD, sums[i][j]);
    }
};
