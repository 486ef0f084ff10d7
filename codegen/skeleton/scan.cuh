// --- scans -----------------------------------------------------------------------

// A row of W threads scans N vectors of V neighbours each: thread after thread, then vector after vector, or all of it
// backwards. There are two steps with one row_sync between them, so that several scans share the barrier. The order in
// which elements are combined depends on W, N and V alone.

template <bool BACK, typename T> DEVICE T neighbour(T x, int distance) {
    return BACK ? __shfl_down_sync(0xffffffffu, x, distance) : __shfl_up_sync(0xffffffffu, x, distance);
}

// The fold of what the lanes up to this one hold, in the direction of the scan.
template <class R, bool BACK, int LANES, typename T> DEVICE T scan_lanes(T x) {
    const int lane = BACK ? LANES - 1 - (int)threadIdx.x % LANES : threadIdx.x % LANES;
#pragma unroll
    for (int distance = 1; distance < LANES; distance *= 2) {
        const T y = neighbour<BACK>(x, distance);
        if (lane >= distance) x = R::apply(y, x);
    }
    return x;
}

// Folds each of N neighbours, at(0) to at(N - 1), into the next.
template <class R, bool BACK, int N, class At> DEVICE void scan_own(At at) {
#pragma unroll
    for (int i = 1; i < N; ++i) {
        const int v = BACK ? N - 1 - i : i;
        at(v) = R::apply(at(BACK ? v + 1 : v - 1), at(v));
    }
}

// Combines base with each of N scanned neighbours; in an exclusive scan each result lacks its own element.
template <class R, bool BACK, bool EXCLUSIVE, int N, typename T, class At> DEVICE void scan_after(T base, At at) {
#pragma unroll
    for (int k = 0; k < N; ++k) {
        const int v = EXCLUSIVE == BACK ? k : N - 1 - k; // an exclusive scan overwrites what it has read
        if (EXCLUSIVE) {
            const int w = BACK ? v + 1 : v - 1;
            at(v) = w >= 0 && w < N ? R::apply(base, at(w >= 0 && w < N ? w : v)) : base;
        } else {
            at(v) = R::apply(base, at(v));
        }
    }
}

// Scans each vector of x by itself; before[u] becomes the fold of the lanes before
// this one, and slots[u] gets the fold of each warp.
template <class R, bool BACK, int W, typename T, int N, int V>
DEVICE void row_scan_warps(T (&x)[N][V], T (&before)[N], T identity, T (*slots)[W > 32 ? W / 32 : 1]) {
    constexpr int LANES = W < 32 ? W : 32; // several rows may share a warp
    constexpr int LAST = BACK ? 0 : LANES - 1, FIRST = BACK ? LANES - 1 : 0;
#pragma unroll
    for (int u = 0; u < N; ++u) {
        scan_own<R, BACK, V>([&](int v) -> T & { return x[u][v]; });
        const T upto = scan_lanes<R, BACK, LANES>(x[u][BACK ? 0 : V - 1]);
        before[u] = identity;
        if constexpr (LANES > 1) {
            const T ahead = neighbour<BACK>(upto, 1);
            if (threadIdx.x % LANES != FIRST) before[u] = ahead;
        }
        if (threadIdx.x % 32 == LAST && W > 32) slots[u][threadIdx.x % W / 32] = upto;
        if (W <= 32) slots[u][0] = LANES > 1 ? __shfl_sync(0xffffffffu, upto, LAST, LANES) : upto;
    }
}

