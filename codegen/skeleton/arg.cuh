
// --- places of the best -----------------------------------------------------------

// A value and its index. Of two, the NaN wins, else the better value, else the lower index. An index below 0 is the
// state before any value.
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
// The same for a thread that meets values in the order of their indices, from 0 on: the value that it has wins
// ties, so it stays unless x is better, or is the first NaN. If no value is better than the identity, the state
// stays empty.
template <class R, typename T> DEVICE At<T> meet(const At<T> &best, T x, INDEX index) {
    const bool better = R::LARGEST ? !(x <= best.value) : !(x >= best.value); // NaN is
    const bool taken = better && best.value == best.value;
    return At<T>{taken ? x : best.value, taken ? index : best.index};
}

template <typename T> constexpr bool is_f32 = false;
template <> constexpr bool is_f32<float> = true;
// SortKey words whose order is that of winning. The word of NaN has all bits set, for the largest and the smallest.
template <class R, typename T> DEVICE unsigned arg_word(T x) {
    if constexpr (is_f32<T>) return SortKey<float>::of(R::LARGEST ? x : -x);
    else return sort_word<SortKey<T>, !R::LARGEST>(x);
}
template <class R, typename T> DEVICE T arg_value(unsigned word) {
    if constexpr (is_f32<T>) return R::LARGEST ? SortKey<float>::value(word) : -SortKey<float>::value(word);
    else return (T)sort_value<SortKey<T>, !R::LARGEST>(word);
}
template <typename T> DEVICE At<T> shuffle(const At<T> &x, int mask) { return At<T>{shuffle(x.value, mask), shuffle(x.index, mask)}; }
template <typename T> constexpr bool repeats<At<T>> = true;

// The best value of a whole warp: the best key, then the lowest index that has it.
template <class R, int LANES, typename T> DEVICE At<T> reduce_lanes(At<T> x) {
#if __CUDA_ARCH__ >= 800
    constexpr bool BY_KEYS = LANES == 32 && sizeof(T) <= 4 && sizeof(INDEX) == 4;
#else
    constexpr bool BY_KEYS = false;
#endif
    if constexpr (BY_KEYS) {
        const unsigned key = x.index < 0 ? 0 : arg_word<R>(x.value);
        unsigned best, at;
        asm volatile("redux.sync.max.u32 %0, %1, 0xffffffff;" : "=r"(best) : "r"(key));
        asm volatile("redux.sync.min.u32 %0, %1, 0xffffffff;" : "=r"(at) : "r"(key == best ? (unsigned)x.index : ~0u));
        return At<T>{arg_value<R, T>(best), (INDEX)at};
    } else {
        return reduce_lanes<R, LANES, At<T>>(x); // as any other value
    }
}
