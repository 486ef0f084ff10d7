// --- sorting ---------------------------------------------------------------------

// A SortKey maps values to words whose order is theirs: zeros of either sign are one
// word, every NaN is the word of ones, above all others. The word of a value in a
// descending sort is its complement.

template <typename W, int BITS> struct Words {
    typedef W Word;
    static constexpr int bits = BITS;
    static constexpr W ones = BITS == 8 * sizeof(W) ? ~(W)0 : ((W)1 << BITS % (8 * sizeof(W))) - 1, top = (W)1 << (BITS - 1);
    static DEVICE W floating(W u) { return u & top ? ones & ~u : u | top; }
    static DEVICE W pattern(W k) { return k & top ? k & ~top : ones & ~k; }
};
template <typename T, int BITS> struct IntegerKey : Words<unsigned, BITS> {
    typedef Words<unsigned, BITS> W;
    static DEVICE unsigned of(T x) { return ((unsigned)x & W::ones) ^ ((T)-1 < 0 ? W::top : 0); }
    static DEVICE T value(unsigned k) { return (T)(k ^ ((T)-1 < 0 ? W::top : 0)); }
};
template <typename T, int BITS> struct NarrowKey : Words<unsigned, BITS> {
    typedef Words<unsigned, BITS> W;
    static DEVICE unsigned of(float x) { return x != x ? W::ones : x == 0 ? W::top : W::floating(from_f32<T>(x).bits); }
    static DEVICE float value(unsigned k) {
        T x;
        x.bits = W::pattern(k);
        return to_f32(x);
    }
};
template <typename T> struct SortKey;
template <> struct SortKey<bool> : IntegerKey<unsigned char, 8> {};
template <> struct SortKey<unsigned char> : IntegerKey<unsigned char, 8> {};
template <> struct SortKey<signed char> : IntegerKey<signed char, 8> {};
template <> struct SortKey<short> : IntegerKey<short, 16> {};
template <> struct SortKey<int> : IntegerKey<int, 32> {};
template <> struct SortKey<unsigned> : IntegerKey<unsigned, 32> {};
template <> struct SortKey<bf16> : NarrowKey<bf16, 16> {};
template <> struct SortKey<f16> : NarrowKey<f16, 16> {};
template <> struct SortKey<f8e4m3> : NarrowKey<f8e4m3, 8> {};
template <> struct SortKey<f8e5m2> : NarrowKey<f8e5m2, 8> {};
template <> struct SortKey<long long> : Words<unsigned long long, 64> {
    static DEVICE unsigned long long of(long long x) { return (unsigned long long)x ^ top; }
    static DEVICE long long value(unsigned long long k) { return (long long)(k ^ top); }
};
template <> struct SortKey<float> : Words<unsigned, 32> {
    static DEVICE unsigned of(float x) { return x != x ? ones : x == 0 ? top : floating(__float_as_uint(x)); }
    static DEVICE float value(unsigned k) { return __uint_as_float(pattern(k)); }
};
template <> struct SortKey<double> : Words<unsigned long long, 64> {
    static DEVICE unsigned long long of(double x) { return x != x ? ones : x == 0 ? top : floating(__double_as_longlong(x)); }
    static DEVICE double value(unsigned long long k) { return __longlong_as_double(pattern(k)); }
};
template <class K, bool DOWN, typename T> DEVICE typename K::Word sort_word(T x) { return DOWN ? K::ones & ~K::of(x) : K::of(x); }
template <class K, bool DOWN> DEVICE auto sort_value(typename K::Word k) { return K::value(DOWN ? K::ones & ~k : k); }

