
// --- last-block reduction -----------------------------------------

// True in the block of a group that counts itself last. What the others have written is there for it to read
// (fresh), and the counter is zero again for the next launch. All threads of a block call it together. Only the last
// block acquires, because an acquire empties the L1 cache, through which other blocks are reading.
DEVICE bool comes_last(unsigned *counters, unsigned group, unsigned blocks) {
    __shared__ bool last;
    __syncthreads(); // all threads have written; the release with which the block counts itself covers that
    if (threadIdx.x == 0) {
        unsigned taken;
        asm volatile("atom.release.gpu.global.inc.u32 %0, [%1], %2;" : "=r"(taken) : "l"(counters + group), "r"(blocks - 1) : "memory");
        last = taken == blocks - 1;
        if (last) asm volatile("fence.acq_rel.gpu;" ::: "memory");
    }
    __syncthreads();
    return last;
}
