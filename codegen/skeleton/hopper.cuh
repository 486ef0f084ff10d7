
// --- Hopper: the tensor copy engine, barriers that count its bytes, wgmma ---------
//
// Shared memory is addressed as `unsigned` (shared_address), as these instructions
// want it. Products of tiles are in hopper.go: one function for each width.

struct alignas(64) TensorMap { char opaque[128]; };
using Barrier = unsigned long long; // an mbarrier in shared memory

DEVICE unsigned shared_address(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
// Tells the compiler that all lanes of a warp have this value.
DEVICE int uniform(int x) { return __shfl_sync(0xffffffffu, x, 0); }

// Barriers. A phase ends when `count` arrivals and all announced bytes are in;
// phases are told apart by their parity, the first being 0. Waiting for parity 1 of
// a fresh barrier returns at once.
DEVICE void barrier_init(unsigned bar, unsigned count) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory"); }
// Makes fresh barriers known to the copy engine and to other blocks; a block or
// cluster barrier must follow.
DEVICE void barriers_publish() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
// Arrives and announces bytes that copies will bring.
DEVICE void barrier_expect(unsigned bar, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}
DEVICE void barrier_arrive(unsigned bar) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory"); }
// Arrives at the barrier in the same place of block `rank` of the cluster. It orders memory of its own block only,
// because a release at the scope of the cluster would wait for stores to device memory.
DEVICE void barrier_arrive_at(unsigned bar, unsigned rank) {
    asm volatile("{\n.reg .b32 at;\nmapa.shared::cluster.u32 at, %0, %1;\nmbarrier.arrive.shared::cluster.b64 _, [at];\n}" ::"r"(bar), "r"(rank) : "memory");
}
DEVICE bool barrier_passed(unsigned bar, unsigned parity) {
    unsigned ok;
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(ok) : "r"(bar), "r"(parity) : "memory");
    return ok;
}
DEVICE void barrier_wait(unsigned bar, unsigned parity) {
    while (!barrier_passed(bar, parity)) {}
}
// The place in block `rank` of the cluster that `at` is in this one's shared memory.
DEVICE unsigned address_in(unsigned at, int rank) {
    unsigned there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at), "r"(rank));
    return there;
}
// A barrier of some of the block's threads; id 0 is __syncthreads.
DEVICE void named_sync(int id, int threads) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory"); }
DEVICE void named_arrive(int id, int threads) { asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory"); }

// Copies n bytes, a multiple of 16 from an address that is one, issued by one thread.
DEVICE void bytes_load(unsigned to, const void *from, int n, unsigned bar) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from), "r"(n), "r"(bar) : "memory");
}
// The same under a policy of the L2 cache.
DEVICE void bytes_load(unsigned to, const void *from, int n, unsigned bar, unsigned long long policy) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;"
                 ::"r"(to), "l"(from), "r"(n), "r"(bar), "l"(policy) : "memory");
}
// Writes x into the same word of shared memory in block `rank` of the cluster, and counts its bytes at that block's
// barrier. No release is needed, which would wait for this block's stores to device memory.
template <typename T> DEVICE void send_counted(T *slot, const T &x, int rank, unsigned bar) {
    static_assert(sizeof(T) % 4 == 0, "whole words");
    unsigned to, there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(shared_address(slot)), "r"(rank));
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(bar), "r"(rank));
    union { T value; unsigned word[sizeof(T) / 4]; } bits;
    bits.value = x;
#pragma unroll
    for (int i = 0; i < (int)sizeof(T) / 4; ++i)
        asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(to + 4 * i), "r"(bits.word[i]), "r"(there) : "memory");
}

// row_partial and row_sync for rows that follow each other. The blocks of a cluster use two barriers in turn, each of
// which counts the bytes that all warps of the cluster send to its block. A block that is one exchange further uses
// the other barrier. No block can be two further, because it needs what this one sends in between.
struct Meetings {
    Barrier *bars;
    unsigned count; // of exchanges so far
    DEVICE unsigned bar() const { return shared_address(&bars[count & 1]); }
};
template <int W, int C> DEVICE void row_expect(const Meetings &m, int bytes) {
    if constexpr (C > 1)
        if (threadIdx.x == 0) barrier_expect(m.bar(), W / 32 * C * bytes);
}
template <class R, int W, int C, typename T> DEVICE T row_partial(T x, T *slot, const Meetings &m) {
    if constexpr (C == 1) return row_partial<R, W, C>(x, slot);
    x = reduce_lanes<R, (W < 32 ? W : 32)>(x);
    if (threadIdx.x % 32 < C) send_counted(&slot[cluster_rank() * (W / 32) + threadIdx.x / 32], x, threadIdx.x % 32, m.bar());
    return x;
}
template <int W, int C> DEVICE void row_sync(Meetings &m) {
    if constexpr (C == 1) return row_sync<W, C>();
    barrier_wait(m.bar(), m.count >> 1 & 1);
    ++m.count;
}

