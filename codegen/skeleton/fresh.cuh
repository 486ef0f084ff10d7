
// Reads what another block of the launch may have written: from the L2 cache, which
// they share.
template <typename T> DEVICE T fresh(const T *p) {
    constexpr int N = sizeof(T);
    union { T value; unsigned char byte; unsigned short half; unsigned word[N < 4 ? 1 : N / 4]; unsigned long long wide; } bits;
    if constexpr (N == 1) {
        unsigned x;
        asm volatile("ld.global.cg.u8 %0, [%1];" : "=r"(x) : "l"(p));
        bits.byte = (unsigned char)x;
    } else if constexpr (N == 2) {
        asm volatile("ld.global.cg.u16 %0, [%1];" : "=h"(bits.half) : "l"(p));
    } else if constexpr (N == 4) {
        asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(bits.word[0]) : "l"(p));
    } else if constexpr (N == 8) {
        asm volatile("ld.global.cg.u64 %0, [%1];" : "=l"(bits.wide) : "l"(p));
    } else {
        static_assert(N % 16 == 0, "whole accesses");
#pragma unroll
        for (int i = 0; i < N / 16; ++i)
            asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(bits.word[4 * i]), "=r"(bits.word[4 * i + 1]), "=r"(bits.word[4 * i + 2]), "=r"(bits.word[4 * i + 3])
                         : "l"(reinterpret_cast<const char *>(p) + 16 * i));
    }
    return bits.value;
}
template <int N, typename T> DEVICE Vec<T, N> load_fresh(const T *p, int n) {
    if (n >= N) return fresh(reinterpret_cast<const Vec<T, N> *>(p));
    Vec<T, N> r;
#pragma unroll
    for (int v = 0; v < N; ++v)
        if (v < n) r.v[v] = fresh(p + v);
    return r;
}
