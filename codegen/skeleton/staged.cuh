
// --- rows of a block through shared memory ---------------------------------------

// Copies n elements of neighbouring rows, 16 bytes an access. A block has a multiple of 16 rows, so its rows begin at a
// multiple of 16 bytes. All accesses of a thread are under way at once.
template <typename T> constexpr int ROW_LANES = 16 / sizeof(T);
template <typename T> constexpr int ROW_ROUNDS = (ITEMS * VECTOR * (int)sizeof(T) + 15) / 16;

template <typename T> DEVICE void rows_in(T *rows, const T *from, int n, unsigned long long policy) {
    constexpr int LANES = ROW_LANES<T>;
    Vec<T, LANES> x[ROW_ROUNDS<T>];
#pragma unroll
    for (int k = 0; k < ROW_ROUNDS<T>; ++k) {
        const int at = (k * THREADS + threadIdx.x) * LANES;
        if (at + LANES <= n) x[k] = load_under<LANES>(from + at, LANES, policy);
    }
#pragma unroll
    for (int k = 0; k < ROW_ROUNDS<T>; ++k) {
        const int at = (k * THREADS + threadIdx.x) * LANES;
        if (at + LANES <= n) *reinterpret_cast<Vec<T, LANES> *>(rows + at) = x[k];
        else for (int i = at; i < n; ++i) rows[i] = from[i];
    }
}

template <typename T> DEVICE void rows_out(T *to, const T *rows, int n) {
    constexpr int LANES = ROW_LANES<T>;
#pragma unroll
    for (int k = 0; k < ROW_ROUNDS<T>; ++k) {
        const int at = (k * THREADS + threadIdx.x) * LANES;
        if (at + LANES <= n) *reinterpret_cast<Vec<T, LANES> *>(to + at) = *reinterpret_cast<const Vec<T, LANES> *>(rows + at);
        else for (int i = at; i < n; ++i) to[i] = rows[i];
    }
}
