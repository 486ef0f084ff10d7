
// --- what a mask leaves of tiles of keys, where memory says -------------------------

// Answers for tiles of keys, a bit for each tile, or for each 2^shift of many: read from
// memory once a block, not by each of its roles on its way.
struct TileTable {
    static constexpr int BITS = 2048;
    unsigned visible[BITS / 32]; // something is left
    unsigned whole[BITS / 32];   // all is left
    unsigned settled[BITS / 32]; // all is left by what memory says

    DEVICE static int shift(INDEX tiles) {
        int n = 0;
        while (tiles >> n > BITS) ++n;
        return n;
    }
    // Called by all threads of the block, which must meet before they read.
    template <typename Test> DEVICE static void fill(unsigned *bits, INDEX tiles, bool all, Test test) {
        const int per = shift(tiles);
        for (int first = threadIdx.x / 32 * 32; first < BITS && (INDEX)first << per < tiles; first += THREADS) {
            const INDEX bit = first + threadIdx.x % 32;
            bool result = all;
            for (INDEX tile = bit << per; tile < min((bit + 1) << per, tiles) && result == all; ++tile)
                result = test(tile * TILE_N);
            const unsigned word = __ballot_sync(0xffffffffu, result && bit << per < tiles);
            if (threadIdx.x % 32 == 0) bits[first / 32] = word;
        }
    }
    // The first tile from the given one on that may be visible; at least tiles for none.
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

// Which scores of a tile a thread keeps, a bit each in the order of its registers: those
// from key on that exist and that the test holds for. A loop that is not unrolled takes
// few registers beside sums and scores.
template <typename Test> DEVICE unsigned long long kept_scores(INDEX key, const INDEX (&row)[2], INDEX extent_n, Test test) {
    unsigned long long bits = 0;
#pragma unroll 2
    for (int group = 0; group < OWN_N / 8; ++group) {
        const INDEX at = key + 8 * group + threadIdx.x % 4 * 2;
        unsigned own = 0;
#pragma unroll
        for (int i = 0; i < 4; ++i)
            if (at + i % 2 < extent_n && test(0.0f, row[i / 2], at + i % 2)) own |= 1u << i;
        bits |= (unsigned long long)own << 4 * group;
    }
    return bits;
}
