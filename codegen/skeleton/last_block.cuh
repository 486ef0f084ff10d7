
// --- last-block reduction -----------------------------------------

// True in one of as many blocks of a group as there are: the one that takes the last
// count. What the others have written is there for it to read (fresh). The counter is
// zero again then, for the next launch. All threads of a block call it together. Only
// the last acquires: that empties the L1 cache, which other blocks are reading through.
DEVICE bool comes_last(unsigned *counters, unsigned group, unsigned blocks) {
    __shared__ bool last;
    __syncthreads(); // the block has written: counting the block releases that
    if (threadIdx.x == 0) {
        unsigned taken;
        asm volatile("atom.release.gpu.global.inc.u32 %0, [%1], %2;" : "=r"(taken) : "l"(counters + group), "r"(blocks - 1) : "memory");
        last = taken == blocks - 1;
        if (last) asm volatile("fence.acq_rel.gpu;" ::: "memory");
    }
    __syncthreads();
    return last;
}
