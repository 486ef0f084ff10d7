
// --- tiles of a product: one role copies, warpgroups multiply -----------------------

constexpr bool IS_SPLIT = SPLIT_K > 1;
constexpr int COPIERS = IS_SPLIT ? 32 : 128; // threads of the role that copies: a whole warpgroup where it gives registers away
constexpr int MULTIPLIERS = (THREADS - COPIERS) / 128;
constexpr int COPIER = IS_SPLIT ? 128 * MULTIPLIERS : 0, MULTIPLIER = IS_SPLIT ? 0 : 128; // the first thread of each role
constexpr int PEERS = CLUSTER * SPLIT_K;  // blocks of a cluster: they share tiles of B, or the columns of one tile
constexpr int BLOCKS_M = TILE_M / 64 / (TURNS > 1 || SIDES > 1 ? 1 : MULTIPLIERS); // 64-row blocks of a warpgroup
constexpr int OWN_N = TILE_N / SIDES;    // columns of a warpgroup
[[maybe_unused]] constexpr int OWN_N_EACH = TILE_N_EACH / SIDES; // of each operand
constexpr int BYTES_A = STAGE_M * LINE, BYTES_B = STAGE_N * LINE; // a line is TILE_K elements, and of the swizzle
constexpr int STAGED = BLOCKS_M * OWN_N / 2 > 128 ? 32 : 64; // sums of a row that a warp stages at a time: fewer where registers hold many
constexpr int STAGING = 16 * 64 * 4;     // bytes, of a warp
constexpr int SLAB = 64 * LINE;          // bytes of 64 rows, in either order

// The block's shared memory: stages of operands, a staging area for each multiplying warp, and the barriers that say
// when a stage is full or empty.
struct Ring {
    unsigned base;
    DEVICE explicit Ring(const void *shared) : base((shared_address(shared) + 1023) & ~1023u) {}
    DEVICE unsigned operand_a(int stage) const { return base + stage * (BYTES_A + BYTES_B); }
    DEVICE unsigned operand_b(int stage) const { return operand_a(stage) + BYTES_A; }
    DEVICE unsigned staging_of(int warp) const { return operand_a(STAGES) + warp * STAGING; }
    DEVICE unsigned full_at(int stage) const { return staging_of(IS_SPLIT ? 0 : 4 * MULTIPLIERS) + 8 * stage; }
    DEVICE unsigned empty_at(int stage) const { return full_at(STAGES + stage); }
    DEVICE unsigned turn_at(int turn) const { return full_at(2 * STAGES + turn); }
    // A stage is full when its bytes have arrived. It is empty when every multiplying warpgroup that reads it is done,
    // in all blocks that its copies reach.
    DEVICE void init() const {
        if (threadIdx.x == COPIER) {
            for (int stage = 0; stage < STAGES; ++stage) {
                barrier_init(full_at(stage), 1);
                barrier_init(empty_at(stage), (TURNS > 1 ? 1 : MULTIPLIERS) * CLUSTER);
            }
            for (int turn = 0; turn < TURNS; ++turn) barrier_init(turn_at(turn), 128);
            barriers_publish();
        }
        if constexpr (IS_SPLIT) __syncthreads(); // copies and signals do not leave the block
        else meet();
    }
    // All threads of the blocks of a cluster.
    static DEVICE void meet() {
        if constexpr (PEERS > 1) {
            cluster_arrive();
            cluster_wait();
        } else {
            __syncthreads();
        }
    }
    // A multiplying warpgroup is done with a stage.
    DEVICE void release(int stage) const {
        const int t = threadIdx.x % 128;
        if constexpr (CLUSTER > 1) {
            if (t < CLUSTER) barrier_arrive_at(empty_at(stage), t);
        } else if (t == 0) {
            barrier_arrive(empty_at(stage));
        }
    }
};

// A position in a ring of N stages.
template <int N> struct PlaceOf {
    int stage = 0;
    unsigned parity = 0;
    DEVICE void advance() {
        if (++stage == N) stage = 0, parity ^= 1;
    }
    DEVICE void skip(int steps) {
        stage += steps % N;
        parity ^= steps / N & 1;
        if (stage >= N) stage -= N, parity ^= 1;
    }
};
using Place = PlaceOf<STAGES>;

