// --- selecting ---------------------------------------------------------------------

// Cuts sets of keys by radix.
template <int THREADS_> struct Cutter {
    static constexpr int WARPS = THREADS_ / 32, BINS = 2048;
    unsigned counts[BINS];
    unsigned sums[WARPS + 1];
    unsigned found[3];

    // The sum over the threads before this one; total is the sum over all threads.
    DEVICE unsigned before(unsigned x, unsigned &total) {
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        unsigned upto = x;
#pragma unroll
        for (int d = 1; d < 32; d *= 2) {
            const unsigned y = __shfl_up_sync(0xffffffffu, upto, d);
            if (lane >= d) upto += y;
        }
        __syncthreads(); // the sums may be written again
        if (lane == 31) sums[warp] = upto;
        __syncthreads();
        unsigned w = lane < WARPS ? sums[lane] : 0;
#pragma unroll
        for (int d = 1; d < WARPS; d *= 2) {
            const unsigned y = __shfl_up_sync(0xffffffffu, w, d);
            if (lane >= d) w += y;
        }
        total = __shfl_sync(0xffffffffu, w, WARPS - 1);
        const unsigned ahead = __shfl_sync(0xffffffffu, w, warp == 0 ? 0 : warp - 1);
        return upto - x + (warp == 0 ? 0 : ahead);
    }

    // The keys below a rank, described by a prefix of bits. The `below` keys whose leading bits are less all belong.
    // Of the `equal` keys with these leading bits the first in order of index belong.
    template <class Word> struct Cut {
        Word prefix;
        int left; // how many bits have not been looked at
        unsigned below, equal;
        DEVICE bool less(Word k) const { return k >> left < prefix; }
        DEVICE bool more(Word k) const { return k >> left > prefix; }
        DEVICE bool same(Word k) const { return k >> left == prefix; }
    };

    // Cuts off the smallest `count` keys, 1 or more. It looks at eleven bits at a time, the most significant first,
    // until all keys of the prefix belong.
    template <class Word, int BITS, class KEYS> DEVICE Cut<Word> cut(unsigned count, KEYS keys) {
        Cut<Word> c = {0, BITS, 0, 0};
#pragma unroll 1
        while (c.left > 0) {
            const int width = c.left < 11 ? c.left : 11, shift = c.left - width;
            __syncthreads();
            for (int i = threadIdx.x; i < BINS; i += THREADS_) counts[i] = 0;
            __syncthreads();
            keys.each([&](Word k, unsigned) {
                if (c.left == BITS || k >> (c.left % (8 * sizeof(Word))) == c.prefix) atomicAdd(&counts[(unsigned)(k >> shift) & ((1u << width) - 1)], 1u);
            });
            __syncthreads();
            locate(count - c.below);
            __syncthreads();
            c.prefix = c.prefix << width | found[0];
            c.below += found[1];
            c.equal = found[2];
            c.left = shift;
            if (c.below + c.equal == count) break;
        }
        return c;
    }

    // Finds the bin with the count-th key, how many keys the bins before have, and how many it has itself.
    DEVICE void locate(unsigned count) {
        constexpr int PER = BINS / THREADS_;
        unsigned sum = 0, total;
        for (int i = 0; i < PER; ++i) sum += counts[threadIdx.x * PER + i];
        unsigned at = before(sum, total);
        if (at < count && count <= at + sum) {
            for (int i = 0; i < PER; ++i) {
                const unsigned n = counts[threadIdx.x * PER + i];
                if (at < count && count <= at + n) {
                    found[0] = threadIdx.x * PER + i;
                    found[1] = at;
                    found[2] = n;
                }
                at += n;
            }
        }
    }
};

