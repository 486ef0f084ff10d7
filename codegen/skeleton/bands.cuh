
// --- tiles that are copied as they lie in memory ------------------------------------

// Copies the first bytes of 16, and zeros for the others.
DEVICE void copy_part(void *to, const void *from, int bytes) {
    const unsigned at = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(bytes) : "memory");
}

// A tile of an operand whose lines are PITCH elements apart, from element SKIP on. Lines go along the sum, of COLUMNS
// columns, or along the rows. Lines begin anywhere, so threads read their elements one or two at a time.
template <typename T, bool ALONG_K, int COLUMNS, int PITCH, int SKIP, int LENGTH> struct BandTile {
    alignas(16) T at[LENGTH];
    // Copies the first n elements, and zeros behind them.
    DEVICE void copy(const T *from, int n) {
#pragma unroll 4
        for (int piece = threadIdx.x; piece < LENGTH / 8; piece += THREADS) {
            const int bytes = min(max(n - 8 * piece, 0), 8) * (int)sizeof(T);
            copy_part(&at[8 * piece], from + (bytes > 0 ? 8 * piece : 0), bytes);
        }
    }
    // Two neighbours along the sum, with zeros behind its columns.
    DEVICE unsigned pair(int row, int k) const {
        const unsigned short *const first = reinterpret_cast<const unsigned short *>(&at[SKIP + (ALONG_K ? row * PITCH + k : k * PITCH + row)]);
        if (k >= COLUMNS) return 0;
        if constexpr (ALONG_K && PITCH % 2 == 0 && SKIP % 2 == 0) {
            const unsigned both = *reinterpret_cast<const unsigned *>(first);
            return k + 1 < COLUMNS ? both : both & 0xffffu;
        } else {
            return first[0] | (k + 1 < COLUMNS ? (unsigned)first[ALONG_K ? 1 : PITCH] << 16 : 0u);
        }
    }
};

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