// The tiles of all batches. A share is what a cluster takes along M. GROUP shares go along N together, so that the
// operands of the tiles that run at one time fit in the L2 cache.
struct Tiles {
    int shares_m, tiles_n, count;
    int batch, m, n; // the present tile: its batch, and its first row and column
    DEVICE Tiles(int extent_m, int extent_n, int batches) {
        shares_m = (extent_m + TILE_M * CLUSTER - 1) / (TILE_M * CLUSTER), tiles_n = (extent_n + TILE_N_EACH - 1) / TILE_N_EACH;
        count = shares_m * tiles_n * batches;
    }
    static DEVICE int first_tile() { return blockIdx.x / PEERS; }
    static DEVICE int tile_stride() { return gridDim.x / PEERS; }
    DEVICE void go_to(int tile) {
        batch = tile / (shares_m * tiles_n);
        tile -= batch * shares_m * tiles_n;
        const int top = tile / (GROUP * tiles_n) * GROUP, rows = min(shares_m - top, GROUP);
        tile -= top * tiles_n;
        m = ((top + tile % rows) * CLUSTER + (CLUSTER > 1 ? cluster_rank() : 0)) * TILE_M, n = tile / rows * TILE_N_EACH;
    }
};

// Multiplies one stage into the warpgroup's sums, 32 bytes of columns at a time. With FEW the left operand has 16 rows
// only, which lie side by side.
template <int TRANS_A, int TRANS_B, typename Element, bool FEW = false, typename Total> DEVICE void multiply_stage(Total (&sums)[BLOCKS_M][OWN_N / 2], unsigned a, unsigned b, bool accumulate) {
    static_assert(sizeof(Element) == 2 || !TRANS_A && !TRANS_B, "only 16-bit operands may run along their rows");
    constexpr int STEP_A = FEW ? 16 * 32 : TRANS_A ? 16 * LINE : 32, STEP_B = TRANS_B ? 16 * LINE : 32; // bytes of shared memory
    const unsigned long long to_b = TRANS_B ? descriptor_mn(b, SLAB) : descriptor_k(b);
#pragma unroll
    for (int k = 0; k < LINE / 32; ++k)
#pragma unroll
        for (int i = 0; i < BLOCKS_M; ++i) {
            const unsigned long long to_a = FEW ? descriptor_few(a) : TRANS_A ? descriptor_mn(a + i * SLAB, SLAB) : descriptor_k(a + i * SLAB);
            wgmma<TRANS_A, TRANS_B>(sums[i], descriptor_step(to_a, k * STEP_A), descriptor_step(to_b, k * STEP_B), accumulate || k > 0, Element{});
        }
}

// The tensor cores add products of 8-bit floats with fewer bits than f32 has. So the sums of a stage start at zero, and
// the threads add them to the others.
DEVICE void add_stage(float (&sums)[BLOCKS_M][OWN_N / 2], const float (&stage)[BLOCKS_M][OWN_N / 2]) {
#pragma unroll
    for (int i = 0; i < BLOCKS_M; ++i)
#pragma unroll
        for (int j = 0; j < OWN_N / 2; ++j) sums[i][j] += stage[i][j];
}

// Brings a line of memory to the L2 cache.
DEVICE void prefetch_line(const void *p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }

// A warp stages the sums of 16 rows in shared memory, so that each thread gets neighbours of a row. A slot is 16 bytes;
// slots are permuted so that neither writing nor reading has bank conflicts.
DEVICE unsigned staged_slot(int row, int slot) { return row * (STAGED * 4) + ((slot ^ (row & 3) << 1 ^ slot >> 3) << 4); }
DEVICE void stage_put(unsigned staging, int fragment, const float *d) {
    const int lane = threadIdx.x % 32, row = lane / 4;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const unsigned at = staging + staged_slot(row + 8 * half, 2 * fragment + (lane >> 1 & 1)) + (lane & 1) * 8;
        asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(at), "f"(d[2 * half]), "f"(d[2 * half + 1]) : "memory");
    }
}
DEVICE void stage_put(unsigned staging, int fragment, const int *d) {
    const int lane = threadIdx.x % 32, row = lane / 4;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const unsigned at = staging + staged_slot(row + 8 * half, 2 * fragment + (lane >> 1 & 1)) + (lane & 1) * 8;
        asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(at), "r"(d[2 * half]), "r"(d[2 * half + 1]) : "memory");
    }
}
template <int N> DEVICE void stage_get(float (&x)[N], unsigned staging, int row, int column) {
    if constexpr (N == 1) {
        asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x[0]) : "r"(staging + staged_slot(row, column / 4) + column % 4 * 4) : "memory");
    } else if constexpr (N == 2) {
        asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];"
                     : "=f"(x[0]), "=f"(x[1]) : "r"(staging + staged_slot(row, column / 4) + column % 4 * 4) : "memory");
    } else {
#pragma unroll
        for (int i = 0; i < N; i += 4)
            asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                         : "=f"(x[i]), "=f"(x[i + 1]), "=f"(x[i + 2]), "=f"(x[i + 3]) : "r"(staging + staged_slot(row, (column + i) / 4)) : "memory");
    }
}
template <int N> DEVICE void stage_get(int (&x)[N], unsigned staging, int row, int column) {
    if constexpr (N == 1) {
        asm volatile("ld.shared.b32 %0, [%1];" : "=r"(x[0]) : "r"(staging + staged_slot(row, column / 4) + column % 4 * 4) : "memory");
    } else if constexpr (N == 2) {
        asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];"
                     : "=r"(x[0]), "=r"(x[1]) : "r"(staging + staged_slot(row, column / 4) + column % 4 * 4) : "memory");
    } else {
#pragma unroll
        for (int i = 0; i < N; i += 4)
            asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(x[i]), "=r"(x[i + 1]), "=r"(x[i + 2]), "=r"(x[i + 3]) : "r"(staging + staged_slot(row, (column + i) / 4)) : "memory");
    }
}

