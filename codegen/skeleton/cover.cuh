
// --- windows that overlap: what a tile's windows cover ------------------------------

// The boxes that windows cover lie in front of the ring, and their barriers behind its barriers. A place of a box is a line.
constexpr int COVER_BYTES = (COVER_LINES * LINE + 1023) / 1024 * 1024;
struct Covers {
    unsigned base, barriers;
    DEVICE explicit Covers(const void *shared) : base((shared_address(shared) + 1023) & ~1023u), barriers(Ring(ring_in(shared)).turn_at(TURNS)) {}
    static DEVICE const void *ring_in(const void *shared) { return static_cast<const unsigned char *>(shared) + COVERS * COVER_BYTES; }
    DEVICE unsigned at(int slot) const { return base + slot * COVER_BYTES; }
    DEVICE unsigned full_at(int slot) const { return barriers + 8 * slot; }
    DEVICE unsigned empty_at(int slot) const { return full_at(COVERS + slot); }
    // Goes before the ring's init, which tells all threads of it.
    DEVICE void init() const {
        if (threadIdx.x != COPIER) return;
        for (int slot = 0; slot < COVERS; ++slot) {
            barrier_init(full_at(slot), 1);
            barrier_init(empty_at(slot), TURNS > 1 ? 1 : MULTIPLIERS);
        }
    }
    // A multiplying warpgroup is done with a box.
    DEVICE void release(int slot) const {
        if (threadIdx.x % 128 == 0) barrier_arrive(empty_at(slot));
    }
};
using CoverPlace = PlaceOf<COVERS>;

// The descriptor of rows of lines along K, whose groups of eight lines are so many lines apart. The swizzle goes by the
// address, so rows may begin at any line.
DEVICE unsigned long long descriptor_lines(unsigned at, int group) {
    constexpr unsigned long long SWIZZLE = (LINE == 128 ? 1ull : 2ull) << 62; // of as many bytes
    return SWIZZLE | (unsigned long long)(group * LINE >> 4) << 32 | 1ull << 16 | (at & 0x3ffff) >> 4;
}

// Multiplies a tap into the warpgroup's sums: the rows of a stage by those of a box, which begin at the tap's line. Rows::at is
// the line of a row of the tile. Where warpgroups lie side by side, each has the columns of its side. Of a box of N an instruction has every COVER_EVERY-th group of eight columns.
template <typename Element, typename Rows, typename Total>
DEVICE void multiply_tap(Total (&sums)[BLOCKS_M][OWN_N / 2], unsigned stage, unsigned box, int block_m, int side, bool accumulate) {
    constexpr int WIDTH = COVER_OF_A ? TILE_N : COVER_ROWS, TURN = COVER_OF_A ? TILE_N : COVER_EVERY * WIDTH; // columns of an instruction; columns among which instructions take turns
#pragma unroll
    for (int k = 0; k < LINE / 32; ++k)
#pragma unroll
        for (int i = 0; i < BLOCKS_M; ++i)
#pragma unroll
            for (int j = 0; j < OWN_N / WIDTH; ++j) {
                const int first = j / (TURN / WIDTH) * TURN + j % (TURN / WIDTH) * 8;
                const unsigned long long a = COVER_OF_A ? descriptor_lines(box + Rows::at((block_m + i) * 64) * LINE, COVER_GROUP) : descriptor_lines(stage + (block_m + i) * SLAB, 8);
                const unsigned long long b = COVER_OF_A ? descriptor_lines(stage, 8) : descriptor_lines(box + (Rows::at(first) + side * Rows::at(TILE_N / 2)) * LINE, COVER_GROUP);
                wgmma<0, 0>(sums[i], first / 2, descriptor_step(a, k * 32), descriptor_step(b, k * 32), accumulate || k > 0, Element{});
            }
}
