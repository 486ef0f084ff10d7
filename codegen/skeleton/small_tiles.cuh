
// --- products of small tiles, split over the blocks of a cluster -------------------

// Copies BYTES (4, 8 or 16) from memory to shared memory without a register, or zeros.
template <int BYTES> DEVICE void copy_piece(void *to, const void *from, bool inside) {
    const unsigned at = (unsigned)__cvta_generic_to_shared(to);
    if constexpr (BYTES == 16) asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(inside ? 16 : 0) : "memory");
    else asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(at), "l"(from), "n"(BYTES), "r"(inside ? BYTES : 0) : "memory");
}
DEVICE void pieces_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> DEVICE void pieces_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }

// A tile of an operand: ROWS rows by TILE_K columns. K_INNER says whether neighbours in the tile are neighbours along K.
template <typename T, int ROWS, bool K_INNER, int PADDING> struct OperandTile {
    static constexpr bool INNER = K_INNER;
    static constexpr int LINES = K_INNER ? ROWS : TILE_K, WIDTH = (K_INNER ? TILE_K : ROWS) + PADDING;
    alignas(16) T at[LINES][WIDTH];
    DEVICE T *slot(int row, int k) { return K_INNER ? &at[row][k] : &at[k][row]; }
    DEVICE const T *slot(int row, int k) const { return K_INNER ? &at[row][k] : &at[k][row]; }
    // Neighbours from (row, k) on, along K or along the rows.
    template <int N, bool ALONG_K> DEVICE void put(int row, int k, const Vec<T, N> &x) {
        if constexpr (ALONG_K == K_INNER) {
            *reinterpret_cast<Vec<T, N> *>(slot(row, k)) = x;
        } else {
#pragma unroll
            for (int v = 0; v < N; ++v) *slot(ALONG_K ? row : row + v, ALONG_K ? k + v : k) = x.v[v];
        }
    }
};

// Values in the type that a tile holds.
template <typename T, int N> DEVICE Vec<T, N> packed(const T (&x)[N]) {
    Vec<T, N> r;
#pragma unroll
    for (int v = 0; v < N; ++v) r.v[v] = x[v];
    return r;
}
template <typename T, int N> DEVICE Vec<T, N> packed(const float (&x)[N], T) {
    union { unsigned u[N / 2]; Vec<T, N> r; } both;
    pack_pairs(both.u, x, T{});
    return both.r;
}

