
// --- bins: blocks share the keys --------------------------------------------------
//
// Every tile of PLACES places has a bin, a block and a counter. Blocks take one chunk of keys after the other and put
// each column in the bin of its tile, in any order. A block that finds no chunk left waits for the blocks that still
// work, none of which waits itself. Then it puts its own bin in order, so that results do not depend on timing. A bin
// that overflows goes on counting; its block then reads the keys itself.

constexpr int KEYS = 2;                  // keys that a thread has under way
constexpr int COLUMN_BITS = 48;          // bits for the column in a word of a bin; the place in the tile is above
static_assert(PLACES <= 1 << (64 - COLUMN_BITS), "places above columns");

// Reads a counter; what other blocks have written before they added to it is then there to be read.
DEVICE unsigned acquired(const unsigned *counter) {
    unsigned n;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(n) : "l"(counter) : "memory");
    return n;
}

// Puts the columns of a chunk in their bins.
template <class Place> DEVICE void fill_bins(unsigned *counts, unsigned long long *bins, int room, INDEX base, INDEX columns, Place place_in) {
    INDEX place[KEYS];
    int at[KEYS];
#pragma unroll
    for (int u = 0; u < KEYS; ++u) place[u] = place_at(base + u * THREADS + threadIdx.x, columns, place_in);
#pragma unroll
    for (int u = 0; u < KEYS; ++u) at[u] = place[u] >= 0 ? (int)atomicAdd(counts + place[u] / PLACES, 1u) : room;
#pragma unroll
    for (int u = 0; u < KEYS; ++u)
        if ((unsigned)at[u] < (unsigned)room)
            bins[(long long)(place[u] / PLACES) * room + at[u]] =
                (unsigned long long)(place[u] % PLACES) << COLUMN_BITS | (unsigned long long)(base + u * THREADS + threadIdx.x);
}

// Puts all columns in bins, together with all other blocks. The first counter hands out chunks. The second counts the
// chunks that are done, then the blocks that have seen this; the last of these leaves both counters zero.
template <class Place> DEVICE void share_keys(unsigned *counters, unsigned long long *bins, int room, INDEX columns, Place place_in) {
    __shared__ unsigned taken;
    constexpr INDEX CHUNK_KEYS = KEYS * THREADS;
    const unsigned all = (unsigned)((columns + CHUNK_KEYS - 1) / CHUNK_KEYS), last = all + gridDim.x - 1;
    if (threadIdx.x == 0) taken = acquired(counters + 1) < all ? atomicAdd(counters, 1u) : all;
    __syncthreads();
    for (unsigned mine = taken; mine < all; mine = taken) {
        fill_bins(counters + 2, bins, room, mine * CHUNK_KEYS, columns, place_in);
        __syncthreads();
        if (threadIdx.x == 0) {
            asm volatile("fence.acq_rel.gpu;" ::: "memory"); // after the barrier it covers what all threads have written
            atomicInc(counters + 1, last);
            taken = atomicAdd(counters, 1u);
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        while (acquired(counters + 1) < all) __nanosleep(20);
        if (atomicInc(counters + 1, last) == last) counters[0] = 0;
    }
    __syncthreads();
}

// Lists the columns of all places of the block, by place, then by column. Words first go to their places in any order;
// then each moves behind those of its place with smaller columns. False where the bin had no room for them.
template <class Place> DEVICE bool take_bin(Listed &s, unsigned *counters, unsigned long long *bins, int room, INDEX columns, Place place_in, INDEX &next, int &size) {
    share_keys(counters, bins, room, columns, place_in);
    unsigned *const count = counters + 2 + blockIdx.x;
    const unsigned found = fresh(count);
    for (int i = threadIdx.x; i < PLACES; i += THREADS) s.count[i] = 0;
    __syncthreads();
    if (threadIdx.x == 0) *count = 0;
    if (found > (unsigned)room) return false;
    next = columns;
    size = (int)found;
    constexpr int HELD = ROOM / THREADS; // words that a thread holds
    INDEX column[HELD];
    int place[HELD], at[HELD];
#pragma unroll
    for (int u = 0; u < HELD; ++u) {
        const int i = u * THREADS + threadIdx.x;
        if (i >= size) continue;
        const unsigned long long word = fresh(bins + (long long)blockIdx.x * room + i);
        column[u] = (INDEX)(word & ((1ull << COLUMN_BITS) - 1));
        place[u] = (int)(word >> COLUMN_BITS);
        at[u] = atomicAdd(&s.count[place[u]], 1);
    }
    __syncthreads();
    begin_places(s, threadIdx.x < PLACES ? s.count[threadIdx.x] : 0, size);
    __syncthreads();
#pragma unroll
    for (int u = 0; u < HELD; ++u)
        if (u * THREADS + threadIdx.x < size) s.column[s.begin[place[u]] + at[u]] = column[u];
    __syncthreads();
#pragma unroll
    for (int u = 0; u < HELD; ++u) {
        if (u * THREADS + threadIdx.x >= size) continue;
        const int first = s.begin[place[u]], end = s.begin[place[u] + 1];
        int to = first;
        for (int j = first; j < end; ++j) to += s.column[j] < column[u];
        s.column[ROOM + to] = column[u];
    }
    __syncthreads();
    return true;
}
