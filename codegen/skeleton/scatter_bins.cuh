
// --- bins: blocks share the keys --------------------------------------------------
//
// Every tile of PLACES places has a bin, a block and a counter. Blocks take one chunk of keys after the other and put
// each column in the bin of its tile, in any order. A block that finds no chunk left waits for the blocks that still
// work, none of which waits itself. Then it puts its own bin in order, so that results do not depend on timing. A bin
// that overflows goes on counting; its tile is crowded, and all blocks share its columns (scatter_crowded.cuh).

constexpr int KEYS = 2;                         // keys that a thread has under way
constexpr unsigned CHUNK_KEYS = KEYS * THREADS; // keys of a chunk
constexpr int COLUMN_BITS = 48;                 // bits for the column in a word of a bin; the place in the tile is above
static_assert(PLACES <= 1 << (64 - COLUMN_BITS), "places above columns");

// The counters of a launch. Those of the bins follow from BINS on, each in a sector of its own: additions to one sector wait for
// each other.
enum {
    CHUNKS_TAKEN, CHUNKS_DONE, // chunks; then the plan for crowded tiles is done, and then blocks
    CROWDED,                   // crowded tiles
    SORTS_TAKEN, SORTS_DONE,   // chunks whose columns of crowded tiles are being put in order
    SLICES, SLICES_TAKEN, SLICES_DONE, PARTIALS, // slices of crowded tiles, and those that end in partial results
    MERGES, MERGES_TAKEN,      // crowded tiles with partial results, and places of these
    BINS = 16, APART = 8
};

// A crowded tile, its columns, the first of its slices, and of its partial results. Slices have from SLICE to twice as
// many columns, or fewer if there is only one.
struct Crowded {
    int tile, columns, slice, part;
    DEVICE int slice_count() const { return max(columns / SLICE, 1); }
    DEVICE int slice_begin(int s) const { return (int)((long long)columns * s / slice_count()); }
};

// What the blocks of a launch share.
struct Bins {
    unsigned *counters;
    unsigned long long *words; // of the bins
    int room;                  // columns for which a bin has room
    INDEX columns;
    unsigned chunks;           // of keys
    INDEX places, tiles;

    DEVICE Bins(unsigned *counters_, unsigned long long *words_, int room_, INDEX columns_, INDEX places_) {
        counters = counters_, words = words_, room = room_, columns = columns_, places = places_;
        chunks = (unsigned)((columns_ + CHUNK_KEYS - 1) / CHUNK_KEYS);
        tiles = (places_ + PLACES - 1) / PLACES;
    }
    DEVICE unsigned *counter_of(INDEX tile) const { return counters + BINS + (long long)tile * APART; }
    DEVICE int places_of(INDEX tile) const { return (int)min(places - tile * PLACES, (INDEX)PLACES); }
    // The columns of crowded tiles, sorted by place within each chunk, and how many they are in each.
    DEVICE unsigned long long *sorted_words() const { return words + (((long long)tiles * room + 1) & ~1ll); } // whole accesses of 16 bytes
    DEVICE int *chunk_lengths() const { return reinterpret_cast<int *>(sorted_words() + (long long)chunks * CHUNK_KEYS); }
    // Crowded tiles; of each slice, which of these is its tile; and those with partial results.
    DEVICE Crowded *crowded_tiles() const { return reinterpret_cast<Crowded *>(chunk_lengths() + ((chunks + 3) & ~3u)); }
    DEVICE int *tile_slices() const { return reinterpret_cast<int *>(crowded_tiles() + most_crowded()); }
    DEVICE int *merged_tiles() const { return tile_slices() + most_slices(); }
    DEVICE char *part_tables() const { return reinterpret_cast<char *>((reinterpret_cast<unsigned long long>(merged_tiles() + most_slices()) + 15) & ~15ull); }
    DEVICE long long most_crowded() const { return columns / BIN_LEAST + 1; }
    DEVICE long long most_parts() const { return columns / SLICE; }
    DEVICE long long most_slices() const { return (columns / SLICE + most_crowded() + 3) & ~3ll; }
};

// Reads a counter; what other blocks have written before they added to it is then there to be read.
DEVICE unsigned acquired(const unsigned *counter) {
    unsigned n;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(n) : "l"(counter) : "memory");
    return n;
}
DEVICE void device_fence() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

// Takes the next number of a counter; all threads get the same.
DEVICE unsigned take_next(unsigned *counter) {
    __shared__ unsigned taken;
    __syncthreads();
    if (threadIdx.x == 0) taken = atomicAdd(counter, 1u);
    __syncthreads();
    return taken;
}

