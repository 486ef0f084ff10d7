
// --- chains of blocks -------------------------------------------------------------

// A block hands its totals to the next block of its chain as words of 32 bits. Each word is written together with the
// block's place in the chain (not 0) in one access, so that no fence is needed: a reader that sees the place sees the
// word. A word is zero before the first block of a chain writes it and after the last has read it.
template <typename T> constexpr int words_of = (sizeof(T) + 3) / 4;
template <typename T> struct Posted { unsigned long long word[words_of<T>]; };

template <typename T> DEVICE Posted<T> peek(const unsigned long long *at, INDEX apart) {
    Posted<T> p;
#pragma unroll
    for (int i = 0; i < words_of<T>; ++i)
        asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(p.word[i]) : "l"(at + i * apart) : "memory");
    return p;
}
template <typename T> DEVICE bool is_there(const Posted<T> &p, unsigned number) {
    bool all = true;
#pragma unroll
    for (int i = 0; i < words_of<T>; ++i) all = all && (unsigned)(p.word[i] >> 32) == number;
    return all;
}
// The word that the block of this number has posted; p is what was read there before. Blocks start in the order of
// their numbers and wait only for earlier ones, so those that are waited for make progress.
template <typename T> DEVICE T await(Posted<T> p, const unsigned long long *at, INDEX apart, unsigned number) {
    while (!is_there(p, number)) p = peek<T>(at, apart);
    union { T value; unsigned word[words_of<T>]; } bits;
#pragma unroll
    for (int i = 0; i < words_of<T>; ++i) bits.word[i] = (unsigned)p.word[i];
    return bits.value;
}
template <typename T> DEVICE void post(unsigned long long *at, INDEX apart, unsigned number, const T &x) {
    union { T value; unsigned word[words_of<T>]; } bits;
    bits.value = x;
#pragma unroll
    for (int i = 0; i < words_of<T>; ++i)
        asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" :: "l"(at + i * apart), "l"((unsigned long long)number << 32 | bits.word[i]) : "memory");
}

template <typename I> DEVICE I size_of(const Divisor<I> &d) { return d.size; }
DEVICE INDEX size_of(INDEX n) { return n; }

// n over N, rounded up; n is not negative.
template <int N> DEVICE INDEX up_by(INDEX n) {
    if constexpr (sizeof(INDEX) == 4) return (INDEX)(((unsigned)n + (N - 1)) / N);
    return (n + (N - 1)) / N;
}

// The number of the block, hidden from the compiler: what is computed from it is computed again where it is used,
// and takes no registers in between.
DEVICE INDEX block_again() {
    unsigned x;
    asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(x));
    return (INDEX)x;
}

// The place of a block in its chain, and that of the thread's column among the posted words. The blocks of a link
// have their words next to each other, COLUMNS for each block.
template <int COLUMNS> struct ChainPlace {
    unsigned long long *words;
    INDEX strips, ring; // how many blocks take a part of the columns, and how many a link of the chains has
    INDEX block, link;  // this block, and how many blocks come before it in its chain

    DEVICE INDEX slot() const { return block - link * ring; }
    DEVICE INDEX apart() const { return ring * COLUMNS; } // from one word of a result to the next
    DEVICE unsigned long long *of(INDEX slot, int word) const { return words + (word * apart() + slot * COLUMNS + threadIdx.x); }
    template <typename T> DEVICE Posted<T> peek_predecessor(int word) const { return peek<T>(of(slot(), word), apart()); }

    // Folds what the block before has posted with the thread's own totals.
    template <class R, typename T> DEVICE T after_predecessor(const Posted<T> &found, T own, int word) const {
        return link > 0 ? R::apply(await(found, of(slot(), word), apart(), (unsigned)link), own) : own;
    }
    template <typename T> DEVICE void post_total(T total, int word) const { post(of(slot(), word), apart(), (unsigned)link + 1, total); }

    // In the block that ends the last chain of a strip: folds the ends of all chains of the strip, from the last
    // backwards, and leaves all words zero.
    template <class R, typename T> DEVICE T end(T total, int word) const {
        constexpr int TOGETHER = 4;
        if (link > 0) post(of(slot(), word), apart(), 0, T(0));
        const INDEX others = min(block / strips, ring / strips - 1);
#pragma unroll 1
        for (INDEX first = 1; first <= others; first += TOGETHER) {
            Posted<T> found[TOGETHER];
#pragma unroll
            for (int i = 0; i < TOGETHER; ++i)
                if (first + i <= others) found[i] = peek<T>(of(wrapped(first + i), word), apart());
#pragma unroll
            for (int i = 0; i < TOGETHER; ++i) {
                if (first + i > others) break;
                const INDEX at = wrapped(first + i);
                total = R::apply(total, await(found[i], of(at, word), apart(), (unsigned)(at < slot() ? link + 1 : link)));
                post(of(at, word), apart(), 0, T(0));
            }
        }
        return total;
    }
    DEVICE INDEX wrapped(INDEX parts) const { // the slot of the block that many parts earlier
        const INDEX at = slot() - parts * strips;
        return at < 0 ? at + ring : at;
    }
};