// Each thread multiplies PART_M x PART_N of a tile, in groups of 16 bytes of neighbours. Groups are TILE / groups
// apart, so that a warp reads whole lines.
template <typename T> struct FMAParts {
    static constexpr int QUAD = 16 / sizeof(T), QUADS_M = PART_M / QUAD, QUADS_N = PART_N / QUAD;
    static constexpr int THREADS_M = TILE_M / PART_M, THREADS_N = TILE_N / PART_N;
    static constexpr int LANES_N = THREADS_N < 8 ? THREADS_N : THREADS_M < 4 ? 32 / THREADS_M : 8, LANES_M = 32 / LANES_N, WARPS_N = THREADS_N / LANES_N;
    T sums[PART_M][PART_N] = {};

    static DEVICE int first_m() { return ((int)threadIdx.x / 32 / WARPS_N * LANES_M + (int)threadIdx.x % 32 / LANES_N) * QUAD; }
    static DEVICE int first_n() { return ((int)threadIdx.x / 32 % WARPS_N * LANES_N + (int)threadIdx.x % LANES_N) * QUAD; }

    template <class A, class B> DEVICE void step(const A &a, const B &b) {
        Vec<T, QUAD> x[2][QUADS_M], y[2][QUADS_N];
        const int m = first_m(), n = first_n();
        auto fetch = [&](int k) {
#pragma unroll
            for (int q = 0; q < QUADS_M; ++q) x[k % 2][q] = *reinterpret_cast<const Vec<T, QUAD> *>(a.slot(m + q * THREADS_M * QUAD, k));
#pragma unroll
            for (int q = 0; q < QUADS_N; ++q) y[k % 2][q] = *reinterpret_cast<const Vec<T, QUAD> *>(b.slot(n + q * THREADS_N * QUAD, k));
        };
        fetch(0);
#pragma unroll
        for (int k = 0; k < TILE_K; ++k) {
            if (k + 1 < TILE_K) fetch(k + 1);
#pragma unroll
            for (int i = 0; i < PART_M; ++i)
#pragma unroll
                for (int step = 0; step < PART_N; ++step) { // to and fro, so that each multiply-add shares an operand with the one before
                    const int j = i % 2 ? PART_N - 1 - step : step;
                    sums[i][j] += x[k % 2][i / QUAD].v[i % QUAD] * y[k % 2][j / QUAD].v[j % QUAD];
                }
        }
    }
    // The totals over runs; a thread's lie THREADS apart.
    static DEVICE void clear(T *totals) {
#pragma unroll
        for (int i = 0; i < PART_M * PART_N; ++i) totals[i * THREADS + threadIdx.x] = 0;
    }
    // Adds the sums to the totals, and sets the sums to zero. Sums are never stored themselves, and totals are stored one
    // by one: the compiler puts registers that are stored together side by side, and then the multiply-adds have
    // conflicts in the banks of the register file.
    DEVICE void drain(T *totals) {
#pragma unroll
        for (int i = 0; i < PART_M; ++i)
#pragma unroll
            for (int j = 0; j < PART_N; ++j) {
                totals[(i * PART_N + j) * THREADS + threadIdx.x] += sums[i][j];
                sums[i][j] = 0;
            }
    }
    // Where the total of an element of the tile is.
    static DEVICE int slot(int m, int n) {
        const int quad_m = m / QUAD, quad_n = n / QUAD, i = quad_m / THREADS_M * QUAD + m % QUAD, j = quad_n / THREADS_N * QUAD + n % QUAD;
        const int at_m = quad_m % THREADS_M, at_n = quad_n % THREADS_N;
        const int warp = at_m / LANES_M * WARPS_N + at_n / LANES_N, lane = at_m % LANES_M * LANES_N + at_n % LANES_N;
        return (i * PART_N + j) * THREADS + warp * 32 + lane;
    }
    template <class F> DEVICE void each(F f) const {
#pragma unroll
        for (int i = 0; i < PART_M; ++i)
#pragma unroll
            for (int j = 0; j < PART_N; ++j)
                f(first_m() + i / QUAD * THREADS_M * QUAD + i % QUAD, first_n() + j / QUAD * THREADS_N * QUAD + j % QUAD, sums[i][j]);
    }
};

// The tensor cores multiply: each warp has PART_M x PART_N of a tile, in fragments of 16 x 8.
DEVICE void ldmatrix(unsigned (&r)[4], const void *p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"((unsigned)__cvta_generic_to_shared(p)) : "memory");
}
DEVICE void ldmatrix_transposed(unsigned (&r)[4], const void *p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"((unsigned)__cvta_generic_to_shared(p)) : "memory");
}
#define MMA_SYNC(shape, types) \
    asm volatile("mma.sync.aligned." shape ".row.col.f32." types ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))

template <int M, int N> struct WarpParts {
    static constexpr int WARPS_N = TILE_N / N, FRAGMENTS_M = M / 16, FRAGMENTS_N = N / 8;
    float sums[FRAGMENTS_M][FRAGMENTS_N][4] = {};

    static DEVICE int first_m() { return (int)threadIdx.x / 32 / WARPS_N * M; }
    static DEVICE int first_n() { return (int)threadIdx.x / 32 % WARPS_N * N; }
    template <class F> DEVICE void each(F f) const {
        const int m = first_m() + threadIdx.x % 32 / 4, n = first_n() + threadIdx.x % 4 * 2;
#pragma unroll
        for (int i = 0; i < FRAGMENTS_M; ++i)
#pragma unroll
            for (int j = 0; j < FRAGMENTS_N; ++j)
#pragma unroll
                for (int part = 0; part < 4; ++part) f(m + 16 * i + part / 2 * 8, n + 8 * j + part % 2, sums[i][j][part]);
    }
};

