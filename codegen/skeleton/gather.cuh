// --- gathers ---------------------------------------------------------------------

template <int N> struct alignas(4 * N < 16 ? 4 * N : 16) Words { unsigned word[N]; };

// Reads N neighbours of a narrow type starting at p where they are inside, else makes r N times fill. What
// decides is said of words: said of elements, a vector would be taken apart as soon as it is
// there, which is a wait ahead of the reads that follow.
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
