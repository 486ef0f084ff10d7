
// --- results of rows that lie between each other ----------------------------------

// The results of ROWS neighbouring rows alternate in memory: one of each row, then the next of each. A thread has N
// neighbours of its row, and the threads STEP lanes apart have those of the other rows. They exchange them, so that
// each ends with N neighbours in memory.
template <int ROWS, int STEP, int N> DEVICE void interleave(float (&x)[N], unsigned present) {
    constexpr int EACH = N / ROWS; // of a row's results, in a thread afterwards
#pragma unroll
    for (int apart = ROWS / 2; apart > 0; apart /= 2) { // sends half of what a thread has to one that many rows away
        const bool second = threadIdx.x % 32 / STEP / apart % 2;
#pragma unroll
        for (int i = 0; i < N; ++i) {
            if (i / (EACH * apart) % 2 == 0) {
                float &first = x[i], &other = x[i + EACH * apart];
                const float got = __shfl_xor_sync(present, second ? first : other, STEP * apart);
                if (second) first = got;
                else other = got;
            }
        }
    }
    float y[N];
#pragma unroll
    for (int i = 0; i < N; ++i) y[i % EACH * ROWS + i / EACH] = x[i];
#pragma unroll
    for (int i = 0; i < N; ++i) x[i] = y[i];
}