// Combines each vector with everything before it: carry, and the folds of the warps and vectors before. carry becomes
// the fold of everything so far. The folds of all warps and vectors are scanned at once where a warp has a lane for
// each.
template <class R, bool BACK, bool EXCLUSIVE, int W, typename T, int N, int V>
DEVICE void row_scan_ends(T (&x)[N][V], const T (&before)[N], T &carry, T identity, const T (*slots)[W > 32 ? W / 32 : 1]) {
    constexpr int WARPS = W > 32 ? W / 32 : 1, ALL = N * WARPS;
    constexpr bool TOGETHER = W > 32 && ALL <= 32 && (ALL & (ALL - 1)) == 0;
    const int warp = threadIdx.x % W / 32;
    T upto = identity, first = carry;
    if constexpr (TOGETHER) {
        upto = scan_lanes<R, BACK, ALL>(slots[0][threadIdx.x % ALL]);
        carry = R::apply(carry, __shfl_sync(0xffffffffu, upto, BACK ? 0 : ALL - 1));
    }
#pragma unroll
    for (int i = 0; i < N; ++i) {
        const int u = BACK ? N - 1 - i : i;
        T base = TOGETHER ? first : carry;
        if constexpr (TOGETHER) {
            const int place = u * WARPS + warp, previous = BACK ? place + 1 : place - 1;
            const T ahead = __shfl_sync(0xffffffffu, upto, previous & (ALL - 1));
            if (i > 0 || (previous >= 0 && previous < ALL)) base = R::apply(base, ahead);
        } else {
            T all = slots[u][0];
            if constexpr (W > 32) {
                upto = scan_lanes<R, BACK, WARPS>(slots[u][threadIdx.x % WARPS]);
                const int previous = BACK ? warp + 1 : warp - 1;
                const T ahead = __shfl_sync(0xffffffffu, upto, previous & (WARPS - 1));
                if (previous >= 0 && previous < WARPS) base = R::apply(base, ahead);
                all = __shfl_sync(0xffffffffu, upto, BACK ? 0 : WARPS - 1);
            }
            carry = R::apply(carry, all);
        }
        base = R::apply(base, before[u]);
        scan_after<R, BACK, EXCLUSIVE, V>(base, [&](int v) -> T & { return x[u][v]; });
    }
}

// LANES threads are a group: each has V rows, and all groups of a block share these rows. Each thread scans N
// neighbouring columns of them, group after group, or all of it backwards. Two steps as above, with __syncthreads between
// them. In the first each thread scans its own columns, before[v] becomes the fold of the warp's groups before this one,
// and slots[warp] the fold of the warp.
template <class R, bool BACK, typename T, int N, int V, int LANES, int WARPS>
DEVICE void group_scan_warps(T (&x)[N][V], T (&before)[V], T identity, T (&slots)[WARPS][LANES][V]) {
    constexpr int GROUPS = 32 / LANES;
    const int lane = threadIdx.x % LANES, warp = threadIdx.x / 32;
    const int group = BACK ? GROUPS - 1 - (int)threadIdx.x % 32 / LANES : threadIdx.x % 32 / LANES;
#pragma unroll
    for (int v = 0; v < V; ++v) {
        scan_own<R, BACK, N>([&](int u) -> T & { return x[u][v]; });
        T upto = x[BACK ? 0 : N - 1][v];
#pragma unroll
        for (int distance = 1; distance < GROUPS; distance *= 2) {
            const T y = neighbour<BACK>(upto, distance * LANES);
            if (group >= distance) upto = R::apply(y, upto);
        }
        before[v] = neighbour<BACK>(upto, LANES);
        if (group == 0) before[v] = identity;
        if (group == GROUPS - 1) slots[warp][lane][v] = upto;
    }
}

// Combines each thread's columns with carry and the groups before it; carry becomes the fold of everything so far.
template <class R, bool BACK, bool EXCLUSIVE, typename T, int N, int V, int LANES, int WARPS>
DEVICE void group_scan_ends(T (&x)[N][V], const T (&before)[V], T (&carry)[V], const T (&slots)[WARPS][LANES][V]) {
    const int lane = threadIdx.x % LANES, warp = BACK ? WARPS - 1 - (int)threadIdx.x / 32 : threadIdx.x / 32;
#pragma unroll
    for (int v = 0; v < V; ++v) {
        T base = carry[v], all = carry[v];
#pragma unroll
        for (int w = 0; w < WARPS; ++w) {
            if (w == warp) base = all;
            all = R::apply(all, slots[BACK ? WARPS - 1 - w : w][lane][v]);
        }
        carry[v] = all;
        base = R::apply(base, before[v]);
        scan_after<R, BACK, EXCLUSIVE, N>(base, [&](int u) -> T & { return x[u][v]; });
    }
}

// --- columns copied to shared memory ---------------------------------------------

// Copies BYTES (4, 8 or 16) that this thread reads itself later: no barrier is needed.
template <int BYTES> DEVICE void prefetch_copy(void *to, const void *from) {
    const unsigned at = (unsigned)__cvta_generic_to_shared(to);
    if constexpr (BYTES == 16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
    else asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(at), "l"(from), "n"(BYTES) : "memory");
}
DEVICE void prefetch_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until all but the last N groups of this thread's copies are there.
template <int N> DEVICE void prefetch_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }
