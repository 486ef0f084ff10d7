
// --- keys ------------------------------------------------------------------------

// A SortKey maps values to words that sort in the same order. Both zeros have one word, or two with SIGNED. Every NaN
// has the word with all bits set, above all others. In a descending sort the word is the complement.

template <typename W, int BITS> struct Words {
    typedef W Word;
    static constexpr int bits = BITS;
    static constexpr W ones = BITS == 8 * sizeof(W) ? ~(W)0 : ((W)1 << BITS % (8 * sizeof(W))) - 1, top = (W)1 << (BITS - 1);
    static DEVICE W floating(W u) { return u & top ? ones & ~u : u | top; }
    static DEVICE W pattern(W k) { return k & top ? k & ~top : ones & ~k; }
};
template <typename T, int BITS> struct IntegerKey : Words<unsigned, BITS> {
    typedef Words<unsigned, BITS> W;
    static DEVICE unsigned of(T x) { return ((unsigned)x & W::ones) ^ ((T)-1 < 0 ? W::top : 0); }
    static DEVICE T value(unsigned k) { return (T)(k ^ ((T)-1 < 0 ? W::top : 0)); }
};
template <typename T, int BITS, bool SIGNED> struct NarrowKey : Words<unsigned, BITS> {
    typedef Words<unsigned, BITS> W;
    static DEVICE unsigned of(float x) {
        const unsigned rounded = from_f32<T>(x).bits, u = !SIGNED && rounded == W::top ? 0 : rounded;
        const unsigned k = u ^ (u & W::top ? W::ones : W::top);
        return x != x ? W::ones : k;
    }
    static DEVICE float value(unsigned k) {
        T x;
        x.bits = W::pattern(k);
        return to_f32(x);
    }
};
template <typename T, bool SIGNED = false> struct SortKey;
template <bool SIGNED> struct SortKey<bool, SIGNED> : IntegerKey<unsigned char, 8> {};
template <bool SIGNED> struct SortKey<unsigned char, SIGNED> : IntegerKey<unsigned char, 8> {};
template <bool SIGNED> struct SortKey<signed char, SIGNED> : IntegerKey<signed char, 8> {};
template <bool SIGNED> struct SortKey<short, SIGNED> : IntegerKey<short, 16> {};
template <bool SIGNED> struct SortKey<int, SIGNED> : IntegerKey<int, 32> {};
template <bool SIGNED> struct SortKey<unsigned, SIGNED> : IntegerKey<unsigned, 32> {};
template <bool SIGNED> struct SortKey<bf16, SIGNED> : NarrowKey<bf16, 16, SIGNED> {};
template <bool SIGNED> struct SortKey<f16, SIGNED> : NarrowKey<f16, 16, SIGNED> {};
template <bool SIGNED> struct SortKey<f8e4m3, SIGNED> : NarrowKey<f8e4m3, 8, SIGNED> {};
template <bool SIGNED> struct SortKey<f8e5m2, SIGNED> : NarrowKey<f8e5m2, 8, SIGNED> {};
template <bool SIGNED> struct SortKey<long long, SIGNED> : Words<unsigned long long, 64> {
    typedef Words<unsigned long long, 64> W;
    static DEVICE unsigned long long of(long long x) { return (unsigned long long)x ^ W::top; }
    static DEVICE long long value(unsigned long long k) { return (long long)(k ^ W::top); }
};
template <bool SIGNED> struct SortKey<float, SIGNED> : Words<unsigned, 32> {
    // Adding zero turns -0 into +0, and every NaN into the one with the most bits set.
    typedef Words<unsigned, 32> W;
    static DEVICE unsigned of(float x) {
        const unsigned u = __float_as_uint(SIGNED ? x : __fadd_rn(x, 0.0f)), k = u ^ ((unsigned)((int)u >> 31) | W::top);
        return SIGNED && x != x ? W::ones : k;
    }
    static DEVICE float value(unsigned k) { return __uint_as_float(W::pattern(k)); }
};
template <bool SIGNED> struct SortKey<double, SIGNED> : Words<unsigned long long, 64> {
    typedef Words<unsigned long long, 64> W;
    static DEVICE unsigned long long of(double x) {
        return x != x ? W::ones : !SIGNED && x == 0 ? W::top : W::floating(__double_as_longlong(x));
    }
    static DEVICE double value(unsigned long long k) { return __longlong_as_double(W::pattern(k)); }
};
template <class K, bool DOWN, typename T> DEVICE typename K::Word sort_word(T x) { return DOWN ? K::ones & ~K::of(x) : K::of(x); }
template <class K, bool DOWN> DEVICE auto sort_value(typename K::Word k) { return K::value(DOWN ? K::ones & ~k : k); }