// Key is what a thread holds of its row. Entry is what shared memory holds of the keys that may belong: a key and its
// column, so that no two are equal. PACKED keys, of narrow types, hold the column too.
template <class K, bool PACKED, class Word = typename K::Word> struct Ranked;
template <class K> struct Ranked<K, true, unsigned> {
    typedef unsigned Key, Entry;
    static constexpr int bits = 32;
    static constexpr unsigned ones = ~0u;
    static DEVICE Key key(unsigned word, unsigned column) { return word << 16 | column; }
    static DEVICE Entry entry(Key k, unsigned) { return k; }
    static DEVICE bool less(Entry a, Entry b) { return a < b; }
    static DEVICE Key of(Entry e) { return e; }
    static DEVICE unsigned word(Entry e) { return e >> 16; }
    static DEVICE unsigned column(Entry e) { return e & 0xffff; }
};
template <class K> struct Ranked<K, false, unsigned> {
    typedef unsigned Key;
    typedef unsigned long long Entry;
    static constexpr int bits = K::bits;
    static constexpr Key ones = K::ones;
    static DEVICE Key key(unsigned word, unsigned) { return word; }
    static DEVICE Entry entry(Key k, unsigned column) { return (unsigned long long)k << 32 | column; }
    static DEVICE bool less(Entry a, Entry b) { return a < b; }
    static DEVICE Key of(Entry e) { return e >> 32; }
    static DEVICE unsigned word(Entry e) { return e >> 32; }
    static DEVICE unsigned column(Entry e) { return (unsigned)e; }
};
template <class K> struct Ranked<K, false, unsigned long long> {
    typedef unsigned long long Key;
    struct Entry {
        Key key, column;
    };
    static constexpr int bits = K::bits;
    static constexpr Key ones = K::ones;
    static DEVICE Key key(Key word, unsigned) { return word; }
    static DEVICE Entry entry(Key k, unsigned column) { return {k, column}; }
    static DEVICE bool less(Entry a, Entry b) { return a.key < b.key || a.key == b.key && a.column < b.column; }
    static DEVICE Key of(Entry e) { return e.key; }
    static DEVICE Key word(Entry e) { return e.key; }
    static DEVICE unsigned column(Entry e) { return e.column; }
};

