
// --- runs of memory in which lanes alternate ----------------------------------------

// The elements of LANES lanes, EACH of a lane next to each other. Lanes that fill 16 bytes are a group, behind which
// 4 bytes (8 of the widest types) are left out: threads with neighbouring groups then use different banks.
template <typename T, int EACH, int LANES> struct Run {
    static constexpr unsigned GROUP = 16 / sizeof(T), SKEW = sizeof(T) < 4 ? 4 / sizeof(T) : 1;
    alignas(16) T element[LANES * EACH + LANES / GROUP * SKEW];

    DEVICE void put(unsigned at, T x) { element[at + at / (GROUP * EACH) * SKEW] = x; }

    // N elements; at is a multiple of N.
    template <int N> DEVICE void put(unsigned at, const Vec<T, N> &x) {
        if constexpr (sizeof(T) < 4 && sizeof(T) * N % 4 == 0 && N <= GROUP) { // in words: no group ends among them
            unsigned *to = reinterpret_cast<unsigned *>(element + at + at / (GROUP * EACH) * SKEW);
#pragma unroll
            for (int w = 0; w < (int)sizeof(Vec<T, N>) / 4; ++w) to[w] = reinterpret_cast<const unsigned *>(&x)[w];
        } else {
#pragma unroll
            for (int v = 0; v < N; ++v) put(at + v, x.v[v]);
        }
    }

    // N elements next to each other; at is a multiple of N.
    template <int N> DEVICE Vec<T, N> get(unsigned at) const {
        Vec<T, N> x;
#pragma unroll
        for (int v = 0; v < N; ++v) x.v[v] = element[at + v + (at + v) / (GROUP * EACH) * SKEW];
        return x;
    }

    // The elements of N lanes.
    template <int N> DEVICE Vec<T, N> lanes(unsigned lane, unsigned which) const {
        Vec<T, N> x;
#pragma unroll
        for (int v = 0; v < N; ++v) x.v[v] = element[(lane + v) * EACH + (lane + v) / GROUP * SKEW + which];
        return x;
    }
};
