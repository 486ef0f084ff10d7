
// --- bins: blocks share the keys --------------------------------------------------
//
// Every tile of PLACES places has a bin, a block and a counter. Blocks take chunks of keys
// as they come, and put each column in the bin of its tile, in any order. One that finds no
// chunk left waits for those at work, none of which waits; then it puts its own bin in
// order, so that results do not depend on timing. A bin that is full counts on: its block
// reads the keys itself.

constexpr int KEYS = 2;                  // of a thread, on their way together
constexpr int COLUMN_BITS = 48;          // of a word in a bin; its place in the tile is above
struct alignas(16) WordPair { unsigned long long first, second; };
static_assert(PLACES <= 1 << (64 - COLUMN_BITS), "places above columns");

// What other blocks have written before they added to a counter is there once it is read.
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

// Puts all columns in bins, together with all other blocks. The first counter gives chunks
// out. The second counts those that are done, then the blocks that know; the last of them
// leaves both zero.
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
            asm volatile("fence.acq_rel.gpu;" ::: "memory"); // with the barrier: of what all threads have written
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

// Lists the columns of all places of the block, in the order of places and columns. Fewer
// than ROOM / 2 words are put in order by counting those before each. False where the bin
// had no room for them.
template <class Place> DEVICE bool take_bin(Listed &s, unsigned *counters, unsigned long long *bins, int room, INDEX columns, Place place_in, INDEX &next, int &size) {
    share_keys(counters, bins, room, columns, place_in);
    unsigned *const count = counters + 2 + blockIdx.x;
    const unsigned found = fresh(count);
    WordPair *const pairs = reinterpret_cast<WordPair *>(s.column);
    unsigned long long *const words = &pairs->first;
    const int own = (int)min(found, (unsigned)room);
    for (int i = threadIdx.x; i < own + own % 2; i += THREADS)
        words[i] = i < own ? fresh(bins + (long long)blockIdx.x * room + i) : ~0ull;
    __syncthreads();
    if (threadIdx.x == 0) *count = 0;
    if (found > (unsigned)room) return false;
    next = columns;
    size = own;
    for (int i = threadIdx.x; i < size; i += THREADS) {
        const unsigned long long word = words[i];
        int at = 0;
#pragma unroll 4
        for (int j = 0; j < size; j += 2) {
            const WordPair pair = pairs[j / 2];
            at += (pair.first < word) + (pair.second < word);
        }
        s.column[ROOM + at] = (INDEX)(word & ((1ull << COLUMN_BITS) - 1));
        s.place[at] = (unsigned short)(word >> COLUMN_BITS);
    }
    __syncthreads();
    for (int i = threadIdx.x; i <= size; i += THREADS) { // places up to that of entry i begin there at the latest
        const int first = i > 0 ? s.place[i - 1] + 1 : 0, last = i < size ? s.place[i] : PLACES;
        for (int place = first; place <= last; ++place) s.begin[place] = i;
    }
    __syncthreads();
    return true;
}