template <typename T, int M, int N> struct HalfParts : WarpParts<M, N> {
    using Parts = WarpParts<M, N>;
    using Parts::FRAGMENTS_M, Parts::FRAGMENTS_N, Parts::sums;

    static DEVICE void multiply(float (&d)[4], const unsigned (&a)[4], const unsigned *b, bf16) { MMA_SYNC("m16n8k16", "bf16.bf16"); }
    static DEVICE void multiply(float (&d)[4], const unsigned (&a)[4], const unsigned *b, f16) { MMA_SYNC("m16n8k16", "f16.f16"); }

    template <class A, class B> DEVICE void step(const A &a, const B &b) {
        const int l = threadIdx.x % 32, m = Parts::first_m(), n = Parts::first_n();
        unsigned x[2][FRAGMENTS_M][4], y[2][FRAGMENTS_N / 2][4];
        auto fetch = [&](int k, int to) {
#pragma unroll
            for (int i = 0; i < FRAGMENTS_M; ++i) {
                if constexpr (A::INNER) ldmatrix(x[to][i], a.slot(m + 16 * i + l % 16, k + l / 16 * 8));
                else ldmatrix_transposed(x[to][i], a.slot(m + 16 * i + l / 8 % 2 * 8, k + l % 8 + l / 16 * 8));
            }
#pragma unroll
            for (int j = 0; j < FRAGMENTS_N / 2; ++j) {
                if constexpr (B::INNER) ldmatrix(y[to][j], b.slot(n + 16 * j + l % 8 + l / 16 * 8, k + l / 8 % 2 * 8));
                else ldmatrix_transposed(y[to][j], b.slot(n + 16 * j + l / 16 * 8, k + l % 8 + l / 8 % 2 * 8));
            }
        };
        fetch(0, 0);
#pragma unroll
        for (int step = 0; step < TILE_K / 16; ++step) {
            if (step + 1 < TILE_K / 16) fetch(16 * step + 16, (step + 1) % 2);
#pragma unroll
            for (int i = 0; i < FRAGMENTS_M; ++i)
#pragma unroll
                for (int j = 0; j < FRAGMENTS_N; ++j) multiply(sums[i][j], x[step % 2][i], &y[step % 2][j / 2][j % 2 * 2], T{});
        }
    }
};

// An f32 rounded to tf32, to nearest with ties away from zero. By themselves the tensor cores would truncate it.
DEVICE unsigned to_tf32(unsigned x) {
    unsigned y;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(__uint_as_float(x)));
    return y;
}

template <int M, int N> struct TF32Parts : WarpParts<M, N> {
    using Parts = WarpParts<M, N>;
    using Parts::FRAGMENTS_M, Parts::FRAGMENTS_N, Parts::sums;

    static DEVICE void multiply(float (&d)[4], const unsigned (&a)[4], const unsigned *b) { MMA_SYNC("m16n8k8", "tf32.tf32"); }

    template <class A, class B> DEVICE void step(const A &a, const B &b) {
        const int m = Parts::first_m(), n = Parts::first_n();
        unsigned x[2][FRAGMENTS_M][4], y[2][FRAGMENTS_N / 2][4];
        auto fetch = [&](int k, int to) {
#pragma unroll
            for (int i = 0; i < FRAGMENTS_M; ++i) left(x[to][i], a, m + 16 * i, k);
#pragma unroll
            for (int j = 0; j < FRAGMENTS_N / 2; ++j) right(y[to][j], b, n + 16 * j, k);
        };
        fetch(0, 0);
#pragma unroll
        for (int step = 0; step < TILE_K / 8; ++step) {
            if (step + 1 < TILE_K / 8) fetch(8 * step + 8, (step + 1) % 2);
#pragma unroll
            for (int i = 0; i < FRAGMENTS_M; ++i)
#pragma unroll
                for (int r = 0; r < 4; ++r) x[step % 2][i][r] = to_tf32(x[step % 2][i][r]);
#pragma unroll
            for (int j = 0; j < FRAGMENTS_N / 2; ++j)
#pragma unroll
                for (int r = 0; r < 4; ++r) y[step % 2][j][r] = to_tf32(y[step % 2][j][r]);
#pragma unroll
            for (int i = 0; i < FRAGMENTS_M; ++i)
#pragma unroll
                for (int j = 0; j < FRAGMENTS_N; ++j) multiply(sums[i][j], x[step % 2][i], &y[step % 2][j / 2][j % 2 * 2]);
        }
    }
    template <class X> static DEVICE void left(unsigned (&r)[4], const X &x, int m, int k) {
        const int l = threadIdx.x % 32;
        if constexpr (X::INNER) {
            ldmatrix(r, x.slot(m + l % 16, k + l / 16 * 4));
        } else {
#pragma unroll
            for (int i = 0; i < 4; ++i) r[i] = __float_as_uint(*x.slot(m + l / 4 + i % 2 * 8, k + l % 4 + i / 2 * 4));
        }
    }
    template <class X> static DEVICE void right(unsigned (&r)[4], const X &x, int n, int k) {
        const int l = threadIdx.x % 32;
        if constexpr (X::INNER) {
            ldmatrix(r, x.slot(n + l % 8 + l / 16 * 8, k + l / 8 % 2 * 4));
        } else {
#pragma unroll
            for (int i = 0; i < 4; ++i) r[i] = __float_as_uint(*x.slot(n + l / 4 + i / 2 * 8, k + l % 4 + i % 2 * 4));
        }
    }
};

