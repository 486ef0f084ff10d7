
// --- slices of a sum, through memory ----------------------------------------------

// How many neighbouring slices are added in one round. With so many, two rounds are enough.
DEVICE INDEX slices_together(INDEX slices) {
    INDEX n = 8;
    while (n * n < slices) ++n;
    return n;
}

// Adds up the sums of a tile over its slices. The block of a slice has COUNT sums, in shared memory from `sums` on, and
// leaves them in device memory. Of a group of neighbouring slices, the block that comes last adds up all, in the order of
// the slices, and goes on to the next round, in which the groups are the slices. Returns true in the block that ends with
// the whole sum; the others are done. Device memory has room for all slices of all tiles, and a counter for each.
template <int COUNT, typename T>
DEVICE bool add_slices(T *sums, T *memory, unsigned *counters, INDEX tile, INDEX slice, INDEX slices) {
    constexpr int QUAD = 16 / sizeof(T), QUADS = COUNT / QUAD, TOGETHER = 4; // slices that are read at once
    constexpr int WIDE = THREADS > 128 ? 2 : MIN_BLOCKS > 2 ? 4 : 8; // quads of each slice that a thread has registers for
    static_assert(COUNT % QUAD == 0, "whole accesses");
    using Quad = Vec<T, QUAD>;
    Quad *const shared = reinterpret_cast<Quad *>(sums);
    Quad *const own = reinterpret_cast<Quad *>(memory) + (long long)tile * slices * QUADS;
    unsigned *counter = counters + tile * slices;
    const INDEX together = slices_together(slices);
    INDEX count = slices, at = slice, apart = 1; // how many slices this round has, the block's, and the distance of two
    __syncthreads(); // all sums are in shared memory
#pragma unroll 1
    while (count > 1) {
        Quad *const mine = own + (long long)at * apart * QUADS;
        for (int q = threadIdx.x; q < QUADS; q += THREADS) mine[q] = shared[q];
        const INDEX group = at / together, first = group * together, n = min(count - first, together);
        if (!comes_last(counter, (unsigned)group, (unsigned)n)) return false;
        const Quad *const from = own + (long long)first * apart * QUADS;
#pragma unroll 1
        for (int start = threadIdx.x; start < QUADS; start += WIDE * THREADS) {
            Quad total[WIDE] = {};
#pragma unroll 1
            for (INDEX i = 0; i < n; i += TOGETHER) {
                Quad x[TOGETHER][WIDE];
#pragma unroll
                for (int j = 0; j < TOGETHER; ++j)
#pragma unroll
                    for (int w = 0; w < WIDE; ++w)
                        if (i + j < n && start + w * THREADS < QUADS) x[j][w] = fresh(from + (i + j) * apart * QUADS + start + w * THREADS);
#pragma unroll
                for (int j = 0; j < TOGETHER; ++j)
#pragma unroll
                    for (int w = 0; w < WIDE; ++w)
#pragma unroll
                        for (int v = 0; v < QUAD; ++v)
                            if (i + j < n && start + w * THREADS < QUADS) total[w].v[v] += x[j][w].v[v];
            }
#pragma unroll
            for (int w = 0; w < WIDE; ++w)
                if (start + w * THREADS < QUADS) shared[start + w * THREADS] = total[w];
        }
        const INDEX groups = (count + together - 1) / together;
        counter += groups, count = groups, at = group, apart *= together;
    }
    __syncthreads();
    return true;
}
