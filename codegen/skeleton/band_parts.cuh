
// Parts of tiles some of which are bands.
template <typename T, int M, int N> struct BandParts : HalfParts<T, M, N> {
    using Halves = HalfParts<T, M, N>;
    using Halves::FRAGMENTS_M, Halves::FRAGMENTS_N, Halves::sums;

    template <class A, class B> DEVICE void step(const A &a, const B &b) {
        const int m = Halves::first_m(), n = Halves::first_n();
        constexpr int TOGETHER = TILE_K <= 64 ? TILE_K / 16 : 2; // steps whose operands registers hold
#pragma unroll TOGETHER
        for (int k = 0; k < TILE_K; k += 16) {
            unsigned x[FRAGMENTS_M][4], y[FRAGMENTS_N / 2][4];
#pragma unroll
            for (int i = 0; i < FRAGMENTS_M; ++i) left(x[i], a, m + 16 * i, k);
#pragma unroll
            for (int j = 0; j < FRAGMENTS_N / 2; ++j) right(y[j], b, n + 16 * j, k);
#pragma unroll
            for (int i = 0; i < FRAGMENTS_M; ++i)
#pragma unroll
                for (int j = 0; j < FRAGMENTS_N; ++j) Halves::multiply(sums[i][j], x[i], &y[j / 2][j % 2 * 2], T{});
        }
    }
    template <int ROWS, bool K_INNER, int PADDING> static DEVICE void left(unsigned (&r)[4], const OperandTile<T, ROWS, K_INNER, PADDING> &a, int m, int k) {
        const int l = threadIdx.x % 32;
        if constexpr (K_INNER) ldmatrix(r, a.slot(m + l % 16, k + l / 16 * 8));
        else ldmatrix_transposed(r, a.slot(m + l / 8 % 2 * 8, k + l % 8 + l / 16 * 8));
    }
    template <int ROWS, bool K_INNER, int PADDING> static DEVICE void right(unsigned (&r)[4], const OperandTile<T, ROWS, K_INNER, PADDING> &b, int n, int k) {
        const int l = threadIdx.x % 32;
        if constexpr (K_INNER) ldmatrix(r, b.slot(n + l % 8 + l / 16 * 8, k + l / 8 % 2 * 8));
        else ldmatrix_transposed(r, b.slot(n + l / 16 * 8, k + l % 8 + l / 8 % 2 * 8));
    }
    template <bool ALONG_K, int COLUMNS, int PITCH, int SKIP, int LENGTH>
    static DEVICE void left(unsigned (&r)[4], const BandTile<T, ALONG_K, COLUMNS, PITCH, SKIP, LENGTH> &a, int m, int k) {
        const int l = threadIdx.x % 32;
#pragma unroll
        for (int i = 0; i < 4; ++i) r[i] = a.pair(m + l / 4 + i % 2 * 8, k + l % 4 * 2 + i / 2 * 8);
    }
    template <bool ALONG_K, int COLUMNS, int PITCH, int SKIP, int LENGTH>
    static DEVICE void right(unsigned (&r)[4], const BandTile<T, ALONG_K, COLUMNS, PITCH, SKIP, LENGTH> &b, int n, int k) {
        const int l = threadIdx.x % 32;
#pragma unroll
        for (int i = 0; i < 4; ++i) r[i] = b.pair(n + l / 4 + i / 2 * 8, k + l % 4 * 2 + i % 2 * 8);
    }
};
