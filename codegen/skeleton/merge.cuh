// --- sorting longer rows ------------------------------------------------------------

// All blocks share the rows. Chunks that a block holds are sorted first. Then neighbouring runs of sorted keys become
// one, level by level, until a row is one run; between levels keys are in memory. Blocks take one task after the other:
// a chunk, or a tile of SIZE places of what two runs become. A task of a level begins when all tasks of the levels ahead are done.
// These were taken earlier, so that the block with the first task that is not done never waits.
template <int SIZE> struct MergeTasks {
    unsigned *counters;            // tasks that were taken, tasks that are done, blocks that have left
    unsigned rows, together;       // rows in all, and those whose keys memory has room for at one time
    unsigned cols, wanted;
    unsigned chunks, parts, last, each; // chunks of a row, tiles of its wanted places, the last level, the tasks of a row
    unsigned level, row, slot, tile;    // of the current task; slot is the row's place in memory

    DEVICE void count_tasks() {
        chunks = tiles_of(cols);
        parts = tiles_of(min(cols, wanted));
        for (last = 0; chunks > 1ull << last;) ++last;
        each = 0;
        for (unsigned l = 0; l <= last; ++l) each += tiles_of_level(l);
    }
    static DEVICE unsigned tiles_of(unsigned places) { return places == 0 ? 1 : (places - 1) / SIZE + 1; }
    DEVICE unsigned tiles_of_run(unsigned level) const { return (unsigned)min(1ull << level, (unsigned long long)parts); }
    // The tasks of a level in each row. Runs of all columns end with the row.
    DEVICE unsigned tiles_of_level(unsigned level) const {
        return parts >= 1ull << level ? chunks : (((chunks - 1) >> level) + 1) * parts;
    }

    // Goes on to the next task. False where there is none.
    DEVICE bool next_task() {
        __shared__ unsigned taken;
        __syncthreads();
        if (threadIdx.x == 0) taken = atomicAdd(counters, 1u);
        __syncthreads();
        const unsigned group = taken / (each * together);
        if (group >= (rows - 1) / together + 1) return false;
        const unsigned first = group * together, n = min(rows - first, together);
        unsigned ahead = first * each, at = taken - ahead;
        for (level = 0; level <= last && at >= n * tiles_of_level(level); ++level) {
            at -= n * tiles_of_level(level);
            ahead += n * tiles_of_level(level);
        }
        if (level > last) return false;
        slot = at % n;
        row = first + slot;
        tile = at / n;
        if (threadIdx.x == 0)
            while (ahead > 0 && done_tasks() < ahead) __nanosleep(20);
        __syncthreads();
        return true;
    }
    // How many tasks are done; what their blocks have written is then there to be read.
    DEVICE unsigned done_tasks() const {
        unsigned n;
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(n) : "l"(counters + 1) : "memory");
        return n;
    }
    DEVICE void end_task() const {
        __syncthreads();
        if (threadIdx.x == 0) {
            asm volatile("fence.acq_rel.gpu;" ::: "memory"); // after the barrier it covers what all threads have written
            atomicAdd(counters + 1, 1u);
        }
    }
    // The last block that leaves puts the counters back to zero.
    DEVICE void leave_tasks() const {
        if (threadIdx.x == 0 && atomicInc(counters + 2, gridDim.x - 1) == gridDim.x - 1) counters[0] = counters[1] = 0;
    }
};

// A word without its column, for orders that are only of values: equal words are one value.
template <class K> struct WordAlone {
    typedef typename K::Word Entry;
    static DEVICE Entry entry(Entry word, unsigned) { return word; }
    static DEVICE bool less(Entry a, Entry b) { return a < b; }
    static DEVICE Entry word(Entry e) { return e; }
    static DEVICE unsigned column(Entry) { return 0; }
};

