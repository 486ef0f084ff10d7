
// --- products of windows from a halo ------------------------------------------------

// Multiplication by the tensor cores, each warp M x N of a tile, where the right
// operand is read from planes in shared memory. Places says where the window of a
// column of the tile begins, and taps where each of its elements is from there.
DEVICE unsigned halo_bits(bf16 x) { return x.bits; }
DEVICE unsigned halo_bits(f16 x) { return x.bits; }
DEVICE unsigned halo_bits(float x) { return to_tf32(__float_as_uint(x)); }

template <typename T, int M, int N, class Places> struct HaloParts : WarpParts<M, N> {
    using Parts = WarpParts<M, N>;
    using Parts::FRAGMENTS_M, Parts::FRAGMENTS_N, Parts::sums;
    static constexpr int PAIR = 4 / sizeof(T), STEP = 8 * PAIR; // elements of a register, columns of an instruction

    // Columns beyond the last have zeros in both operands.
    static DEVICE unsigned element(const T *window, int tap, int k, bool last) { return !last || k < COLUMNS ? halo_bits(window[tap]) : 0; }

    template <class A> DEVICE void step(const A &a, const T *planes, const int *taps) {
        const int l = threadIdx.x % 32, m = Parts::first_m();
        const T *const window = planes + Places::at(Parts::first_n()) + Places::at(l / 4);
        unsigned x[2][FRAGMENTS_M][4], y[2][FRAGMENTS_N][2];
        auto fetch = [&](int step, int to) {
            const int first = step * STEP, k = first + l % 4 * PAIR;
            const bool last = first + STEP > COLUMNS;
#pragma unroll
            for (int i = 0; i < FRAGMENTS_M; ++i) left(x[to][i], a, m + 16 * i, first);
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                int tap[PAIR];
#pragma unroll
                for (int p = 0; p < PAIR; ++p) tap[p] = taps[k + 4 * PAIR * half + p];
#pragma unroll
                for (int j = 0; j < FRAGMENTS_N; ++j) {
                    const T *const at = window + Places::at(8 * j);
                    y[to][j][half] = element(at, tap[0], k + 4 * PAIR * half, last);
                    if constexpr (PAIR == 2) y[to][j][half] |= element(at, tap[1], k + 4 * PAIR * half + 1, last) << 16;
                }
            }
        };
        fetch(0, 0);
#pragma unroll
        for (int step = 0; step < TILE_K / STEP; ++step) {
            if (step + 1 < TILE_K / STEP) fetch(step + 1, (step + 1) % 2);
#pragma unroll
            for (int i = 0; i < FRAGMENTS_M; ++i)
#pragma unroll
                for (int j = 0; j < FRAGMENTS_N; ++j) multiply(sums[i][j], x[step % 2][i], y[step % 2][j]);
        }
    }
    static DEVICE void multiply(float (&d)[4], const unsigned (&a)[4], const unsigned *b) {
        if constexpr (PAIR == 2) HalfParts<T, M, N>::multiply(d, a, b, T{});
        else TF32Parts<M, N>::multiply(d, a, b);
    }
    template <class A> static DEVICE void left(unsigned (&r)[4], const A &a, int m, int k) {
        const int l = threadIdx.x % 32;
        if constexpr (PAIR == 1) {
            TF32Parts<M, N>::left(r, a, m, k);
#pragma unroll
            for (int i = 0; i < 4; ++i) r[i] = to_tf32(r[i]);
        } else if constexpr (A::INNER) {
            ldmatrix(r, a.slot(m + l % 16, k + l / 16 * 8));
        } else {
            ldmatrix_transposed(r, a.slot(m + l / 8 % 2 * 8, k + l % 8 + l / 16 * 8));
        }
    }
};