// What a block sorts with, in dynamic shared memory.
// ROOM is how many keys it may hold there, with their columns where MOVES.
template <class K, int THREADS_, int ITEMS_, int ROOM_, bool MOVES> struct Sorter {
    typedef typename K::Word Word;
    static constexpr int WARPS = THREADS_ / 32, SIZE = THREADS_ * ITEMS_, DIGITS = 256, BINS = 2048;
    Word words[ROOM_];
    unsigned indices[MOVES ? ROOM_ : 1];
    unsigned counts[WARPS * DIGITS > BINS ? WARPS * DIGITS : BINS];
    unsigned sums[WARPS + 1];
    unsigned found[3];
    unsigned filled;

    // The position of item u of this thread: warps hold neighbours, so that order
    // among equal digits is the order of positions.
    static DEVICE int position(int u) { return threadIdx.x / 32 * (32 * ITEMS_) + 32 * u + threadIdx.x % 32; }

    // The sum over the threads before this one; total is that over all.
    DEVICE unsigned before(unsigned x, unsigned &total) {
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        unsigned upto = x;
#pragma unroll
        for (int d = 1; d < 32; d *= 2) {
            const unsigned y = __shfl_up_sync(0xffffffffu, upto, d);
            if (lane >= d) upto += y;
        }
        __syncthreads(); // sums are free
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

    // The lanes whose digit is this lane's.
    static DEVICE unsigned peers(unsigned digit) {
        unsigned same = 0xffffffffu;
#pragma unroll
        for (int b = 0; b < 8; ++b) {
            const bool bit = digit >> b & 1;
            const unsigned votes = __ballot_sync(0xffffffffu, bit);
            same &= bit ? votes : ~votes;
        }
        return same;
    }

    // Sorts the block's items by key, stable by position: least significant digit
    // first, eight bits at a time. Columns move along where MOVES.
    DEVICE void sort(Word (&key)[ITEMS_], unsigned (&index)[ITEMS_]) {
#pragma unroll 1
        for (int shift = 0; shift < K::bits; shift += 8) {
            unsigned to[ITEMS_];
            rank(key, shift, to);
            place(key, words, to);
            if constexpr (MOVES) place(index, indices, to);
        }
    }

    DEVICE void rank(const Word (&key)[ITEMS_], int shift, unsigned (&to)[ITEMS_]) {
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        unsigned *mine = counts + warp * DIGITS;
#pragma unroll
        for (int i = 0; i < DIGITS / 32; ++i) mine[32 * i + lane] = 0;
        __syncwarp();
#pragma unroll
        for (int u = 0; u < ITEMS_; ++u) {
            const unsigned digit = (unsigned)(key[u] >> shift) & (DIGITS - 1), same = peers(digit);
            const unsigned ahead = mine[digit];
            __syncwarp();
            if (same >> lane == 1) mine[digit] = ahead + __popc(same); // the last of them
            __syncwarp();
            to[u] = ahead + __popc(same & ((1u << lane) - 1));
        }
        __syncthreads();
        starts();
        __syncthreads();
#pragma unroll
        for (int u = 0; u < ITEMS_; ++u) to[u] += mine[(unsigned)(key[u] >> shift) & (DIGITS - 1)];
    }

    // Turns the warps' counts of digits into where each warp's first one goes.
    DEVICE void starts() {
        constexpr int PER = DIGITS > THREADS_ ? DIGITS / THREADS_ : 1;
        const int first = threadIdx.x * PER;
        unsigned sum = 0, total;
        if (first < DIGITS) {
#pragma unroll
            for (int i = 0; i < PER; ++i)
#pragma unroll
                for (int w = 0; w < WARPS; ++w) sum += counts[w * DIGITS + first + i];
        }
        unsigned at = before(sum, total);
        if (first < DIGITS) {
#pragma unroll
            for (int i = 0; i < PER; ++i)
#pragma unroll
                for (int w = 0; w < WARPS; ++w) {
                    const unsigned n = counts[w * DIGITS + first + i];
                    counts[w * DIGITS + first + i] = at;
                    at += n;
                }
        }
    }

    template <typename T> DEVICE void place(T (&x)[ITEMS_], T *room, const unsigned (&to)[ITEMS_]) {
#pragma unroll
        for (int u = 0; u < ITEMS_; ++u) room[to[u]] = x[u];
        __syncthreads();
#pragma unroll
        for (int u = 0; u < ITEMS_; ++u) x[u] = room[position(u)];
    }

    // The keys below a rank, as a prefix of bits: keys whose leading bits are less,
    // `below` of them, come before; of those with equal leading bits, `equal` of them,
    // the first in order of index belong.
    struct Cut {
        Word prefix;
        int left; // bits that were not looked at
        unsigned below, equal;
        DEVICE bool less(Word k) const { return k >> left < prefix; }
        DEVICE bool more(Word k) const { return k >> left > prefix; }
        DEVICE bool same(Word k) const { return k >> left == prefix; }
    };

    // The keys that a thread sees: those it holds, or its part of a row.
    struct Held {
        const Word (&key)[ITEMS_];
        const unsigned (&index)[ITEMS_];
        unsigned cols;
        template <class F> DEVICE void each(F f) const {
#pragma unroll
            for (int u = 0; u < ITEMS_; ++u)
                if (index[u] < cols) f(key[u]);
        }
    };
    struct One {
        Word key;
        bool inside;
        template <class F> DEVICE void each(F f) const {
            if (inside) f(key);
        }
    };
    template <class GET> struct Row {
        const GET &get;
        unsigned cols;
        template <class F> DEVICE void each(F f) const {
            for (unsigned i = threadIdx.x; i < cols; i += THREADS_) f(get(i));
        }
    };

    // Cuts the smallest `count` keys off, 1 or more: the most significant digits
    // first, eleven bits at a time, until all keys of one prefix belong.
    template <class KEYS> DEVICE Cut cut(unsigned count, KEYS keys) {
        Cut c = {0, K::bits, 0, 0};
#pragma unroll 1
        while (c.left > 0) {
            const int width = c.left < 11 ? c.left : 11, shift = c.left - width;
            __syncthreads();
            for (int i = threadIdx.x; i < BINS; i += THREADS_) counts[i] = 0;
            __syncthreads();
            keys.each([&](Word k) {
                if (c.left == K::bits || k >> (c.left % (8 * sizeof(Word))) == c.prefix) atomicAdd(&counts[(unsigned)(k >> shift) & ((1u << width) - 1)], 1u);
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

    // Finds the bin that holds the count-th key, what the bins before hold, and what
    // it holds itself.
    DEVICE void locate(unsigned count) {
        constexpr int PER = BINS / THREADS_;
        unsigned n[PER], sum = 0, total;
#pragma unroll
        for (int i = 0; i < PER; ++i) sum += n[i] = counts[threadIdx.x * PER + i];
        unsigned at = before(sum, total);
        if (at < count && count <= at + sum) {
#pragma unroll
            for (int i = 0; i < PER; ++i) {
                if (at < count && count <= at + n[i]) {
                    found[0] = threadIdx.x * PER + i;
                    found[1] = at;
                    found[2] = n[i];
                }
                at += n[i];
            }
        }
    }

    // Sorts a row that the block holds.
    template <class GET, class PUT> DEVICE void all_places(unsigned cols, unsigned places, GET get, PUT put) {
        Word key[ITEMS_];
        unsigned index[ITEMS_];
        load(key, index, cols, get);
        sort(key, index);
#pragma unroll
        for (int u = 0; u < ITEMS_; ++u)
            if (position(u) < places) put(position(u), position(u) < cols, key[u], index[u]);
        for (unsigned p = SIZE + threadIdx.x; p < places; p += THREADS_) put(p, false, K::ones, 0u);
    }

    template <class GET> DEVICE void load(Word (&key)[ITEMS_], unsigned (&index)[ITEMS_], unsigned cols, GET get) {
#pragma unroll
        for (int u = 0; u < ITEMS_; ++u) {
            index[u] = position(u);
            key[u] = index[u] < cols ? get(index[u]) : K::ones;
        }
    }

    // Finds the first places of a row that the block holds: no more than it has
    // threads.
    template <class GET, class PUT> DEVICE void first(unsigned cols, unsigned places, GET get, PUT put) {
        Word key[ITEMS_];
        unsigned index[ITEMS_];
        load(key, index, cols, get);
        const unsigned count = min(places, cols);
        if (count > 0) {
            unsigned kept = few(key, index, cols, count);
            if (kept > ROOM_) {
                if (threadIdx.x == 0) filled = 0;
                const Cut c = cut(count, Held{key, index, cols});
                gather(key, index, cols, count, c);
                kept = count;
            }
            __syncthreads();
            settle(kept, count, put);
        }
        for (unsigned p = count + threadIdx.x; p < places; p += THREADS_) put(p, false, K::ones, 0u);
    }

    // Puts the keys up to the count-th smallest of the threads' own smallest into shared
    // memory, at least count of them and mostly few more. Returns how many they are;
    // where that is more than there is room for, nothing is done.
    DEVICE unsigned few(const Word (&key)[ITEMS_], const unsigned (&index)[ITEMS_], unsigned cols, unsigned count) {
        const unsigned rest = cols % (32 * ITEMS_);
        if (cols / (32 * ITEMS_) * 32 + (rest < 32 ? rest : 32) < count) return ROOM_ + 1; // fewer threads than that see keys
        Word least = key[0];
#pragma unroll
        for (int u = 1; u < ITEMS_; ++u) least = key[u] < least ? key[u] : least;
        const Cut c = cut(count, One{least, index[0] < cols});
        unsigned mine = 0, total;
#pragma unroll
        for (int u = 0; u < ITEMS_; ++u) mine += index[u] < cols && !c.more(key[u]);
        unsigned to = before(mine, total);
        if (total > ROOM_ || mine == 0) return total;
#pragma unroll
        for (int u = 0; u < ITEMS_; ++u)
            if (index[u] < cols && !c.more(key[u])) {
                words[to] = key[u];
                indices[to++] = index[u];
            }
        return total;
    }

    // Puts the keys of a cut into shared memory: the lesser ones in any order, of the
    // equal ones the first.
    DEVICE void gather(const Word (&key)[ITEMS_], const unsigned (&index)[ITEMS_], unsigned cols, unsigned count, const Cut &c) {
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        unsigned equals = 0;
#pragma unroll
        for (int u = 0; u < ITEMS_; ++u) equals += __popc(__ballot_sync(0xffffffffu, index[u] < cols && c.same(key[u])));
        __syncthreads();
        if (lane == 0) sums[warp] = equals;
        __syncthreads();
        unsigned at = c.below;
        for (int w = 0; w < warp; ++w) at += sums[w];
#pragma unroll
        for (int u = 0; u < ITEMS_; ++u) {
            const bool same = index[u] < cols && c.same(key[u]);
            const unsigned votes = __ballot_sync(0xffffffffu, same);
            const unsigned mine = at + __popc(votes & ((1u << lane) - 1));
            if (same && mine < count) {
                words[mine] = key[u];
                indices[mine] = index[u];
            } else if (index[u] < cols && c.less(key[u])) {
                const unsigned to = atomicAdd(&filled, 1u);
                words[to] = key[u];
                indices[to] = index[u];
            }
            at += __popc(votes);
        }
    }

    // Puts the first count of the keys kept, no more than there are threads, where as
    // many as come before them say.
    template <class PUT> DEVICE void settle(unsigned kept, unsigned count, PUT put) {
        if (threadIdx.x >= kept) return;
        const Word k = words[threadIdx.x];
        const unsigned at = indices[threadIdx.x];
        unsigned place = 0;
#pragma unroll 8
        for (unsigned i = 0; i < kept; ++i) place += words[i] < k || words[i] == k && indices[i] < at;
        if (place < count) put(place, true, k, at);
    }

    // Sorts a row of any length, SIZE places at a time: cuts off the keys up to the
    // last of them, leaves out what is done, and sorts the rest.
    template <class GET, class PUT> DEVICE void windows(unsigned cols, unsigned places, GET get, PUT put) {
        const unsigned wanted = min(places, cols);
        Cut last = {0, 0, 0, 0};
        unsigned taken = 0; // of the keys equal to the last cut
        for (unsigned done = 0; done < wanted; done += SIZE) {
            const unsigned count = min(wanted, done + SIZE);
            const Cut c = cut(count, Row<GET>{get, cols});
            collect(cols, done, count, last, taken, c, get);
            Word key[ITEMS_];
            unsigned index[ITEMS_];
#pragma unroll
            for (int u = 0; u < ITEMS_; ++u) {
                const bool inside = position(u) < count - done;
                key[u] = inside ? words[position(u)] : K::ones;
                index[u] = inside ? indices[position(u)] : 0;
            }
            __syncthreads();
            sort(key, index);
#pragma unroll
            for (int u = 0; u < ITEMS_; ++u)
                if (position(u) < count - done) put(done + position(u), true, key[u], index[u]);
            __syncthreads();
            last = c;
            taken = count - c.below;
        }
        for (unsigned p = wanted + threadIdx.x; p < places; p += THREADS_) put(p, false, K::ones, 0u);
    }

    // Puts the keys of ranks done up to count - 1 into shared memory, in order of index.
    template <class GET> DEVICE void collect(unsigned cols, unsigned done, unsigned count, const Cut &last, unsigned taken, const Cut &c, GET get) {
        unsigned old = 0, now = 0, room = 0, total;
        for (unsigned base = 0; base < cols; base += THREADS_) {
            const unsigned i = base + threadIdx.x;
            const Word k = i < cols ? get(i) : K::ones;
            const bool wasEqual = i < cols && done > 0 && last.same(k), isEqual = i < cols && c.same(k);
            const unsigned ahead = before((unsigned)wasEqual | (unsigned)isEqual << 16, total);
            const bool begun = done == 0 || !last.less(k) && !(wasEqual && old + (ahead & 0xffff) < taken);
            const bool inside = i < cols && begun && (c.less(k) || isEqual && c.below + now + (ahead >> 16) < count);
            old += total & 0xffff;
            now += total >> 16;
            const unsigned to = room + before(inside, total);
            if (inside) {
                words[to] = k;
                indices[to] = i;
            }
            room += total;
        }
        __syncthreads();
    }
};