// Finds the first places of rows, at most PLACES_. First it finds an upper bound of the keys that belong: each thread
// takes the least key of each of its GROUPS groups, each warp ranks those of its threads, and the bound is what at least
// as many of them as there are places do not exceed. Keys up to the bound, mostly few more than belong, go to shared
// memory, which has room for KEPT. There a network sorts them, NET keys a thread. Where NET is 0 the keys before each
// are counted instead, which gives its place.
template <class K, int THREADS_, int ITEMS_, int PLACES_, int KEPT, int NET, bool PACKED, bool MANY> struct Selector : Cutter<THREADS_> {
    typedef Cutter<THREADS_> Base;
    typedef Ranked<K, PACKED> R;
    typedef typename R::Key Key;
    typedef typename R::Entry Entry;
    typedef typename Base::template Cut<Key> Cut;
    static constexpr int WARPS = THREADS_ / 32;
    static constexpr DEVICE int groups(int g) { return g * 2 > ITEMS_ || g * THREADS_ >= 2 * PLACES_ ? g : groups(2 * g); }
    static constexpr int GROUPS = groups(1);
    alignas(16) Entry kept[NET > 0 ? KEPT + KEPT / 32 : KEPT];
    Key bounds[WARPS];
    unsigned filled;

    static DEVICE unsigned position(int u) { return u * THREADS_ + threadIdx.x; }
    // How many of the cols columns a thread holds.
    static DEVICE int of_thread(unsigned cols) { return threadIdx.x < cols ? (cols - threadIdx.x + THREADS_ - 1) / THREADS_ : 0; }

    // Sorts the words of the lanes of a warp.
    static DEVICE Key ordered(Key x) {
        const int lane = threadIdx.x % 32;
#pragma unroll
        for (int run = 2; run <= 32; run *= 2)
#pragma unroll
            for (int d = run / 2; d > 0; d /= 2) {
                const Key y = __shfl_xor_sync(0xffffffffu, x, d == run / 2 ? run - 1 : d);
                const bool up = lane & d;
                x = up ? (x > y ? x : y) : (x < y ? x : y);
            }
        return x;
    }

    // A key that at least count keys of the row do not exceed. R::ones where the row has fewer groups than that.
    DEVICE Key bound(const Key (&key)[ITEMS_], unsigned count) {
        const unsigned each = (count + WARPS * GROUPS - 1) / (WARPS * GROUPS);
        Key most = 0;
#pragma unroll
        for (int g = 0; g < GROUPS; ++g) {
            Key least = key[g];
#pragma unroll
            for (int u = g; u < ITEMS_; u += GROUPS) least = key[u] < least ? key[u] : least;
            const Key k = __shfl_sync(0xffffffffu, ordered(least), each - 1);
            most = k > most ? k : most;
        }
        if (threadIdx.x % 32 == 0) bounds[threadIdx.x / 32] = each > 32 ? R::ones : most;
        __syncthreads();
        most = bounds[0];
#pragma unroll
        for (int w = 1; w < WARPS; ++w) most = bounds[w] > most ? bounds[w] : most;
        return most;
    }

    // Gives each set bit in the masks of all threads a place of its own among the keys kept.
    DEVICE unsigned reserve(unsigned mask) {
        const int lane = threadIdx.x % 32;
        const unsigned mine = __popc(mask);
        unsigned upto = mine;
#pragma unroll
        for (int d = 1; d < 32; d *= 2) {
            const unsigned y = __shfl_up_sync(0xffffffffu, upto, d);
            if (lane >= d) upto += y;
        }
        unsigned at = 0;
        if (lane == 31) at = atomicAdd(&filled, upto);
        return __shfl_sync(0xffffffffu, at, 31) + upto - mine;
    }

    // Keeps the keys of a mask as far as there is room. A block barrier makes them visible.
    DEVICE void keep(const Key (&key)[ITEMS_], unsigned base, unsigned mask) {
        unsigned to = reserve(mask);
        if (to + __popc(mask) > KEPT) return;
#pragma unroll
        for (int u = 0; u < ITEMS_; ++u)
            if (mask >> u & 1) kept[to++] = R::entry(key[u], base + position(u));
    }

    // The columns of a thread that pass a test.
    template <class TEST> static DEVICE unsigned masked(unsigned cols, TEST test) {
        const int mine = of_thread(cols);
        unsigned mask = 0;
#pragma unroll
        for (int u = 0; u < ITEMS_; ++u)
            if (test(u)) mask |= 1u << u;
        return mine < 32 ? mask & ((1u << mine) - 1) : mask;
    }

    // Rows are read in pieces that the threads hold. Where too many keys are kept, all are dropped except the first, as
    // many as there are places, and the piece gets a bound of its own. Where that does not help, the row is cut by radix.
    template <class GET, class PUT> DEVICE void places(unsigned cols, unsigned wanted, GET get, PUT put) {
        const unsigned count = min(wanted, cols);
        if (count > 0) {
            Key most = R::ones;
            unsigned n = 0;
            bool own = true; // whether the piece needs a bound of its own
#pragma unroll 1
            for (unsigned base = 0; base < cols;) {
                Key key[ITEMS_];
                read_words<K, THREADS_, ITEMS_>(base, cols, get, [&](int u, unsigned c, typename K::Word k) { key[u] = R::key(k, c); });
                if (own) {
                    if (threadIdx.x == 0) filled = n;
                    const Key least = bound(key, count);
                    most = least < most ? least : most;
                }
                keep(key, base, masked(cols - base, [&](int u) { return key[u] <= most; }));
                __syncthreads();
                const unsigned now = filled;
                if (MANY) __syncthreads();
                if (now <= KEPT) {
                    n = now;
                    own = false;
                    base += THREADS_ * ITEMS_;
                } else if (MANY && !own) {
                    n = shrink(n, count, most);
                    own = true;
                } else {
                    n = exactly(cols, count, most, get);
                    break;
                }
                if (!MANY) break;
            }
            settle(n, count, put);
        }
        for (unsigned p = count + threadIdx.x; p < wanted; p += THREADS_) put(p, false, K::ones, 0u);
    }

    // How many of the n keys kept come before one of them.
    DEVICE unsigned place(Entry e, unsigned n) const {
        unsigned place = 0;
#pragma unroll 8
        for (unsigned i = 0; i < n; ++i) place += R::less(kept[i], e);
        return place;
    }

    // Drops all but the first count of the n keys kept. The last of these becomes the bound. Returns how many are left.
    DEVICE unsigned shrink(unsigned n, unsigned count, Key &most) {
        constexpr int PER = (KEPT + THREADS_ - 1) / THREADS_;
        Entry e[PER];
        unsigned to[PER];
#pragma unroll
        for (int r = 0; r < PER; ++r) {
            const unsigned t = r * THREADS_ + threadIdx.x;
            to[r] = count;
            if (t < n) {
                e[r] = kept[t];
                to[r] = place(e[r], n);
            }
        }
        __syncthreads();
#pragma unroll
        for (int r = 0; r < PER; ++r)
            if (to[r] < count) kept[to[r]] = e[r];
        __syncthreads();
        if (n >= count) most = R::of(kept[count - 1]);
        return min(n, count);
    }

    // A thread's part of a row that is read again. Each warp reads neighbouring columns, so that the order in its part,
    // and that of the parts, is that of the columns.
    template <class GET> struct Row {
        const GET &get;
        unsigned cols;
        template <class F> DEVICE void all(F f) const {
            const unsigned part = (cols + THREADS_ - 1) / THREADS_ * 32, end = min(cols, (threadIdx.x / 32 + 1) * part);
#pragma unroll 4
            for (unsigned at = threadIdx.x / 32 * part; at < end; at += 32) {
                const unsigned i = at + threadIdx.x % 32;
                f(R::key(get(i < end ? i : end - 1), i), i, i < end);
            }
        }
        template <class F> DEVICE void each(F f) const {
            all([&](Key k, unsigned i, bool inside) {
                if (inside) f(k, i);
            });
        }
    };

    // Counts the keys of a row below a cut, and in sums the keys of each warp's part that equal it.
    template <class GET> DEVICE unsigned tally(const Row<GET> &row, const Cut &c) {
        __syncthreads();
        if (threadIdx.x == 0) this->found[0] = 0;
        __syncthreads();
        unsigned less = 0, equal = 0;
        row.each([&](Key k, unsigned) {
            less += c.less(k);
            equal += c.same(k);
        });
#pragma unroll
        for (int d = 16; d > 0; d /= 2) {
            less += __shfl_xor_sync(0xffffffffu, less, d);
            equal += __shfl_xor_sync(0xffffffffu, equal, d);
        }
        if (threadIdx.x % 32 == 0) {
            this->sums[threadIdx.x / 32] = equal;
            atomicAdd(&this->found[0], less);
        }
        __syncthreads();
        return this->found[0];
    }

    // Keeps the keys of a row that has too many up to the bound, which is most. Usually many keys equal the bound; the
    // first of them belong. Returns how many are kept.
    template <class GET> DEVICE unsigned exactly(unsigned cols, unsigned count, Key most, GET get) {
        const Row<GET> row = {get, cols};
        Cut c = {most, 0, 0, 0};
        c.below = tally(row, c);
        if (c.below > KEPT) {
            c = this->template cut<Key, R::bits>(count, row);
            tally(row, c);
        }
        unsigned at = c.below;
        for (int w = 0; w < threadIdx.x / 32; ++w) at += this->sums[w];
        if (threadIdx.x == 0) filled = 0;
        __syncthreads();
        row.all([&](Key k, unsigned i, bool inside) {
            const bool same = inside && c.same(k);
            const unsigned votes = __ballot_sync(0xffffffffu, same);
            if (inside && c.less(k) || same && at + __popc(votes & ((1u << threadIdx.x % 32) - 1)) < count) kept[atomicAdd(&filled, 1u)] = R::entry(k, i);
            at += __popc(votes);
        });
        __syncthreads();
        return filled;
    }

    // Moves the first count of the n keys kept to their places.
    template <class PUT> DEVICE void settle(unsigned n, unsigned count, PUT put) {
        if constexpr (NET > 0) {
            Entry x[NET];
#pragma unroll
            for (int u = 0; u < NET; ++u) x[u] = position(u) < n ? kept[position(u)] : ~(Entry)0;
            __syncthreads();
            Network<Entry, THREADS_, NET>::sort(x, kept);
#pragma unroll
            for (int u = 0; u < NET; ++u)
                if (position(u) < count) put(position(u), true, R::word(x[u]), R::column(x[u]));
        } else {
            for (unsigned t = threadIdx.x; t < n; t += THREADS_) {
                const Entry e = kept[t];
                const unsigned p = place(e, n);
                if (p < count) put(p, true, R::word(e), R::column(e));
            }
        }
    }
};