// Copies of TMA tiles, issued by one thread. Coordinates are elements, innermost first;
// what lies outside reads as zero and still counts its bytes.
DEVICE void map_prefetch(const TensorMap &m) { asm volatile("prefetch.tensormap [%0];" ::"l"(&m) : "memory"); }
#define TMA_LOAD "cp.async.bulk.tensor"
#define TMA_TO_SHARED ".shared::cluster.global.tile.mbarrier::complete_tx::bytes"
DEVICE void tma_load(unsigned to, const TensorMap &m, unsigned bar, int c0, int c1) {
    asm volatile(TMA_LOAD ".2d" TMA_TO_SHARED " [%0], [%1, {%3, %4}], [%2];" ::"r"(to), "l"(&m), "r"(bar), "r"(c0), "r"(c1) : "memory");
}
DEVICE void tma_load(unsigned to, const TensorMap &m, unsigned bar, int c0, int c1, int c2) {
    asm volatile(TMA_LOAD ".3d" TMA_TO_SHARED " [%0], [%1, {%3, %4, %5}], [%2];" ::"r"(to), "l"(&m), "r"(bar), "r"(c0), "r"(c1), "r"(c2) : "memory");
}
DEVICE void tma_load(unsigned to, const TensorMap &m, unsigned bar, int c0, int c1, int c2, int c3) {
    asm volatile(TMA_LOAD ".4d" TMA_TO_SHARED " [%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(to), "l"(&m), "r"(bar), "r"(c0), "r"(c1), "r"(c2), "r"(c3) : "memory");
}
DEVICE void tma_load(unsigned to, const TensorMap &m, unsigned bar, int c0, int c1, int c2, int c3, int c4) {
    asm volatile(TMA_LOAD ".5d" TMA_TO_SHARED " [%0], [%1, {%3, %4, %5, %6, %7}], [%2];" ::"r"(to), "l"(&m), "r"(bar), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4) : "memory");
}
// The same with a policy for the L2 cache.
#define TMA_TO_SHARED_HINT TMA_TO_SHARED ".L2::cache_hint"
DEVICE void tma_load_hint(unsigned long long policy, unsigned to, const TensorMap &m, unsigned bar, int c0, int c1) {
    asm volatile(TMA_LOAD ".2d" TMA_TO_SHARED_HINT " [%0], [%1, {%4, %5}], [%2], %3;" ::"r"(to), "l"(&m), "r"(bar), "l"(policy), "r"(c0), "r"(c1) : "memory");
}
DEVICE void tma_load_hint(unsigned long long policy, unsigned to, const TensorMap &m, unsigned bar, int c0, int c1, int c2) {
    asm volatile(TMA_LOAD ".3d" TMA_TO_SHARED_HINT " [%0], [%1, {%4, %5, %6}], [%2], %3;" ::"r"(to), "l"(&m), "r"(bar), "l"(policy), "r"(c0), "r"(c1), "r"(c2) : "memory");
}
DEVICE void tma_load_hint(unsigned long long policy, unsigned to, const TensorMap &m, unsigned bar, int c0, int c1, int c2, int c3) {
    asm volatile(TMA_LOAD ".4d" TMA_TO_SHARED_HINT " [%0], [%1, {%4, %5, %6, %7}], [%2], %3;" ::"r"(to), "l"(&m), "r"(bar), "l"(policy), "r"(c0), "r"(c1), "r"(c2), "r"(c3) : "memory");
}
DEVICE void tma_load_hint(unsigned long long policy, unsigned to, const TensorMap &m, unsigned bar, int c0, int c1, int c2, int c3, int c4) {
    asm volatile(TMA_LOAD ".5d" TMA_TO_SHARED_HINT " [%0], [%1, {%4, %5, %6, %7, %8}], [%2], %3;" ::"r"(to), "l"(&m), "r"(bar), "l"(policy), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4) : "memory");
}
// The same into every block of the cluster whose bit is set in `blocks`, at the same
// place; each block's own barrier counts its bytes.
DEVICE void tma_load_multicast(unsigned short blocks, unsigned to, const TensorMap &m, unsigned bar, int c0, int c1) {
    asm volatile(TMA_LOAD ".2d" TMA_TO_SHARED ".multicast::cluster [%0], [%1, {%4, %5}], [%2], %3;" ::"r"(to), "l"(&m), "r"(bar), "h"(blocks), "r"(c0), "r"(c1) : "memory");
}
DEVICE void tma_load_multicast(unsigned short blocks, unsigned to, const TensorMap &m, unsigned bar, int c0, int c1, int c2) {
    asm volatile(TMA_LOAD ".3d" TMA_TO_SHARED ".multicast::cluster [%0], [%1, {%4, %5, %6}], [%2], %3;" ::"r"(to), "l"(&m), "r"(bar), "h"(blocks), "r"(c0), "r"(c1), "r"(c2) : "memory");
}
DEVICE void tma_load_multicast(unsigned short blocks, unsigned to, const TensorMap &m, unsigned bar, int c0, int c1, int c2, int c3) {
    asm volatile(TMA_LOAD ".4d" TMA_TO_SHARED ".multicast::cluster [%0], [%1, {%4, %5, %6, %7}], [%2], %3;" ::"r"(to), "l"(&m), "r"(bar), "h"(blocks), "r"(c0), "r"(c1), "r"(c2), "r"(c3) : "memory");
}
DEVICE void tma_load_multicast(unsigned short blocks, unsigned to, const TensorMap &m, unsigned bar, int c0, int c1, int c2, int c3, int c4) {
    asm volatile(TMA_LOAD ".5d" TMA_TO_SHARED ".multicast::cluster [%0], [%1, {%4, %5, %6, %7, %8}], [%2], %3;" ::"r"(to), "l"(&m), "r"(bar), "h"(blocks), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4) : "memory");
}
// Stores; what lies outside of the tensor is dropped. Before the engine or wgmma reads what threads have written to
// shared memory, each writing thread calls shared_publish, and a barrier follows.
DEVICE void shared_publish() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
DEVICE void tma_store(const TensorMap &m, unsigned from, int c0, int c1) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];" ::"l"(&m), "r"(from), "r"(c0), "r"(c1) : "memory");
}
DEVICE void tma_store(const TensorMap &m, unsigned from, int c0, int c1, int c2) {
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(&m), "r"(from), "r"(c0), "r"(c1), "r"(c2) : "memory");
}
DEVICE void tma_store(const TensorMap &m, unsigned from, int c0, int c1, int c2, int c3) {
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(&m), "r"(from), "r"(c0), "r"(c1), "r"(c2), "r"(c3) : "memory");
}
DEVICE void stores_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// Waits until all but the last N groups have read their shared memory, or are done.
template <int N> DEVICE void stores_wait_read() { asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory"); }
template <int N> DEVICE void stores_wait() { asm volatile("cp.async.bulk.wait_group %0;" ::"n"(N) : "memory"); }

// Moves registers between the warpgroups of a block; N is a multiple of 8 from 24 to 256. The roles must be the
// branches of one if, and the kernel must be bounded to one block a multiprocessor.
template <int N> DEVICE void registers_give() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N)); }
template <int N> DEVICE void registers_take() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N)); }

