
// How many blocks have asked before; the counter is 0 again after the last one.
DEVICE unsigned next_tile(unsigned *counters, unsigned last) {
    unsigned taken;
    asm volatile("atom.relaxed.gpu.global.inc.u32 %0, [%1], %2;" : "=r"(taken) : "l"(counters), "r"(last) : "memory");
    return taken;
}
