
// A panel of queries or keys that is a band, in the place of one with padding.
template <typename T, int ROWS, int WIDTH, int COLUMNS, int PITCH, int SKIP, int LENGTH> struct BandPanel : BandTile<T, true, COLUMNS, PITCH, SKIP, LENGTH> {
    static constexpr int LINES = ROWS;
    static_assert(LENGTH < ROWS * (WIDTH + 8), "it fits that place");
    alignas(16) T unused[ROWS * (WIDTH + 8) - LENGTH];

    DEVICE void left(unsigned (&r)[4], int m, int k) const {
        const int l = threadIdx.x % 32;
#pragma unroll
        for (int i = 0; i < 4; ++i) r[i] = this->pair(m + l / 4 + i % 2 * 8, k + l % 4 * 2 + i / 2 * 8);
    }
    DEVICE void right(unsigned (&r)[4], int n, int k) const {
        const int l = threadIdx.x % 32;
#pragma unroll
        for (int i = 0; i < 4; ++i) r[i] = this->pair(n + l / 4 + i / 2 * 8, k + l % 4 * 2 + i % 2 * 8);
    }
};
