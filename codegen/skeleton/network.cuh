// --- sorting rows ------------------------------------------------------------------

// Hides from the compiler where words come from, without an instruction. Otherwise it follows minima of minima
// through all merges, which takes most of the time to compile.
template <int N> DEVICE void launder(unsigned (&x)[N]) {
#pragma unroll
    for (int u = 0; u < N; ++u) asm("" : "+r"(x[u]));
}
template <int N> DEVICE void launder(unsigned long long (&x)[N]) {
#pragma unroll
    for (int u = 0; u < N; ++u) asm("" : "+l"(x[u]));
}

// A sorting network over the words that a block's threads hold, ITEMS of a power of
// two each (Batcher, "Sorting networks and their applications", 1968). It merges runs of 2, 4, 8 ... words. The second
// run of each pair is read backwards, so that every exchange puts the smaller word first.
//
// A merge of runs of 2^K words compares words whose places differ in bit K-1, then bit
// K-2 and so on. A thread holds B bits of the place in its registers; between every B
// bits the words change threads through shared memory. In layout P a thread's registers
// are bits P to P+B-1 of the place and the bits of its number the others, so that the
// threads of a warp hold 32 * ITEMS neighbours where P is at most 5.
template <class W, int THREADS_, int ITEMS_> struct Network {
    static constexpr DEVICE int log2(int n) { return n <= 1 ? 0 : 1 + log2(n / 2); }
    static constexpr int B = log2(ITEMS_), SIZE = THREADS_ * ITEMS_, STRIPED = log2(THREADS_), LEVELS = STRIPED + B;
    static constexpr int ROOM_ = SIZE + SIZE / 32; // a word of padding for each 32: no layout has bank conflicts

    // The position of a place's word in shared memory. It is linear in the bits of the place: positions of two places
    // that share no bits add up to that of their sum.
    static constexpr DEVICE int slot(int place) { return place + place / 32; }
    template <int P> static DEVICE int first(int thread) { return slot(thread >> P << (P + B) | (thread & ((1 << P) - 1))); }

    template <int P> static DEVICE void store(const W (&x)[ITEMS_], W *room) {
        W *to = room + first<P>(threadIdx.x);
#pragma unroll
        for (int u = 0; u < ITEMS_; ++u) to[slot(u << P)] = x[u];
    }
    // Reads the second half of each 2^K words backwards, where K is not 0.
    template <int P, int K> static DEVICE void load(W (&x)[ITEMS_], const W *room) {
        const W *ahead = room + first<P>(threadIdx.x), *back = room + first<P>(threadIdx.x ^ ((1 << P) - 1));
#pragma unroll
        for (int u = 0; u < ITEMS_; ++u) {
            constexpr int half = K > 0 ? 1 << (K - 1 - P) : 0;
            x[u] = u & half ? back[slot((u ^ (half - 1)) << P)] : ahead[slot(u << P)];
        }
    }
    template <int P, int Q, int K> static DEVICE void exchange(W (&x)[ITEMS_], W *room) {
        constexpr bool wide = THREADS_ > 32;
        if (wide && P > 5) __syncthreads();
        else __syncwarp();
        store<P>(x, room);
        if (wide && (P > 5 || Q > 5)) __syncthreads();
        else __syncwarp();
        load<Q, K>(x, room);
    }

    static DEVICE void order(W &a, W &b) {
        const W low = a < b ? a : b;
        b = a < b ? b : a;
        a = low;
    }
    // Compares across bit j of the registers' numbers.
    static DEVICE void across(W (&x)[ITEMS_], int j) {
#pragma unroll
        for (int u = 0; u < ITEMS_; ++u)
            if (!(u & 1 << j)) order(x[u], x[u | 1 << j]);
    }
    // Compares across bits j to 0.
    static DEVICE void down(W (&x)[ITEMS_], int j) {
#pragma unroll
        for (; j >= 0; --j) across(x, j);
    }
    // Merges runs within a thread's own words up to all of them.
    static DEVICE void own(W (&x)[ITEMS_]) {
#pragma unroll
        for (int k = 1; k <= B; ++k) {
#pragma unroll
            for (int u = 0; u < ITEMS_; ++u)
                if (!(u & 1 << (k - 1))) order(x[u], x[u ^ ((1 << k) - 1)]);
            down(x, k - 2);
        }
        launder(x);
    }
    // Compares across bits J to 0 as far as they are below n.
    template <int J> static DEVICE void down_from(W (&x)[ITEMS_], int n) {
        if constexpr (J >= 0) {
            if (J < n) across(x, J);
            down_from<J - 1>(x, n);
        }
    }
    // Compares across bits HIGH-1 to LAST of places, from layout P to layout LAST.
    template <int P, int HIGH, int LAST> static DEVICE void rest(W (&x)[ITEMS_], W *room) {
        if constexpr (HIGH > LAST) {
            constexpr int Q = HIGH - B > LAST ? HIGH - B : LAST;
            exchange<P, Q, 0>(x, room);
            down(x, HIGH - Q - 1);
            rest<Q, Q, LAST>(x, room);
        }
    }
    // Merges runs of 2^(K-1) to 2^4 words.
    template <int K> static DEVICE void shorter(W (&x)[ITEMS_], W *room) {
        if constexpr (K <= 5) {
            exchange<0, K - B, K>(x, room);
            down(x, B - 1);
            rest<K - B, K - B, 0>(x, room);
            shorter<K + 1>(x, room);
        }
    }
    // Reads what the words of other threads left in layout 0, with the second runs of
    // 2^(level-1) words backwards; level is K to LAST.
    template <int P, int K, int LAST> static DEVICE void load_runs(W (&x)[ITEMS_], const W *room, int level) {
        if constexpr (K <= LAST) {
            if (level == K) load<P, K>(x, room);
            else load_runs<P, K + 1, LAST>(x, room, level);
        }
    }
    // Sorts. Words come in any order; afterwards word u of a thread is that of place u * THREADS_ + its number.
    // Merges of longer runs differ only in the layout that they start from, and share the rest, because code for
    // each of them would be long.
    static DEVICE void sort(W (&x)[ITEMS_], W *room) {
        constexpr int WARP = B + 5 < LEVELS ? B + 5 : LEVELS, TOP = LEVELS - B;
        static_assert(B <= 5 && WARP + B >= LEVELS, "merges of a block take one more layout than those of a warp");
        own(x);
        shorter<B + 1>(x, room);
#pragma unroll 1
        for (int level = 6; level <= LEVELS; ++level) {
            __syncwarp();
            store<0>(x, room);
            if (level <= WARP) {
                __syncwarp();
                load_runs<5, 6, WARP>(x, room, level);
                down_from<B - 1>(x, level - 5);
            } else {
                __syncthreads();
                load_runs<TOP, WARP + 1, LEVELS>(x, room, level);
                down_from<B - 1>(x, level - TOP);
                rest<TOP, TOP, 5>(x, room);
            }
            rest<5, 5, 0>(x, room);
            launder(x);
        }
        exchange<0, STRIPED, 0>(x, room);
    }
};

