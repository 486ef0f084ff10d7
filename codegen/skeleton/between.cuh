
// --- results of two sums that lie between each other ------------------------------

// Stages the sums of one of the chunks of a tile that has two for each column: CHUNK results, one of each in turn.
template <int CHUNK> DEVICE void stage_between(unsigned staging, const float (&sums)[2][BLOCKS_M][TILE_N / 2], int block, int chunk) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int b = 0; b < BLOCKS_M; ++b)
#pragma unroll
        for (int c = 0; c < 2 * TILE_N / CHUNK; ++c) {
            if (b != block || c != chunk) continue;
#pragma unroll
            for (int fragment = 0; fragment < CHUNK / 16; ++fragment) {
                const float *const first = &sums[0][b][(c * (CHUNK / 16) + fragment) * 4], *const second = &sums[1][b][(c * (CHUNK / 16) + fragment) * 4];
#pragma unroll
                for (int half = 0; half < 2; ++half)
                    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(staging + staged_slot(lane / 4 + 8 * half, 4 * fragment + lane % 4)),
                                 "f"(first[2 * half]), "f"(second[2 * half]), "f"(first[2 * half + 1]), "f"(second[2 * half + 1]) : "memory");
            }
        }
}
