
// --- rows in chunks ---------------------------------------------------------------

// Maxima and minima of 16-bit floats, two at a time; NaN where one of the two is NaN.
struct Pair { unsigned bits; };
DEVICE Pair larger(Pair a, Pair b, bf16) { Pair m; asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(m.bits) : "r"(a.bits), "r"(b.bits)); return m; }
DEVICE Pair larger(Pair a, Pair b, f16) { Pair m; asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(m.bits) : "r"(a.bits), "r"(b.bits)); return m; }
DEVICE Pair smaller(Pair a, Pair b, bf16) { Pair m; asm("min.NaN.bf16x2 %0, %1, %2;" : "=r"(m.bits) : "r"(a.bits), "r"(b.bits)); return m; }
DEVICE Pair smaller(Pair a, Pair b, f16) { Pair m; asm("min.NaN.f16x2 %0, %1, %2;" : "=r"(m.bits) : "r"(a.bits), "r"(b.bits)); return m; }
template <typename T> DEVICE Pair pair_fold(Max, Pair a, Pair b) { return larger(a, b, T{}); }
template <typename T> DEVICE Pair pair_fold(Min, Pair a, Pair b) { return smaller(a, b, T{}); }
// Folds the lanes of a vector into the two of a pair.
template <class R, typename T, int N> DEVICE void fold_pairs(Pair &m, const Vec<T, N> &x) {
    static_assert(sizeof(T) == 2 && N % 2 == 0, "pairs");
    union { Vec<T, N> value; Pair pair[N / 2]; } bits;
    bits.value = x;
#pragma unroll
    for (int i = 0; i < N / 2; ++i) m = pair_fold<T>(R{}, m, bits.pair[i]);
}
// Folds the two lanes of a pair into a running value.
template <class R, typename T> DEVICE float fold_lanes(float state, Pair m) {
    union { Pair pair; T lane[2]; } bits;
    bits.pair = m;
    return R::apply(state, R::apply(to_f32(bits.lane[0]), to_f32(bits.lane[1])));
}
template <typename T> DEVICE Pair pair_start(float x) {
    union { Pair pair; T lane[2]; } bits;
    bits.pair.bits = 0;
    bits.lane[0] = bits.lane[1] = from_f32<T>(x);
    return bits.pair;
}
