// The kernels that the runtime runs itself, around those that it measures.

// fusec_read fills the L2 cache by reading n vectors of memory that is all zero. What it leaves in the
// cache is clean: nobody has to write it back. The reads are not optimised away, because the compiler
// does not know that the memory is zero and that nothing is ever written.
extern "C" __global__ void fusec_read(uint4 *memory, long long n) {
    unsigned seen = 0;
    const long long threads = (long long)gridDim.x * blockDim.x;
#pragma unroll 4
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += threads) {
        unsigned x, y, z, w;
        asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "l"(memory + i));
        seen |= x | y | z | w;
    }
    if (seen) memory->x = seen;
}

// fusec_wait keeps the stream busy for some nanoseconds, in which the host queues what comes next.
extern "C" __global__ void fusec_wait(long long nanoseconds) {
    long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - start < nanoseconds);
}

// fusec_nothing is what is launched to see how long measuring itself takes.
extern "C" __global__ void fusec_nothing() {}
