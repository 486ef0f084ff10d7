
// --- places of the best -----------------------------------------------------------

// A value and where it stands; NaN beats everything, then the value, then the
// lower index. index < 0 is the empty state.
template <typename T> struct At { T value; INDEX index; };
template <bool LARGEST, typename T> DEVICE bool beats(const At<T> &a, const At<T> &b) {
    if (a.index < 0 || b.index < 0) return b.index < 0 && a.index >= 0;
    const bool na = a.value != a.value, nb = b.value != b.value;
    if (na || nb) return na && (!nb || a.index < b.index);
    if (a.value != b.value) return LARGEST ? a.value > b.value : a.value < b.value;
    return a.index < b.index;
}
struct ArgMax {
    static constexpr bool LARGEST = true;
    template <typename T> static DEVICE At<T> apply(const At<T> &a, const At<T> &b) { return beats<true>(b, a) ? b : a; }
};
struct ArgMin {
    static constexpr bool LARGEST = false;
    template <typename T> static DEVICE At<T> apply(const At<T> &a, const At<T> &b) { return beats<false>(b, a) ? b : a; }
};
// The same for what a thread meets in the order of indices, from 0 on: what it has stands ahead,
// and stays unless x is better, or the first NaN. Where all are as bad as can be, nothing is taken.
template <class R, typename T> DEVICE At<T> meet(const At<T> &best, T x, INDEX index) {
    const bool better = R::LARGEST ? !(x <= best.value) : !(x >= best.value); // NaN is
    const bool taken = better && best.value == best.value;
    return At<T>{taken ? x : best.value, taken ? index : best.index};
}

template <typename T> constexpr bool is_f32 = false;
template <> constexpr bool is_f32<float> = true;
// Unsigned words in the order in which values beat each other; no value's key is 0 but the
// least integer's.
template <bool LARGEST, typename T> DEVICE unsigned arg_key(T x) {
    unsigned key;
    if constexpr (is_f32<T>) {
        if (x != x) return ~0u;
        key = __float_as_uint(x + 0.0f); // -0 is 0
        key ^= (unsigned)((int)key >> 31) | 0x80000000u;
    } else {
        key = (unsigned)x ^ (T(-1) < T(1) ? 0x80000000u : 0u);
    }
    return LARGEST ? key : ~key;
}
template <bool LARGEST, typename T> DEVICE T arg_value(unsigned key) {
    if (is_f32<T> && key == ~0u) return (T)nan32();
    if (!LARGEST) key = ~key;
    if constexpr (is_f32<T>) return __uint_as_float(key ^ ((unsigned)((int)~key >> 31) | 0x80000000u));
    return (T)(key ^ (T(-1) < T(1) ? 0x80000000u : 0u));
}
template <typename T> DEVICE At<T> shuffle(const At<T> &x, int mask) { return At<T>{shuffle(x.value, mask), shuffle(x.index, mask)}; }
template <typename T> constexpr bool repeats<At<T>> = true;

// Where the best of a whole warp stands: the best key, and the least index that has it.
template <class R, int LANES, typename T> DEVICE At<T> reduce_lanes(At<T> x) {
#if __CUDA_ARCH__ >= 800
    constexpr bool BY_KEYS = LANES == 32 && sizeof(T) <= 4 && sizeof(INDEX) == 4;
#else
    constexpr bool BY_KEYS = false;
#endif
    if constexpr (BY_KEYS) {
        const unsigned key = x.index < 0 ? 0 : arg_key<R::LARGEST>(x.value);
        unsigned best, at;
        asm volatile("redux.sync.max.u32 %0, %1, 0xffffffff;" : "=r"(best) : "r"(key));
        asm volatile("redux.sync.min.u32 %0, %1, 0xffffffff;" : "=r"(at) : "r"(key == best ? (unsigned)x.index : ~0u));
        return At<T>{arg_value<R::LARGEST, T>(best), (INDEX)at};
    } else {
#pragma unroll
        for (int mask = LANES / 2; mask > 0; mask >>= 1) x = R::apply(x, shuffle(x, mask));
        return x;
    }
}