// Sorts rows that a block holds: words of at most 32 bits, with their columns where these are WANTED.
template <class K, int THREADS_, int ITEMS_, bool WANTED> struct WordSorter {
    typedef Network<unsigned, THREADS_, ITEMS_> Net;
    unsigned room[Net::ROOM_];

    template <class GET, class PUT> DEVICE void places(unsigned cols, unsigned wanted, GET get, PUT put) {
        unsigned x[ITEMS_];
        read_words<K, THREADS_, ITEMS_>(0, cols, get, [&](int u, unsigned c, unsigned k) { x[u] = WANTED ? k << 16 | c : k; });
        Net::sort(x, room);
#pragma unroll
        for (int u = 0; u < ITEMS_; ++u) {
            const unsigned p = u * THREADS_ + threadIdx.x;
            if (p < wanted) put(p, p < cols, WANTED ? x[u] >> 16 : x[u], x[u] & 0xffff);
        }
        for (unsigned p = Net::SIZE + threadIdx.x; p < wanted; p += THREADS_) put(p, false, K::ones, 0u);
    }
};

// Sorts rows that a block holds by longer keys: 16 bits at a time, the least significant first. Each key stands beside
// its place in the order so far, so that equal ones keep their order.
template <class K, int THREADS_, int ITEMS_> struct OrderSorter {
    typedef typename K::Word Word;
    typedef Network<unsigned, THREADS_, ITEMS_> Net;
    static constexpr int SIZE = Net::SIZE;
    Word words[SIZE];
    unsigned room[Net::ROOM_];
    unsigned short order[SIZE];

    // Calls take(place, i) for each of the SIZE places, where i is the number of the word in that place.
    template <class TAKE> DEVICE void sorted(TAKE take) {
        unsigned x[ITEMS_];
#pragma unroll
        for (int u = 0; u < ITEMS_; ++u) x[u] = u * THREADS_ + threadIdx.x;
#pragma unroll 1
        for (int shift = 0; shift < K::bits; shift += 16) {
#pragma unroll
            for (int u = 0; u < ITEMS_; ++u) {
                const unsigned p = u * THREADS_ + threadIdx.x, i = x[u];
                order[p] = i;
                x[u] = (unsigned)(words[i] >> shift) << 16 | p;
            }
            Net::sort(x, room);
#pragma unroll
            for (int u = 0; u < ITEMS_; ++u) x[u] = order[x[u] & 0xffff];
            __syncthreads();
        }
#pragma unroll
        for (int u = 0; u < ITEMS_; ++u) take(u * THREADS_ + threadIdx.x, x[u]);
    }

    template <class GET, class PUT> DEVICE void places(unsigned cols, unsigned wanted, GET get, PUT put) {
        read_words<K, THREADS_, ITEMS_>(0, cols, get, [&](int, unsigned c, Word k) { words[c] = k; });
        sorted([&](unsigned p, unsigned c) {
            if (p < wanted) put(p, p < cols, words[c], c);
        });
        for (unsigned p = SIZE + threadIdx.x; p < wanted; p += THREADS_) put(p, false, K::ones, 0u);
    }
};
