// --- gathers ---------------------------------------------------------------------

template <int N> struct alignas(4 * N < 16 ? 4 * N : 16) Words { unsigned word[N]; };

// Reads N neighbours of a narrow type from p where they are inside; elsewhere r becomes N times fill. The choice is
// made for whole words. Made for each element, it would take the vector apart as soon as it arrives, and wait for it
// before the next reads are issued.
template <int N, typename T> DEVICE void load_where(Vec<T, N> &r, bool inside, const T *p, T fill) {
    constexpr int COUNT = sizeof(Vec<T, N>) / 4;
    union { Vec<T, 4 / sizeof(T)> elements; unsigned word; } filled;
    filled.elements = splat<4 / sizeof(T)>(fill);
    Words<COUNT> read;
#pragma unroll
    for (int w = 0; w < COUNT; ++w) read.word[w] = filled.word;
    if (inside) read = *reinterpret_cast<const Words<COUNT> *>(p);
#pragma unroll
    for (int w = 0; w < COUNT; ++w) {
        asm volatile("" : "+r"(read.word[w]));
        reinterpret_cast<unsigned *>(&r)[w] = read.word[w];
    }
}
