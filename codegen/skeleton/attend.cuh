
// --- attention: keys stream past a tile of queries ------------------------------

// Two floats as 16-bit neighbours, the first in the lower half.
DEVICE unsigned pack(float a, float b, bf16) {
    unsigned r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(b), "f"(a));
    return r;
}
DEVICE unsigned pack(float a, float b, f16) {
    unsigned r;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(b), "f"(a));
    return r;
}

// The running state of two rows of a tile, row lane/4 of the warp and the row 8 below. The four threads of a quad
// share these rows. Each thread holds the largest logit of the whole row, and the sum of its own weights.
struct Stream {
    float top[2] = {-infinity(), -infinity()}, sum[2] = {0.0f, 0.0f};

    // Replaces the logits of a tile, in the layout of accumulators, by weights: 2^(scale * (logit - largest)).
    // factor is what the sums so far have to be multiplied by. A row whose logits are all -inf has weights of 0.
    // Where logits are FAR from 0, the largest is subtracted before scaling, since scaling first would round
    // away the differences.
    template <int N> DEVICE void step(float (&s)[N], float scale, float (&factor)[2]) {
        constexpr float FAR = 1048576.0f;
        float base[2], most[2];
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            most[h] = top[h];
#pragma unroll
            for (int i = 2 * h; i < N; i += 4) most[h] = fmaxf(most[h], fmaxf(s[i], s[i + 1]));
            most[h] = fmaxf(most[h], __shfl_xor_sync(0xffffffffu, most[h], 1));
            most[h] = fmaxf(most[h], __shfl_xor_sync(0xffffffffu, most[h], 2));
            base[h] = most[h] == -infinity() ? 0.0f : most[h] * scale;
        }
        if (fmaxf(fabsf(base[0]), fabsf(base[1])) > FAR) {
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const float away = base[h] == 0.0f ? 0.0f : most[h];
                base[h] = 0.0f;
                top[h] -= away;
#pragma unroll
                for (int i = 2 * h; i < N; i += 4) s[i] -= away, s[i + 1] -= away;
            }
        }
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            factor[h] = exp2_fast(fmaf(top[h], scale, -base[h]));
            top[h] = most[h];
            float part = 0.0f;
#pragma unroll
            for (int i = 2 * h; i < N; i += 4)
#pragma unroll
                for (int p = i; p < i + 2; ++p) {
                    s[p] = exp2_fast(fmaf(s[p], scale, -base[h]));
                    part += s[p];
                }
            sum[h] = fmaf(sum[h], factor[h], part);
        }
    }
    // Adds the sums of the four threads of a quad.
    DEVICE void finish() {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            sum[h] += __shfl_xor_sync(0xffffffffu, sum[h], 1);
            sum[h] += __shfl_xor_sync(0xffffffffu, sum[h], 2);
        }
    }
};

// Transposes the 4x4 words of the four lanes of a quad.
DEVICE void quad_transpose(unsigned (&p)[4]) {
    const bool odd = threadIdx.x & 1, high = threadIdx.x & 2;
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
        const unsigned other = __shfl_xor_sync(0xffffffffu, odd ? p[i] : p[i + 1], 1);
        (odd ? p[i] : p[i + 1]) = other;
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const unsigned other = __shfl_xor_sync(0xffffffffu, high ? p[i] : p[i + 2], 2);
        (high ? p[i] : p[i + 2]) = other;
    }
}
// Stores 32 columns of a row. Of every eight columns, each lane of a quad has columns 2*lane and 2*lane + 1;
// after an exchange lane l stores the l-th eight, at p. All lanes of the warp call it.
template <typename T> DEVICE void store_row(T *p, const float (&x)[4][2], bool inside) {
    unsigned words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) words[i] = pack(x[i][0], x[i][1], T{});
    quad_transpose(words);
    if (inside) *reinterpret_cast<Vec<unsigned, 4> *>(p) = Vec<unsigned, 4>{words[0], words[1], words[2], words[3]};
}

// Rescaling is rare once the largest logit of a row has been met.
template <int N> DEVICE void rescale(float (&acc)[N], const float (&factor)[2]) {
    if (!__any_sync(0xffffffffu, factor[0] != 1.0f || factor[1] != 1.0f)) return;
#pragma unroll
    for (int i = 0; i < N; ++i) acc[i] *= factor[i / 2 % 2];
}
// The weights of a tile as left operands, four registers for each 16 keys.
template <typename T, int N, int M> DEVICE void pack_weights(unsigned (&w)[M], const float (&s)[N]) {
#pragma unroll
    for (int i = 0; i < N; i += 2) w[i / 2] = pack(s[i], s[i + 1], T{});
}