// Puts the columns of a chunk in their bins. Threads of a warp that go to the same bin count themselves together. The
// first column for which a bin has no room makes its tile a crowded one.
template <class Place> DEVICE void fill_bins(const Bins &b, INDEX base, Place place_in) {
    INDEX place[KEYS];
    unsigned same[KEYS], at[KEYS];
#pragma unroll
    for (int u = 0; u < KEYS; ++u) place[u] = place_at(base + u * THREADS + threadIdx.x, b.columns, place_in);
#pragma unroll
    for (int u = 0; u < KEYS; ++u) {
        same[u] = __match_any_sync(0xffffffffu, place[u] >= 0 ? (int)(place[u] / PLACES) : -1);
        const bool counts = place[u] >= 0 && __ffs(same[u]) - 1 == threadIdx.x % 32;
        at[u] = counts ? atomicAdd(b.counter_of(place[u] / PLACES), (unsigned)__popc(same[u])) : 0;
    }
#pragma unroll
    for (int u = 0; u < KEYS; ++u) {
        at[u] = __shfl_sync(0xffffffffu, at[u], __ffs(same[u]) - 1) + __popc(same[u] & ((1u << threadIdx.x % 32) - 1));
        if (place[u] < 0) continue;
        const INDEX tile = place[u] / PLACES;
        if (at[u] < (unsigned)b.room)
            b.words[(long long)tile * b.room + at[u]] = (unsigned long long)(place[u] % PLACES) << COLUMN_BITS | (unsigned long long)(base + u * THREADS + threadIdx.x);
        else if (at[u] == (unsigned)b.room)
            b.crowded_tiles()[atomicAdd(b.counters + CROWDED, 1u)].tile = (int)tile;
    }
}

// Says into how many slices each crowded tile is cut, and numbers these.
DEVICE void plan_slices(const Bins &b) {
    const unsigned crowded = fresh(b.counters + CROWDED);
    const int lane = threadIdx.x % 32;
    for (unsigned i = threadIdx.x / 32; i < crowded; i += WARPS) {
        const int tile = fresh(&b.crowded_tiles()[i].tile);
        Crowded own{tile, (int)fresh(b.counter_of(tile)), 0, 0};
        const unsigned slices = own.slice_count();
        unsigned first = 0;
        if (lane == 0) {
            first = atomicAdd(b.counters + SLICES, slices);
            own.slice = (int)first;
            if (slices > 1) {
                own.part = (int)atomicAdd(b.counters + PARTIALS, slices);
                b.merged_tiles()[atomicAdd(b.counters + MERGES, 1u)] = (int)i;
            }
            b.crowded_tiles()[i] = own;
        }
        first = __shfl_sync(0xffffffffu, first, 0);
        for (unsigned s = lane; s < slices; s += 32) b.tile_slices()[first + s] = (int)i;
    }
}

// Puts all columns in bins, together with all other blocks. The block that ends last plans how to share crowded tiles.
// Returns whether there are any; if not, the last block to see this leaves the counters zero.
template <class Place> DEVICE bool share_keys(const Bins &b, Place place_in) {
    __shared__ unsigned taken, crowded;
    __shared__ bool ends;
    unsigned *const counters = b.counters;
    const unsigned all = b.chunks, last = all + gridDim.x;
    if (threadIdx.x == 0) taken = acquired(counters + CHUNKS_DONE) < all ? atomicAdd(counters + CHUNKS_TAKEN, 1u) : all;
    __syncthreads();
    for (unsigned mine = taken; mine < all; mine = taken) {
        fill_bins(b, (INDEX)(mine * CHUNK_KEYS), place_in);
        __syncthreads();
        if (threadIdx.x == 0) {
            device_fence(); // after the barrier it covers what all threads have written
            ends = atomicInc(counters + CHUNKS_DONE, last) == all - 1;
            if (ends) device_fence();
            taken = ends ? all : atomicAdd(counters + CHUNKS_TAKEN, 1u);
        }
        __syncthreads();
        if (ends) {
            plan_slices(b);
            __syncthreads();
            if (threadIdx.x == 0) {
                device_fence();
                atomicInc(counters + CHUNKS_DONE, last);
            }
        }
    }
    if (threadIdx.x == 0) {
        while (acquired(counters + CHUNKS_DONE) <= all) __nanosleep(20);
        crowded = fresh(counters + CROWDED);
        if (crowded == 0 && atomicInc(counters + CHUNKS_DONE, last) == last) counters[CHUNKS_TAKEN] = 0;
    }
    __syncthreads();
    return crowded != 0;
}

// Lists the columns of all places of the block, by place, then by column. Words first go to their places in any order;
// then each moves behind those of its place with smaller columns. There is room for `size`.
DEVICE void order_bin(Listed &s, const Bins &b, int size) {
    const unsigned long long *const words = b.words + (long long)blockIdx.x * b.room;
    for (int i = threadIdx.x; i < PLACES; i += THREADS) s.count[i] = 0;
    __syncthreads();
    constexpr int HELD = ROOM / THREADS; // words that a thread holds
    INDEX column[HELD];
    int place[HELD], at[HELD];
#pragma unroll
    for (int u = 0; u < HELD; ++u) {
        const int i = u * THREADS + threadIdx.x;
        if (i >= size) continue;
        const unsigned long long word = fresh(words + i);
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
}
