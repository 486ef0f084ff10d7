
// --- products of windows from a halo, in multiply-adds ------------------------------

// Each thread has PART_M rows of weights, and PART_N places of the tile that lie 32 apart: the
// threads of a warp read neighbours. Places says where the window of a place begins in the planes,
// and taps where each of its elements is from there.
template <typename T, class Places> struct HaloFMA {
    static constexpr int QUAD = 16 / sizeof(T), SPAN = 32 * PART_N; // elements of a wide read, places of a warp
    T sums[PART_M][PART_N] = {};

    static DEVICE int first_m() { return (int)threadIdx.x / 32 / (TILE_N / SPAN) * PART_M; }
    static DEVICE int first_n() { return (int)threadIdx.x / 32 % (TILE_N / SPAN) * SPAN + (int)threadIdx.x % 32; }

    template <class A> DEVICE void step(const A &a, const T *planes, const int *taps) {
        const int m = first_m();
        const T *const window = planes + Places::at(first_n());
#pragma unroll 4
        for (int k = 0; k < COLUMNS; ++k) {
            Vec<T, QUAD> x[PART_M / QUAD];
            T y[PART_N];
            const T *const at = window + taps[k];
#pragma unroll
            for (int q = 0; q < PART_M / QUAD; ++q) x[q] = *reinterpret_cast<const Vec<T, QUAD> *>(a.slot(m + q * QUAD, k));
#pragma unroll
            for (int j = 0; j < PART_N; ++j) y[j] = at[Places::at(32 * j)];
#pragma unroll
            for (int i = 0; i < PART_M; ++i)
#pragma unroll
                for (int j = 0; j < PART_N; ++j) sums[i][j] += x[i / QUAD].v[i % QUAD] * y[j];
        }
    }
    template <class F> DEVICE void each(F f) const {
#pragma unroll
        for (int i = 0; i < PART_M; ++i)
#pragma unroll
            for (int j = 0; j < PART_N; ++j) f(first_m() + i, first_n() + 32 * j, sums[i][j]);
    }
};
