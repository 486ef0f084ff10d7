
// The tensor cores multiply in f64: each warp has PART_M x PART_N of a tile, in fragments of 16 x 8 over eight columns.
// Devices before compute capability 9.0 multiply quarters of such a fragment.
DEVICE void multiply_quarter(double &d0, double &d1, double a, double b) {
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};" : "+d"(d0), "+d"(d1) : "d"(a), "d"(b));
}
DEVICE void multiply(double (&d)[4], const double (&a)[4], const double (&b)[2]) {
#if __CUDA_ARCH__ >= 900
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3]) : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#else
    multiply_quarter(d[0], d[1], a[0], b[0]);
    multiply_quarter(d[2], d[3], a[1], b[0]);
    multiply_quarter(d[0], d[1], a[2], b[1]);
    multiply_quarter(d[2], d[3], a[3], b[1]);
#endif
}

template <int M, int N> struct DoubleParts {
    static constexpr int WARPS_N = TILE_N / N, FRAGMENTS_M = M / 16, FRAGMENTS_N = N / 8;
    double sums[FRAGMENTS_M][FRAGMENTS_N][4] = {};

    static DEVICE int first_m() { return (int)threadIdx.x / 32 / WARPS_N * M + (int)threadIdx.x % 32 / 4; }
    static DEVICE int first_n() { return (int)threadIdx.x / 32 % WARPS_N * N; }

    template <class A, class B> DEVICE void step(const A &a, const B &b) {
        const int m = first_m(), n = first_n() + (int)threadIdx.x % 32 / 4, column = threadIdx.x % 4;
#pragma unroll
        for (int k = 0; k < TILE_K; k += 8) {
            double x[FRAGMENTS_M][4], y[FRAGMENTS_N][2];
#pragma unroll
            for (int i = 0; i < FRAGMENTS_M; ++i)
#pragma unroll
                for (int r = 0; r < 4; ++r) x[i][r] = *a.slot(m + 16 * i + r % 2 * 8, k + column + r / 2 * 4);
#pragma unroll
            for (int j = 0; j < FRAGMENTS_N; ++j)
#pragma unroll
                for (int r = 0; r < 2; ++r) y[j][r] = *b.slot(n + 8 * j, k + column + 4 * r);
#pragma unroll
            for (int i = 0; i < FRAGMENTS_M; ++i)
#pragma unroll
                for (int j = 0; j < FRAGMENTS_N; ++j) multiply(sums[i][j], x[i], y[j]);
        }
    }
    template <class F> DEVICE void each(F f) const {
        const int n = first_n() + threadIdx.x % 4 * 2;
#pragma unroll
        for (int i = 0; i < FRAGMENTS_M; ++i)
#pragma unroll
            for (int j = 0; j < FRAGMENTS_N; ++j)
#pragma unroll
                for (int part = 0; part < 4; ++part) f(first_m() + 16 * i + part / 2 * 8, n + 8 * j + part % 2, sums[i][j][part]);
    }
};
