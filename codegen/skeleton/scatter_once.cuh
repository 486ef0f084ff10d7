
// --- scatter of few columns: marks --------------------------------------------------
//
// A block has PLACES places, and reads the keys of all columns at once. Each place has a bit for each column. Columns come
// out of these bits in their order, whichever thread set its bit first, so that results are the same each time.

constexpr int COLUMNS = ITEMS * THREADS; // at most
constexpr int LEAST = 1024;              // columns that make a word of marks for each thread of a warp
static_assert(COLUMNS % LEAST == 0, "whole words");

// Asks the L2 cache for the line at p.
DEVICE void prefetch_line(const void *p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }

// The columns of the block's places.
struct Marked {
    unsigned marks[PLACES][COLUMNS / 32];
    int count[PLACES];             // how many columns each place has
    int total;                     // how many all have
    int shared;                    // how many places all teams share
    unsigned short shares[PLACES]; // these places
};

// Marks the place of each column, of which there are at most ITEMS_ for each thread.
// place_of gives it, or -1; lines is called while the keys are on their way. Returns whether some place has more columns
// than a team always folds alone.
template <int ITEMS_, class Place, class Lines> DEVICE bool mark_items(Marked &m, INDEX columns, Place place_of, Lines lines) {
    constexpr int WORDS = ITEMS_ * THREADS / 32;
    int place[ITEMS_];
#pragma unroll
    for (int u = 0; u < ITEMS_; ++u) place[u] = columns > 0 ? place_at((INDEX)(u * THREADS + threadIdx.x), columns, place_of) : -1;
    lines();
    for (int i = threadIdx.x; i < PLACES * WORDS; i += THREADS) m.marks[i / WORDS][i % WORDS] = 0;
    for (int i = threadIdx.x; i < PLACES; i += THREADS) m.count[i] = 0;
    __syncthreads();
    bool many = false;
#pragma unroll
    for (int u = 0; u < ITEMS_; ++u)
        if (place[u] >= 0) {
            atomicOr(&m.marks[place[u]][(u * THREADS + threadIdx.x) / 32], 1u << threadIdx.x % 32);
            many |= atomicAdd(&m.count[place[u]], 1) >= ALONE;
        }
    return __syncthreads_or(many);
}
// Fewer columns are read by fewer reads of each thread.
template <int ITEMS_ = ITEMS, class Place, class Lines> DEVICE bool mark_columns(Marked &m, INDEX columns, Place place_of, Lines lines) {
    constexpr int HALF = ITEMS_ / 2;
    if constexpr (HALF * THREADS >= LEAST)
        if (columns <= HALF * THREADS) return mark_columns<HALF>(m, columns, place_of, lines);
    return mark_items<ITEMS_>(m, columns, place_of, lines);
}

// Finds the places that have more columns than one team folds alone, and returns how many columns that is.
DEVICE int find_shared(Marked &m, int teams) {
    if (threadIdx.x == 0) m.total = m.shared = 0;
    __syncthreads();
    if (threadIdx.x < PLACES && m.count[threadIdx.x] > 0) atomicAdd(&m.total, m.count[threadIdx.x]);
    __syncthreads();
    const int alone = most_alone(m.total, teams);
    if (threadIdx.x < PLACES && m.count[threadIdx.x] > alone) m.shares[atomicAdd(&m.shared, 1)] = (unsigned short)threadIdx.x;
    __syncthreads();
    return alone;
}

// The columns of a place that a warp has not taken yet. Its threads hold a word of marks each, 32 words at a time. Of 2^apart
// teams that share the place, each takes every 2^apart-th word.
struct Marks {
    const unsigned *words;
    int base, end, from; // the first of the words at hand, the number of all words, and the lane whose bits come next
    int team, apart;
    unsigned word, some, left;

    DEVICE Marks(const unsigned *marks, INDEX columns, int team, int team_bits_) : words(marks), base(-32), end(((int)((columns + 31) / 32) - team + (1 << team_bits_) - 1) >> team_bits_), from(0), team(team), word(0), some(0), left(0) { apart = team_bits_; }
    // Whether there are more; all threads of the warp ask together.
    DEVICE bool some_left() {
        while (!(some | left) && base + 32 < end) {
            base += 32;
            const int at = base + threadIdx.x % 32;
            word = at < end ? words[at << apart | team] : 0;
            some = __ballot_sync(0xffffffffu, word != 0);
        }
        return some | left;
    }
    // Takes from one to GATHERED columns and returns how many; the rest of `columns` repeats the first.
    DEVICE int take(INDEX (&column)[GATHERED]) {
        int n = 0;
#pragma unroll
        for (int u = 0; u < GATHERED; ++u) {
            if (!left && some) {
                from = __ffs(some) - 1;
                some &= some - 1;
                left = __shfl_sync(0xffffffffu, word, from);
            }
            column[u] = u == 0 || left ? ((base + from) << apart | team) * 32 + __ffs(left) - 1 : column[0];
            n += left != 0;
            left &= left - 1;
        }
        return n;
    }
};