// Does the tasks. R says what an entry of a run is, and Chunk sorts chunks.
template <class K, class R, class Chunk, int THREADS_, int ITEMS_> struct MergeSorter {
    typedef typename R::Entry Entry;
    typedef MergeTasks<THREADS_ * ITEMS_> Tasks;
    static constexpr int SIZE = THREADS_ * ITEMS_;
    union {
        Chunk chunk;
        Entry room[SIZE + SIZE / 32]; // padded, as that of a Network is
    };
    unsigned ends[2];

    static DEVICE unsigned padded(unsigned i) { return i + i / 32; }

    template <class GET, class PUT> DEVICE void do_task(const Tasks &t, void *memory, GET get, PUT put) {
        Entry *const entries = reinterpret_cast<Entry *>(memory);
        Entry *const even = entries + (long long)t.slot * t.cols, *const odd = even + (long long)t.together * t.cols;
        if (t.level == 0) sort_chunk(t, even, get, put);
        else if (t.level % 2 != 0) merge_tile(t, even, odd, put);
        else merge_tile(t, odd, even, put);
        if (t.level == t.last && t.tile == t.parts - 1)
            for (unsigned p = min(t.cols, t.wanted) + threadIdx.x; p < t.wanted; p += THREADS_) put(p, false, K::ones, 0u);
    }

    // Sorts a chunk.
    template <class GET, class PUT> DEVICE void sort_chunk(const Tasks &t, Entry *to, GET get, PUT put) {
        const unsigned base = t.tile * SIZE, cols = min(t.cols - base, (unsigned)SIZE);
        chunk.places(cols, min(cols, t.wanted), [&](unsigned c) { return get(base + c); },
                     [&](unsigned p, bool, typename K::Word word, unsigned column) {
                         if (t.last == 0) put(p, true, word, column);
                         else to[base + p] = R::entry(word, base + column);
                     });
    }

    // Of two runs, how many of the first d places of what they become are from the first one. The lanes of a warp look
    // at 32 places at a time.
    static DEVICE unsigned from_first(const Entry *a, unsigned size_a, const Entry *b, unsigned size_b, unsigned d) {
        unsigned low = d > size_b ? d - size_b : 0, high = min(d, size_a);
#pragma unroll 1
        while (low < high) {
            const unsigned step = (high - low - 1) / 32 + 1, i = low + threadIdx.x % 32 * step;
            bool first = false;
            if (i < high) first = !R::less(fresh(b + (d - 1 - i)), fresh(a + i));
            const unsigned n = __popc(__ballot_sync(0xffffffffu, first));
            high = min(high, low + n * step);
            if (n > 0) low += (n - 1) * step + 1;
        }
        return low;
    }

    // Writes the places of a tile of what two runs become.
    template <class PUT> DEVICE void merge_tile(const Tasks &t, const Entry *from, Entry *to, PUT put) {
        const unsigned each = t.tiles_of_run(t.level), part = t.tile % each;
        const unsigned long long half = (unsigned long long)SIZE << (t.level - 1), start = t.tile / each * 2 * half;
        const unsigned size_a = kept_of(t, start, half), size_b = kept_of(t, start + half, half), first = part * SIZE;
        const unsigned all = min(size_a + size_b, t.wanted), n = all > first ? min(all - first, (unsigned)SIZE) : 0;
        const Entry *a = from + start, *b = a + half;
#pragma unroll 1
        for (unsigned w = threadIdx.x / 32; w < 2; w += THREADS_ / 32) {
            const unsigned i = from_first(a, size_a, b, size_b, first + w * n);
            if (threadIdx.x % 32 == 0) ends[w] = i;
        }
        __syncthreads();
        const unsigned begin = ends[0], mine = ends[1] - begin;
        read_runs(a + begin, b + (first - begin), mine, n);
        Entry x[ITEMS_];
        take_lesser(x, mine, n);
        __syncthreads();
#pragma unroll
        for (int u = 0; u < ITEMS_; ++u) room[padded(threadIdx.x * ITEMS_) + padded(u)] = x[u];
        __syncthreads();
#pragma unroll
        for (int u = 0; u < ITEMS_; ++u) {
            const unsigned p = u * THREADS_ + threadIdx.x;
            if (p >= n) continue;
            const Entry e = room[padded(p)];
            if (t.level == t.last) put(first + p, true, R::word(e), R::column(e));
            else to[start + first + p] = e;
        }
    }
    // The keys of a run that begins at a column: no more than are wanted are kept.
    static DEVICE unsigned kept_of(const Tasks &t, unsigned long long start, unsigned long long length) {
        return start >= t.cols ? 0 : (unsigned)min(min(length, t.cols - start), (unsigned long long)t.wanted);
    }

    // Reads the tile's keys of both runs, behind each other.
    DEVICE void read_runs(const Entry *a, const Entry *b, unsigned size_a, unsigned n) {
        Entry x[ITEMS_];
#pragma unroll
        for (int u = 0; u < ITEMS_; ++u) {
            const unsigned i = u * THREADS_ + threadIdx.x;
            if (i < n) x[u] = fresh(i < size_a ? a + i : b + (i - size_a));
        }
#pragma unroll
        for (int u = 0; u < ITEMS_; ++u) {
            const unsigned i = u * THREADS_ + threadIdx.x;
            if (i < n) room[padded(i)] = x[u];
        }
        __syncthreads();
    }

    // Takes the keys of a thread's places: it looks for where these begin in both runs, then takes the lesser key each time.
    DEVICE void take_lesser(Entry (&x)[ITEMS_], unsigned size_a, unsigned n) const {
        const unsigned d = min(threadIdx.x * ITEMS_, n), size_b = n - size_a;
        unsigned i = d > size_b ? d - size_b : 0, high = min(d, size_a);
        while (i < high) {
            const unsigned middle = (i + high) / 2;
            if (R::less(room[padded(size_a + (d - 1 - middle))], room[padded(middle)])) high = middle;
            else i = middle + 1;
        }
        unsigned j = size_a + (d - i);
        Entry a = {}, b = {};
        if (i < size_a) a = room[padded(i)];
        if (j < n) b = room[padded(j)];
#pragma unroll
        for (int u = 0; u < ITEMS_; ++u) {
            const bool first = j >= n || i < size_a && !R::less(b, a);
            x[u] = first ? a : b;
            const unsigned next = first ? ++i : ++j;
            if (next < n) (first ? a : b) = room[padded(next)];
        }
    }
};
