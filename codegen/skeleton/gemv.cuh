
// --- fragments from memory ------------------------------------------------------------

// Reads 4, 8 or 16 bytes, which stay words. Volatile, so that the compiler does not move a read behind the
// multiplications that should hide it.
DEVICE void load_words(Vec<unsigned, 1> &to, const void *p) {
    asm volatile("ld.global.nc.b32 %0, [%1];" : "=r"(to.v[0]) : "l"(p));
}
DEVICE void load_words(Vec<unsigned, 2> &to, const void *p) {
    asm volatile("ld.global.nc.v2.b32 {%0, %1}, [%2];" : "=r"(to.v[0]), "=r"(to.v[1]) : "l"(p));
}
DEVICE void load_words(Vec<unsigned, 4> &to, const void *p) {
    asm volatile("ld.global.nc.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(to.v[0]), "=r"(to.v[1]), "=r"(to.v[2]), "=r"(to.v[3]) : "l"(p));
}
// The same under a policy of the L2 cache.
DEVICE void load_words(Vec<unsigned, 4> &to, const void *p, [[maybe_unused]] unsigned long long policy) {
#if __CUDA_ARCH__ >= 800
    asm volatile("ld.global.nc.L2::cache_hint.v4.b32 {%0, %1, %2, %3}, [%4], %5;" : "=r"(to.v[0]), "=r"(to.v[1]), "=r"(to.v[2]), "=r"(to.v[3]) : "l"(p), "l"(policy));
#else
    load_words(to, p);
#endif
}

// Eight neighbours as the words that tensor cores take; zeros outside of the tensor.
template <int N> DEVICE void words(unsigned (&to)[4], const Vec<unsigned, N> &x, int sub, bool inside) {
#pragma unroll
    for (int i = 0; i < 4; ++i) to[i] = inside ? x.v[4 * sub + i] : 0;
}

// Two 8-bit floats as f16, which holds all of them.
DEVICE unsigned halves_of(unsigned two, f8e5m2) { return __byte_perm(two, 0, 0x1404); }
DEVICE unsigned halves_of(unsigned two, f8e4m3) {
    unsigned r;
#if __CUDA_ARCH__ >= 890
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(r) : "h"((unsigned short)two));
#else
    const float both[2] = {to_f32(f8e4m3{(unsigned char)two}), to_f32(f8e4m3{(unsigned char)(two >> 8)})};
    pack_pairs(&r, both, f16{});
#endif
    return r;
}
DEVICE unsigned pair_of(unsigned halves, f16) { return halves; }
DEVICE unsigned pair_of(unsigned halves, bf16) {
    const float both[2] = {to_f32(f16{(unsigned short)halves}), to_f32(f16{(unsigned short)(halves >> 16)})};
    unsigned r;
    pack_pairs(&r, both, bf16{});
    return r;
}

// The same of eight 8-bit floats of type U.
template <typename U, typename T, int N> DEVICE void words_of_bytes(unsigned (&to)[4], const Vec<unsigned, N> &x, int sub, bool inside) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const unsigned word = inside ? x.v[2 * sub + i / 2] : 0;
        to[i] = pair_of(halves_of(i % 2 ? word >> 16 : word & 0xffffu, U{}), T{});
    }
}

// Pairs 4*sub to 4*sub+3 in the given order, from words of pairs in the order of memory.
template <int... LANES, int N> DEVICE void pick_pairs(unsigned (&to)[4], const unsigned (&x)[N][4], int sub) {
    constexpr int lanes[] = {LANES...};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int a = lanes[8 * sub + 2 * i], b = lanes[8 * sub + 2 * i + 1];
        to[i] = __byte_perm(x[a / 8][a / 2 % 4], x[b / 8][b / 2 % 4], (a % 2 ? 0x32 : 0x10) | (b % 2 ? 0x7600 : 0x5400));
    }
}

// d += w * x for 16 rows of w, 8 of x and 32 columns: each thread holds eight
// neighbours of rows lane/4 and lane/4 + 8 of w and of row lane/4 of x, at the same columns.
// The order of columns does not matter to a sum, so a step takes any 16 of them.
template <typename T> DEVICE void multiply_pieces(float (&d)[4], const unsigned (&w)[2][4], const unsigned (&x)[4]) {
#pragma unroll
    for (int s = 0; s < 2; ++s) {
        const unsigned a[4] = {w[0][2 * s], w[1][2 * s], w[0][2 * s + 1], w[1][2 * s + 1]};
        HalfParts<T, 16, 8>::multiply(d, a, &x[2 * s], T{});
    }
}

// The number x in both halves of a word.
template <typename T> DEVICE unsigned twice(float x) {
    const float both[2] = {x, x};
    unsigned r[1];
    pack_pairs(r, both, T{});
    return r[0];
}

DEVICE unsigned multiply_add_pairs(unsigned x, unsigned y, unsigned z, bf16) {
    unsigned r;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z));
    return r;
}
DEVICE unsigned multiply_add_pairs(unsigned x, unsigned y, unsigned z, f16) {
    unsigned r;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z));
    return r;
}
// The power of two whose last bit of fraction is worth 1.
DEVICE constexpr unsigned field_bias(bf16) { return 0x4300; }
DEVICE constexpr unsigned field_bias(f16) { return 0x6400; }

// Numbers in fields of WIDTH bits that start at bit FIRST of slots of BITS bits. A field that is put into the last bits
// of a power of two makes a float of the sum of both; a word holds two such numbers. The multiply-add by step and base
// subtracts the power too, or, with TWICE, a multiply-add of its own does so before.
template <typename T, int BITS, int FIRST, int WIDTH, int FLIP, bool TWICE> struct BitField {
    template <int N> static DEVICE void unpack(unsigned (&to)[4], const Vec<unsigned, N> &x, int sub, unsigned step, unsigned base) {
        constexpr bool wide = WIDTH == 8 && field_bias(T{}) == 0x4300;
        constexpr unsigned mask = (1u << (wide ? WIDTH - 1 : WIDTH)) - 1, bias = field_bias(T{});
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int pair = 4 * sub + i;
            const unsigned word = x.v[pair / (16 / BITS)] >> (pair % (16 / BITS) * BITS + FIRST);
            unsigned number = masked(word, mask, bias ^ FLIP & mask);
            if constexpr (wide) number = multiply_add_pairs(masked(word, 0x80, bias ^ 0x80 ^ FLIP & 0x80), twice<T>(-1), number, T{});
            else if constexpr (TWICE) number = multiply_add_pairs(number, twice<T>(1), bias * 0x10001u ^ 0x80008000u, T{});
            if constexpr (!wide || TWICE) number = multiply_add_pairs(number, step, base, T{});
            to[i] = number;
        }
    }

    // (word & mask) ^ bits, in both halves and one instruction.
    static DEVICE unsigned masked(unsigned word, unsigned mask, unsigned bits) {
        unsigned r;
        asm("lop3.b32 %0, %1, %2, %3, 0x6a;" : "=r"(r) : "r"(word), "r"(mask * 0x10001u), "r"(bits * 0x10001u));
        return r;
    }
};
