
// --- attention through mma.sync --------------------------------------------------

// ROWS rows of WIDTH 16-bit elements. Eight elements of padding a row keep ldmatrix
// free of bank conflicts.
template <typename T, int ROWS, int WIDTH> struct Panel {
    static constexpr int LINES = ROWS, PER_LINE = WIDTH / 8; // chunks of 16 bytes
    alignas(16) T at[ROWS][WIDTH + 8];

    // The fragment of rows m..m+15 and columns k..k+15 as the left operand.
    DEVICE void left(unsigned (&r)[4], int m, int k) const {
        const int l = threadIdx.x % 32;
        load_matrices(r, &at[m + l % 16][k + l / 16 * 8]);
    }
    // Two fragments of eight rows each, n..n+15, as the right operand.
    DEVICE void right(unsigned (&r)[4], int n, int k) const {
        const int l = threadIdx.x % 32;
        load_matrices(r, &at[n + l % 8 + l / 16 * 8][k + l / 8 % 2 * 8]);
    }
    // The same for columns n..n+15, where the sum runs over the rows.
    DEVICE void right_across(unsigned (&r)[4], int n, int k) const {
        const int l = threadIdx.x % 32;
        load_matrices_transposed(r, &at[k + l % 8 + l / 8 % 2 * 8][n + l / 16 * 8]);
    }
};

// The accumulators of a tile that one instruction adds to.
template <int N> DEVICE float (&fragment(float (&s)[N], int j))[4] { return reinterpret_cast<float(&)[4]>(s[4 * j]); }

// Warps that have the same queries and different keys merge their states into that of the first warp, in the
// order of the keys. All threads call it.
template <int N> DEVICE void merge_warps(Stream &stream, float (&acc)[N], float scale, float *scratch) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float(*const states)[N + 4][32] = reinterpret_cast<float(*)[N + 4][32]>(scratch);
    copies_wait<0>(); // the queries may still be under way where there were no keys
    __syncthreads();  // no thread reads the panels any more
#pragma unroll
    for (int i = 0; i < N; ++i) states[warp][i][lane] = acc[i];
#pragma unroll
    for (int h = 0; h < 2; ++h) states[warp][N + h][lane] = stream.top[h], states[warp][N + 2 + h][lane] = stream.sum[h];
    __syncthreads();
    for (int other = warp + WARPS_M; other < WARPS_M * WARPS_N; other += WARPS_M) {
        float own[2], theirs[2];
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const float top = states[other][N + h][lane], most = fmaxf(stream.top[h], top);
            const float base = most == -infinity() ? 0.0f : most;
            own[h] = exp2_fast((stream.top[h] - base) * scale);
            theirs[h] = exp2_fast((top - base) * scale);
            stream.top[h] = most;
            stream.sum[h] = stream.sum[h] * own[h] + states[other][N + 2 + h][lane] * theirs[h];
        }
#pragma unroll
        for (int i = 0; i < N; ++i) acc[i] = acc[i] * own[i / 2 % 2] + states[other][i][lane] * theirs[i / 2 % 2];
    }
}