// The sums of a tile in shared memory, in lines along the axis that runs along memory in the results.
template <typename T, bool ALONG_N> struct SumTile {
    static constexpr int LINES = ALONG_N ? TILE_M : TILE_N, WIDTH = ALONG_N ? TILE_N : TILE_M;
    alignas(16) T at[LINES][WIDTH + 16 / sizeof(T)];
    DEVICE void put(int m, int n, T x) {
        if constexpr (ALONG_N) at[m][n] = x;
        else at[n][m] = x;
    }
};

// What block `rank` of the cluster has at the same place in its shared memory.
DEVICE unsigned peer_address(const void *p, int rank) {
    unsigned at;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at) : "r"((unsigned)__cvta_generic_to_shared(p)), "r"(rank));
    return at;
}
DEVICE void read_peer(float (&x)[1], unsigned at) { asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(x[0]) : "r"(at) : "memory"); }
DEVICE void read_peer(double (&x)[1], unsigned at) { asm volatile("ld.shared::cluster.f64 %0, [%1];" : "=d"(x[0]) : "r"(at) : "memory"); }
DEVICE void read_peer(float (&x)[4], unsigned at) {
    asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3]) : "r"(at) : "memory");
}
DEVICE void read_peer(double (&x)[2], unsigned at) { asm volatile("ld.shared::cluster.v2.f64 {%0, %1}, [%2];" : "=d"(x[0]), "=d"(x[1]) : "r"(at) : "memory"); }

// Adds to total the N sums from p on of every block of the split, in their order.
template <int SPLIT_K, int N, typename T> DEVICE void add_splits(T (&total)[N], const T *p) {
    if constexpr (SPLIT_K == 1) {
#pragma unroll
        for (int v = 0; v < N; ++v) total[v] = p[v];
    } else {
        constexpr int QUAD = 16 / sizeof(T), WIDTH = N % QUAD == 0 ? QUAD : 1; // of one access
        T x[SPLIT_K][N / WIDTH][WIDTH]; // all reads are under way at once
#pragma unroll
        for (int split = 0; split < SPLIT_K; ++split)
#pragma unroll
            for (int v = 0; v < N; v += WIDTH) read_peer(x[split][v / WIDTH], peer_address(p + v, split));
#pragma unroll
        for (int v = 0; v < N; ++v) {
            total[v] = x[0][v / WIDTH][v % WIDTH];
#pragma unroll
            for (int split = 1; split < SPLIT_K; ++split) total[v] += x[split][v / WIDTH][v % WIDTH];
        }
    }
}

// Adds to total the N totals over runs of every block of the split, for neighbours along an axis.
template <int SPLIT_K, bool ALONG_N, class Parts, int N, typename T> DEVICE void add_totals(T (&total)[N], const T *totals, int m, int n) {
#pragma unroll
    for (int v = 0; v < N; ++v) {
        T one[1];
        add_splits<SPLIT_K>(one, totals + (ALONG_N ? Parts::slot(m, n + v) : Parts::slot(m + v, n)));
        total[v] = one[0];
    }
}
