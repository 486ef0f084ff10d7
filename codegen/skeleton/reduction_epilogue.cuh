
// --- folds of a tile's sums ---------------------------------------------------------

// The sums of a thread, as rows of columns. FOLD neighbouring columns of a row are a chunk, which is folded to one
// value. COLUMNS of them are the thread's; the others belong to the other lanes of its quad and, with mma.sync, to
// other warps.
#ifdef TURNS
struct FoldRows {
    static constexpr int CHUNKS = TILE_N / FOLD, ROWS = BLOCKS_M * 2 * CHUNKS, COLUMNS = FOLD / 4;
    int top, first; // the first row, and chunk
    DEVICE FoldRows(int tile_m, int tile_n, int block_m) : top(tile_m + block_m * 64 + (int)(threadIdx.x / 32 % 4) * 16 + (int)(threadIdx.x % 32 / 4)), first(tile_n / FOLD) {}
    DEVICE int at_m(int r) const { return top + r / (2 * CHUNKS) * 64 + r / CHUNKS % 2 * 8; }
    DEVICE int chunk(int r) const { return first + r % CHUNKS; }
    static DEVICE int point(int column) { return column / 2 * 8 + threadIdx.x % 4 * 2 + column % 2; }
    static DEVICE float element(const float (&sums)[BLOCKS_M][TILE_N / 2], int r, int column) {
        return sums[r / (2 * CHUNKS)][(r % CHUNKS * (FOLD / 8) + column / 2) * 4 + r / CHUNKS % 2 * 2 + column % 2];
    }
    static DEVICE bool stores() { return threadIdx.x % 4 == 0; }
    // Folds over the lanes of a row.
    template <class R, typename T> static DEVICE void join(T (&x)[ROWS]) {
#pragma unroll
        for (int r = 0; r < ROWS; ++r) x[r] = reduce_lanes<R, 4>(x[r]);
    }
};
#else
struct FoldRows {
    static constexpr int FRAGS_M = TILE_M / 2 / 16, FRAGS_N = TILE_N / 4 / 8, ROWS = FRAGS_M * 2, COLUMNS = FRAGS_N * 2;
    int top, first;
    DEVICE FoldRows(int tile_m, int tile_n) : top(tile_m + row(0)), first(tile_n / FOLD) {}
    static DEVICE int row(int r) { return threadIdx.x / 32 % 2 * (TILE_M / 2) + r / 2 * 16 + threadIdx.x % 32 / 4 + r % 2 * 8; }
    DEVICE int at_m(int r) const { return top + r / 2 * 16 + r % 2 * 8; }
    DEVICE int chunk(int) const { return first; }
    static DEVICE int point(int column) { return threadIdx.x / 64 * (TILE_N / 4) + column / 2 * 8 + threadIdx.x % 4 * 2 + column % 2; }
    static DEVICE float element(const float (&sums)[FRAGS_M][FRAGS_N][4], int r, int column) {
        return sums[r / 2][column / 2][r % 2 * 2 + column % 2];
    }
    static DEVICE bool stores() { return threadIdx.x % 4 == 0 && threadIdx.x < 64; }
    // Folds over the lanes of a row, then over its four warps in their order.
    template <class R, typename T> static DEVICE void join(T (&x)[ROWS]) {
        __shared__ T slots[4][TILE_M];
#pragma unroll
        for (int r = 0; r < ROWS; ++r) x[r] = reduce_lanes<R, 4>(x[r]);
        __syncthreads(); // the values of the fold before have been read
        if (threadIdx.x % 4 == 0) {
#pragma unroll
            for (int r = 0; r < ROWS; ++r) slots[threadIdx.x / 64][row(r)] = x[r];
        }
        __syncthreads();
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            x[r] = slots[0][row(r)];
#pragma unroll
            for (int warp = 1; warp < 4; ++warp) x[r] = R::apply(x[r], slots[warp][row(r)]);
        }
    }
};
#endif
