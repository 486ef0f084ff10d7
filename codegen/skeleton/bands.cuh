
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
