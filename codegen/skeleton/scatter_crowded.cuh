
// --- crowded tiles ----------------------------------------------------------------
//
// A tile whose bin has no room for its columns is crowded: few places may have most of the columns, and their block would
// be at work when all others have ended. All blocks share such tiles. First they sort the columns of crowded tiles within
// each chunk of keys, by place. Then a tile is cut into slices, which blocks take one after the other: a
// slice's columns are found by bisection in all chunks, and folded as a bin's are. Where a tile has several slices, each
// ends in partial results, and blocks that take the places of these tiles merge them, in the order of the slices. So
// results depend neither on timing nor on the number of blocks.

// What a block folds next, in shared memory: the places of its own tile or of a slice of a crowded one, or one place of partial results.
struct Job {
    INDEX tile;
    int low, high; // its places; none if the block's own tile is a crowded one
    int size;      // columns listed
    int part;      // the table for a slice's partial results, or the first to merge; -1 if the job ends in results
    int merges;    // how many tables to merge
    bool slice;
};

// Counts work of the block that is done; what it has written is then there to be read.
DEVICE void count_done(unsigned *counter) {
    __syncthreads();
    if (threadIdx.x == 0) {
        device_fence();
        atomicAdd(counter, 1u);
    }
}

// Waits until a counter has reached a number.
DEVICE void wait_for(const unsigned *counter, unsigned all) {
    if (threadIdx.x == 0)
        while (acquired(counter) < all) __nanosleep(20);
    __syncthreads();
}

// Sorts the columns of crowded tiles within chunks, by place and column.
template <class Place> DEVICE void sort_crowded(Listed &s, const Bins &b, Place place_in) {
    unsigned long long *const words = reinterpret_cast<unsigned long long *>(s.column);
    static_assert(CHUNK_KEYS * 8 <= 8 * ROOM, "room for a word of each key");
    for (unsigned chunk; (chunk = take_next(b.counters + SORTS_TAKEN)) < b.chunks;) {
        if (threadIdx.x == 0) s.shared = 0;
        __syncthreads();
#pragma unroll
        for (int u = 0; u < KEYS; ++u) {
            const int own = u * THREADS + threadIdx.x;
            const INDEX place = place_at((INDEX)(chunk * CHUNK_KEYS) + own, b.columns, place_in);
            if (place >= 0 && fresh(b.counter_of(place / PLACES)) > (unsigned)b.room)
                words[atomicAdd(&s.shared, 1)] = (unsigned long long)place << 16 | own;
        }
        __syncthreads();
        const int n = s.shared;
        for (int i = threadIdx.x; i < n; i += THREADS) {
            const unsigned long long word = words[i];
            int to = 0;
            for (int j = 0; j < n; ++j) to += words[j] < word;
            b.sorted_words()[(long long)chunk * CHUNK_KEYS + to] = word;
        }
        if (threadIdx.x == 0) b.chunk_lengths()[chunk] = n;
        count_done(b.counters + SORTS_DONE);
    }
}

// How many of n sorted words are below a bound.
DEVICE int words_below(const unsigned long long *words, int n, unsigned long long bound) {
    int low = 0;
    while (low < n) {
        const int middle = (low + n) / 2;
        if (fresh(words + middle) < bound) low = middle + 1;
        else n = middle;
    }
    return low;
}

// The sum of x over the threads up to this one; `all` is that of all threads.
DEVICE int sum_upto(Listed &s, int x, int &all) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        const int other = __shfl_up_sync(0xffffffffu, x, d);
        if (lane >= d) x += other;
    }
    if (lane == 31) s.found[0][warp] = x;
    __syncthreads();
    all = 0;
    for (int w = 0; w < WARPS; ++w) {
        if (w == warp) x += all;
        all += s.found[0][w];
    }
    return x;
}