// The place of a block among the slabs, and that of the thread's column among the posted words. The ring has words
// for a number of slabs, which take turns. The number beside a word says whose turn it is: 2 * k where the word is free
// for the k-th slab in its place, 2 * k + 1 where that slab has posted.
template <int COLUMNS> struct SlabPlace {
    INDEX slab, part, strip;        // of this block; beyond the last slab, part is the last one
    INDEX slabs, strips, size, lag; // slabs in all, strips of a part, parts of a slab, slabs to look back
    INDEX ring, turn;
    unsigned long long *words;

    template <typename S, typename Z, typename R>
    DEVICE SlabPlace(INDEX block, S by_strips, Z by_size, R by_ring, INDEX lag, INDEX slabs, unsigned long long *words)
        : slabs(slabs), strips(size_of(by_strips)), size(size_of(by_size)), lag(lag), ring(size_of(by_ring)), words(words) {
        slab = block / by_size;
        if (slab < slabs) {
            const INDEX at = block - slab * size;
            part = at / by_strips, strip = at - part * strips;
        } else {
            const INDEX at = block - slabs * size, more = at / by_strips;
            slab = slabs + more, part = size / strips - 1, strip = at - more * strips;
        }
        turn = slab / by_ring;
    }
    DEVICE INDEX apart() const { return ring * size * COLUMNS; } // from one word of a result to the next
    DEVICE unsigned long long *of(INDEX place, INDEX part, int word) const {
        return words + (word * apart() + ((place * size + part * strips + strip) * COLUMNS + threadIdx.x));
    }
    DEVICE bool ends() const { return slab >= lag && (part + 1) * strips == size; }

    template <typename T> DEVICE Posted<T> peek_own(int word) const { return peek<T>(of(slab - turn * ring, part, word), apart()); }
    template <typename T> DEVICE void post_own(const Posted<T> &found, const T &x, int word) const {
        unsigned long long *const at = of(slab - turn * ring, part, word);
        await(found, at, apart(), 2 * (unsigned)turn);
        post(at, apart(), 2 * (unsigned)turn + 1, x);
    }
    // Folds the parts of the slab that this one looks back at, in their order, and frees their words for the next
    // slab in that place, or for the next launch.
    template <class R, typename T> DEVICE T look_back(int word) const {
        constexpr int TOGETHER = 4;
        const INDEX looked_at = slab - lag, base = turn * ring;
        const bool before = looked_at < base; // in an earlier turn of the ring
        const INDEX place = before ? looked_at - base + ring : looked_at - base;
        const unsigned number = 2 * (unsigned)(before ? turn - 1 : turn) + 1, next = looked_at + ring < slabs ? number + 1 : 0;
        T total = T(0);
        bool any = false;
#pragma unroll 1
        for (INDEX first = 0; first * strips < size; first += TOGETHER) {
            Posted<T> found[TOGETHER];
#pragma unroll
            for (int i = 0; i < TOGETHER; ++i)
                if ((first + i) * strips < size) found[i] = peek<T>(of(place, first + i, word), apart());
#pragma unroll
            for (int i = 0; i < TOGETHER; ++i) {
                if ((first + i) * strips >= size) break;
                unsigned long long *const at = of(place, first + i, word);
                const T x = await(found[i], at, apart(), number);
                total = any ? R::apply(total, x) : x;
                any = true;
                post(at, apart(), next, T(0));
            }
        }
        return total;
    }
};

// Threads that are LANES apart in a warp fold their elements together. Each ends with its share of the results and
// writes it to the warp's row.
template <class R, int LANES, int N, typename T> DEVICE void keep_folded(T (&x)[N], T *row) {
    constexpr int KEPT = LANES >= 32 ? N : N * LANES > 32 ? N * LANES / 32 : 1;
    int at = threadIdx.x % LANES * N, kept = N;
#pragma unroll
    for (int mask = LANES; mask < 32; mask <<= 1) {
        if (kept == 1) {
            x[0] = R::apply(x[0], shuffle(x[0], mask));
            continue;
        }
        kept /= 2;
        const bool upper = threadIdx.x & mask;
#pragma unroll
        for (int i = 0; i < kept; ++i) {
            const T give = upper ? x[i] : x[i + kept], keep = upper ? x[i + kept] : x[i];
            x[i] = R::apply(keep, shuffle(give, mask));
        }
        at += upper ? kept : 0;
    }
    Vec<T, KEPT> out;
#pragma unroll
    for (int i = 0; i < KEPT; ++i) out.v[i] = x[i];
    if (LANES >= 32 || LANES * N >= 32 || threadIdx.x % 32 < LANES * N) *reinterpret_cast<Vec<T, KEPT> *>(row + at) = out;
}
// Folds the rows of a column.
template <class R, int ROWS, int COLUMNS, typename T> DEVICE T fold_rows(const T (&x)[ROWS][COLUMNS], int column) {
    constexpr int TOGETHER = ROWS < 4 ? ROWS : 4;
    T r[TOGETHER];
#pragma unroll
    for (int i = 0; i < TOGETHER; ++i) r[i] = x[i][column];
#pragma unroll
    for (int i = TOGETHER; i < ROWS; ++i) r[i % TOGETHER] = R::apply(r[i % TOGETHER], x[i][column]);
#pragma unroll
    for (int i = 1; i < TOGETHER; ++i) r[0] = R::apply(r[0], r[i]);
    return r[0];
}