// wgmma: a warpgroup of 128 threads multiplies 64 rows of A by N rows of B, 32 bytes
// of K at a time. Thread t holds of row 16*(t/32) + t%32/4 the columns 8*j + 2*(t%4) + {0, 1}
// in d[4*j + {0, 1}], and of the row 8 below in d[4*j + {2, 3}].
DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> DEVICE void wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory"); }
// Keeps the compiler from moving accumulators across a wait or a fence.
template <int N> DEVICE void wgmma_hold(float (&d)[N]) {
#pragma unroll
    for (int i = 0; i < N; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

template <int N> DEVICE void wgmma_hold(int (&d)[N]) {
#pragma unroll
    for (int i = 0; i < N; ++i) asm volatile("" : "+r"(d[i])::"memory");
}

// Descriptors of operands in shared memory with the 128-byte swizzle, at multiples of
// 1024 bytes. K-major: rows of 128 bytes along K; the next instruction reads 32 bytes further. MN-major, for 16-bit
// elements: slabs of 64 elements of M or N, with a line of 128 bytes for each index of K. Slabs are `slab` bytes
// apart, and the next instruction, 16 further along K, reads 2048 bytes further.
constexpr unsigned long long SWIZZLE_128 = 1ull << 62;
DEVICE unsigned long long descriptor_k(unsigned at) {
    return SWIZZLE_128 | (unsigned long long)(1024 >> 4) << 32 | 1ull << 16 | (at & 0x3ffff) >> 4;
}
DEVICE unsigned long long descriptor_mn(unsigned at, unsigned slab) {
    return SWIZZLE_128 | (unsigned long long)(1024 >> 4) << 32 | (unsigned long long)(slab >> 4) << 16 | (at & 0x3ffff) >> 4;
}
// The same for 16 rows, with a line of 32 bytes for each index of K. The instruction wants 64 rows and reads these
// four times.
constexpr unsigned long long SWIZZLE_32 = 3ull << 62;
DEVICE unsigned long long descriptor_few(unsigned at) {
    return SWIZZLE_32 | (unsigned long long)(256 >> 4) << 32 | (at & 0x3ffff) >> 4;
}
// The descriptor of the same operand `bytes` further on.
DEVICE unsigned long long descriptor_step(unsigned long long d, unsigned bytes) { return d + (bytes >> 4); }
// Where the 128-byte swizzle puts the byte that a plain layout has at `offset`.
DEVICE unsigned swizzled(unsigned offset) { return offset ^ (offset >> 7 & 7) << 4; }

// Stores four 8x8 matrices of 16-bit elements; lane l gives the address of row l%8 of
// matrix l/8. Transposed, lanes hold columns.
DEVICE void store_matrices(unsigned at, unsigned a, unsigned b, unsigned c, unsigned d) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}
DEVICE void store_matrices_transposed(unsigned at, unsigned a, unsigned b, unsigned c, unsigned d) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}