// Lists the columns of a tile from number `from` to number `to`, in the order of the chunks, by place within a chunk; then
// puts them in the order of places.
DEVICE void list_slice(Listed &s, const Bins &b, INDEX tile, int from, int to) {
    INDEX *const ends = s.column + ROOM, *const begins = ends + THREADS; // of the tile's words in this thread's chunk
    int before = 0;
    for (unsigned base = 0; base < b.chunks && before < to; base += THREADS) {
        const unsigned chunk = base + threadIdx.x;
        const unsigned long long *const words = b.sorted_words() + (long long)min(chunk, b.chunks - 1) * CHUNK_KEYS;
        const int length = chunk < b.chunks ? fresh(b.chunk_lengths() + chunk) : 0;
        const int begin = words_below(words, length, (unsigned long long)tile * PLACES << 16);
        const int end = words_below(words, length, (unsigned long long)(tile + 1) * PLACES << 16);
        int all;
        ends[threadIdx.x] = sum_upto(s, end - begin, all);
        begins[threadIdx.x] = ends[threadIdx.x] - end; // so that word w of this chunk has number before + begins + w
        __syncthreads();
        for (int i = max(from - before, 0) + threadIdx.x; i < min(to - before, all); i += THREADS) {
            int low = 0; // the first chunk that ends behind number i
            for (int d = THREADS / 2; d > 0; d /= 2)
                if (ends[low + d - 1] <= i) low += d;
            const unsigned long long word = fresh(b.sorted_words() + (long long)(base + low) * CHUNK_KEYS + (i - begins[low]));
            s.column[before + i - from] = (INDEX)((base + low) * CHUNK_KEYS) + (INDEX)(word & 0xffff);
            s.place[before + i - from] = (unsigned short)((word >> 16) - (unsigned long long)tile * PLACES);
        }
        before += all;
        __syncthreads();
    }
    sort_places(s, to - from);
}

// Counts the block as one that leaves. The last one sets all counters to zero.
DEVICE void leave_launch(const Bins &b) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        device_fence();
        last = atomicInc(b.counters + CHUNKS_DONE, b.chunks + gridDim.x) == b.chunks + gridDim.x;
        if (last) device_fence();
    }
    __syncthreads();
    if (!last) return;
    for (INDEX i = threadIdx.x; i < b.tiles; i += THREADS) *b.counter_of(i) = 0;
    if (threadIdx.x < BINS && threadIdx.x != CHUNKS_DONE) b.counters[threadIdx.x] = 0;
}

// Puts the columns of all tiles in bins, together with all other blocks, and orders those of the block's own, which is the
// first job. Returns whether there are crowded tiles.
template <class Place> DEVICE bool first_job(Listed &s, const Bins &b, Place place_in, Job &job) {
    const bool crowded = share_keys(b, place_in);
    unsigned *const count = b.counter_of((INDEX)blockIdx.x);
    const unsigned found = fresh(count);
    const bool skips = found > (unsigned)b.room;
    if (threadIdx.x == 0) job = Job{(INDEX)blockIdx.x, 0, skips ? 0 : b.places_of((INDEX)blockIdx.x), skips ? 0 : (int)found, -1, 0, false};
    if (crowded) sort_crowded(s, b, place_in);
    else {
        __syncthreads(); // all threads have read the counter
        if (threadIdx.x == 0) *count = 0;
    }
    if (!skips) order_bin(s, b, (int)found);
    __syncthreads();
    return crowded;
}

static_assert(2 * SLICE <= ROOM, "room for the columns of a slice");

// Makes the next slice of a crowded tile the job, or the next place of one whose partial results are to be merged. False when there is
// none.
DEVICE bool next_job(Listed &s, const Bins &b, Job &job) {
    const unsigned slices = fresh(b.counters + SLICES), merges = fresh(b.counters + MERGES) * PLACES;
    if (job.merges == 0) {
        if (job.slice) count_done(b.counters + SLICES_DONE);
        else wait_for(b.counters + SORTS_DONE, b.chunks);
        const unsigned next = take_next(b.counters + SLICES_TAKEN);
        if (next < slices) {
            const Crowded of = fresh(b.crowded_tiles() + fresh(b.tile_slices() + next));
            const int slice = (int)next - of.slice, from = of.slice_begin(slice), to = of.slice_begin(slice + 1);
            if (threadIdx.x == 0) job = Job{of.tile, 0, b.places_of(of.tile), to - from, of.slice_count() > 1 ? of.part + slice : -1, 0, true};
            list_slice(s, b, of.tile, from, to);
            return true;
        }
        wait_for(b.counters + SLICES_DONE, slices);
    }
    for (unsigned next; (next = take_next(b.counters + MERGES_TAKEN)) < merges;) {
        const Crowded of = fresh(b.crowded_tiles() + fresh(b.merged_tiles() + next / PLACES));
        const int place = (int)(next % PLACES);
        if (place >= b.places_of(of.tile)) continue;
        if (threadIdx.x == 0) {
            job = Job{of.tile, place, place + 1, 0, of.part, of.slice_count(), false};
            s.shares[0] = (unsigned short)place;
        }
        __syncthreads();
        return true;
    }
    leave_launch(b);
    return false;
}
