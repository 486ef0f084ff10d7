
// --- tensor core tiles ---------------------------------------------------------

// Four 8x8 matrices of 16-bit elements from shared memory, as mma.sync wants them.
DEVICE void load_matrices(unsigned (&r)[4], const void *p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"((unsigned)__cvta_generic_to_shared(p)));
}
DEVICE void load_matrices_transposed(unsigned (&r)[4], const void *p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"((unsigned)__cvta_generic_to_shared(p)));
}
// Copies 16 bytes from memory to shared memory without a register, or zeros.
DEVICE void copy_async(void *to, const void *from, bool inside) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from), "r"(inside ? 16 : 0) : "memory");
}
DEVICE void copies_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> DEVICE void copies_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }

// d += a * b for a 16x8 tile over 16 columns.
DEVICE void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1, bf16) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
DEVICE void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1, f16) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// A tile of an operand: ROWS of the operand by TILE_K columns, in the order memory
// has it. Eight elements of padding a line keep ldmatrix free of bank conflicts.
template <typename T, int ROWS, bool K_LAST> struct Tile {
    static constexpr int LINES = K_LAST ? ROWS : TILE_K, WIDTH = K_LAST ? TILE_K : ROWS, CHUNKS = LINES * WIDTH / 8 / THREADS;
    alignas(16) T at[LINES][WIDTH + 8];

    // The line and the first element of the thread's chunk s of eight.
    static DEVICE int line(int s) { return (threadIdx.x + s * THREADS) / (WIDTH / 8); }
    static DEVICE int first(int s) { return (threadIdx.x + s * THREADS) % (WIDTH / 8) * 8; }
    DEVICE T *slot(int s) { return &at[line(s)][first(s)]; }
    DEVICE void put(const Vec<T, 8> (&chunk)[CHUNKS]) {
#pragma unroll
        for (int s = 0; s < CHUNKS; ++s) *reinterpret_cast<Vec<T, 8> *>(slot(s)) = chunk[s];
    }
    // The fragment of rows m..m+15 and columns k..k+15 as the left operand.
    DEVICE void left(unsigned (&r)[4], int m, int k) const {
        const int l = threadIdx.x % 32;
        if constexpr (K_LAST) load_matrices(r, &at[m + l % 16][k + l / 16 * 8]);
        else load_matrices_transposed(r, &at[k + l % 8 + l / 16 * 8][m + l / 8 % 2 * 8]);
    }
    // Two fragments of eight rows each, n..n+15, as the right operand.
    DEVICE void right(unsigned (&r)[4], int n, int k) const {
        const int l = threadIdx.x % 32;
        if constexpr (K_LAST) load_matrices(r, &at[n + l % 8 + l / 16 * 8][k + l / 8 % 2 * 8]);
        else load_matrices_transposed(r, &at[k + l % 8 + l / 8 % 2 * 8][n + l / 16 * 8]);
    }
};

// sums += the warp's rows of the left tile times its rows of the right one, over 16
// columns from k on.
template <int M, int N, typename T, int ROWS, bool K_LAST>
DEVICE void multiply_columns(float (&sums)[M][N][4], const unsigned (&a)[M][4], const Tile<T, ROWS, K_LAST> &right, int first, int k) {
    unsigned b[N / 2][4];
#pragma unroll
    for (int j = 0; j < N / 2; ++j) right.right(b[j], first + 16 * j, k);
#pragma unroll
    for (int i = 0; i < M; ++i)
#pragma unroll
        for (int j = 0; j < N; ++j) multiply(sums[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1], T{});
}
