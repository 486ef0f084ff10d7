
// --- histograms: columns of a warp that meet at a place ---------------------------

// The value that another lane has.
template <typename T> DEVICE T from_lane(unsigned active, const T &x, int lane) {
    constexpr int WORDS = sizeof(T) / 4;
    union Words { unsigned word[WORDS]; T value; DEVICE Words() {} } from, to;
    from.value = x;
#pragma unroll
    for (int w = 0; w < WORDS; ++w) to.word[w] = __shfl_sync(active, from.word[w], lane);
    return to.value;
}

// Folds the values of lanes that go to the same place, in the order of lanes: the first of them gets the whole. `next` is
// the next lane that goes to the same place, or -1. In each round a lane adds the run of lanes behind its own, and runs
// become twice as long, so that a warp whose lanes all go to one place is done in five.
template <class R, typename T> DEVICE void fold_lanes(unsigned active, T &x, int next) {
    const int lane = threadIdx.x % 32;
    while (__any_sync(active, next >= 0)) {
        const int from = next >= 0 ? next : lane;
        const T other = from_lane(active, x, from);
        const int further = __shfl_sync(active, next, from);
        if (next >= 0) {
            x = R::apply(x, other);
            next = further;
        }
    }
}