// Stages the sums of one of the chunks of a tile: CHUNK columns of each operand's. Registers have no index, so a chunk that
// only the running program knows is found by comparing, which all lanes do alike.
template <int CHUNK, typename Total> DEVICE void stage_chunk(unsigned staging, const Total (&sums)[BLOCKS_M][OWN_N / 2], int block, int chunk) {
#pragma unroll
    for (int b = 0; b < BLOCKS_M; ++b)
#pragma unroll
        for (int c = 0; c < OWN_N_EACH / CHUNK; ++c) {
            if (b != block || c != chunk) continue;
#pragma unroll
            for (int fragment = 0; fragment < STAGED / 8; ++fragment)
                stage_put(staging, fragment, &sums[b][(fragment / (CHUNK / 8) * (OWN_N_EACH / 8) + c * (CHUNK / 8) + fragment % (CHUNK / 8)) * 4]);
        }
}

// A warp stages 16-bit results of 16 rows, 64 of each: threads write what they have of 16 columns, and read
// neighbours of a row.
constexpr int HALVES = 16 * LINE; // bytes of staging, of one tensor's
DEVICE unsigned halves_slot(unsigned staging, int tensor, int row, int slot) {
    return staging + tensor * HALVES + row * LINE + ((slot ^ (row & 7)) << 4);
}
template <typename T> DEVICE void halves_put(unsigned staging, int tensor, int pair, const float (&x)[8]) {
    unsigned halves[4];
    pack_pairs(halves, x, T{});
    const int lane = threadIdx.x % 32;
    store_matrices(halves_slot(staging, tensor, lane % 16, 2 * pair + lane / 16), halves[0], halves[1], halves[2], halves[3]);
}
template <typename T> DEVICE Vec<T, 8> halves_get(unsigned staging, int tensor, int row, int column) {
    union { unsigned word[4]; Vec<T, 8> value; } bits;
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(bits.word[0]), "=r"(bits.word[1]), "=r"(bits.word[2]), "=r"(bits.word[3])
                 : "r"(halves_slot(staging, tensor, row, column / 8)) : "memory");
    return bits.value;
}

// Adds up the sums of blocks that split the columns. Each block of a cluster leaves its sums in the memory of its stages,
// in parts of 16 rows of 64. Then each adds the sums of all blocks for its share of the tile. It begins with its own, so
// that not all blocks read from the same one at a time. Shares are fixed, so the order of addition is the same each time.
constexpr int PARTS_N = TILE_N / STAGED;
DEVICE unsigned part_at(const Ring &ring, int part) { return ring.base + part * STAGING; }
DEVICE void leave_parts(const Ring &ring, const float (&sums)[BLOCKS_M][OWN_N / 2], int block_m, int rows) {
    named_sync(1, 128 * MULTIPLIERS); // all warpgroups have multiplied the last stage
#pragma unroll
    for (int block = 0; block < BLOCKS_M; ++block) {
        const int at = (block_m + block) * 4 + threadIdx.x / 32 % 4;
        if (at * 16 >= rows) continue;
#pragma unroll
        for (int i = 0; i < TILE_N / 8; ++i)
            stage_put(part_at(ring, at * PARTS_N + i / (STAGED / 8)), i % (STAGED / 8), &sums[block][4 * i]);
    }
}
template <int N> DEVICE void add_parts(float (&x)[N], const Ring &ring, int part, int row, int column) {
    float of[SPLIT_K][N];
#pragma unroll
    for (int i = 0; i < SPLIT_K; ++i) {
        const unsigned staging = address_in(part_at(ring, part), (cluster_rank() + i) % SPLIT_K);
#pragma unroll
        for (int v = 0; N >= 4 && v < N; v += 4)
            asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                         : "=f"(of[i][v]), "=f"(of[i][v + 1]), "=f"(of[i][v + 2]), "=f"(of[i][v + 3]) : "r"(staging + staged_slot(row, (column + v) / 4)) : "memory");
        if constexpr (N == 1)
            asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(of[i][0]) : "r"(staging + staged_slot(row, column / 4) + column % 4 * 4) : "memory");
    }
#pragma unroll
    for (int v = 0; v < N; ++v) {
        x[v] = of[0][v];
#pragma unroll
        for (int i = 1; i < SPLIT_K; ++i) x[v] += of[i][v];
    }
}
