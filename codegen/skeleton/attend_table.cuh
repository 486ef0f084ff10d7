
// --- which tiles of keys a mask in memory leaves --------------------------------------

// What the mask says of each tile of keys, a bit each (or one for 2^shift tiles, where there are many). The block
// reads it from memory once, so that its roles need not read it on their way.
struct TileTable {
    static constexpr int BITS = 2048;
    unsigned visible[BITS / 32]; // some scores of the tile count
    unsigned whole[BITS / 32];   // all scores count
    unsigned settled[BITS / 32]; // all scores count as far as the mask in memory goes

    DEVICE static int shift(INDEX tiles) {
        int n = 0;
        while (tiles >> n > BITS) ++n;
        return n;
    }
    // Called by all threads of the block; a barrier has to stand before the table is read. Another warp begins in
    // each turn, so that the reads of few tiles are waited for once.
    template <typename Test> DEVICE static void fill(unsigned *bits, int turn, INDEX tiles, bool all, Test test) {
        const int per = shift(tiles), begin = (threadIdx.x / 32 + turn) % (THREADS / 32) * 32;
        for (int first = begin; first < BITS && (INDEX)first << per < tiles; first += THREADS) {
            const INDEX bit = first + threadIdx.x % 32;
            bool result = all;
            for (INDEX tile = bit << per; tile < min((bit + 1) << per, tiles) && result == all; ++tile)
                result = test(tile * TILE_N);
            const unsigned word = __ballot_sync(0xffffffffu, result && bit << per < tiles);
            if (threadIdx.x % 32 == 0) bits[first / 32] = word;
        }
    }
    // The first visible tile from the given one on; `tiles` or more where there is none.
    DEVICE INDEX next(INDEX tile, INDEX tiles) const {
        const int per = shift(tiles);
        while (tile < tiles) {
            const int bit = tile >> per;
            const unsigned word = visible[bit / 32] >> bit % 32;
            if (word & 1) break;
            tile = (INDEX)(word ? bit + __ffs(word) - 1 : (bit / 32 + 1) * 32) << per;
        }
        return tile;
    }
    DEVICE static bool at(const unsigned *bits, INDEX key, INDEX tiles) {
        const int bit = key / TILE_N >> shift(tiles);
        return bits[bit / 32] >> bit % 32 & 1;
    }
};

// Which scores of a tile a thread keeps, a bit each in the order of its registers. The loops are not unrolled, since
// sums and scores leave few registers. They have no branches, so that the compiler can move reads that depend only on
// the query out of them.
struct Kept {
    unsigned words[(OWN_N + 63) / 64];

    DEVICE bool at(int i) const { return words[i / 32] >> i % 32 & 1; }
    // The scores from key on for which the test holds and, with EDGE, whose keys exist.
    template <bool EDGE, typename Test> DEVICE void fill(INDEX key, const INDEX (&row)[2], INDEX extent_n, Test test) {
        key += threadIdx.x % 4 * 2;
#pragma unroll
        for (int word = 0; word < (OWN_N + 63) / 64; ++word) {
            unsigned bits = 0;
#pragma unroll 4
            for (int group = 0; group < min(OWN_N / 8 - 8 * word, 8); ++group) {
                const INDEX first = key + 64 * word + 8 * group;
                unsigned own = 0;
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const INDEX at = first + i % 2;
                    own |= (unsigned)((!EDGE || at < extent_n) & test(0.0f, row[i / 2], EDGE ? min(at, extent_n - 1) : at)) << i;
                }
                bits |= own << 4 * group;
            }
            words[word] = bits;
        }
    }
};
