// fusec prelude: storage types, conversions, arithmetic with the language's
// rules, vector access and row reductions. Needs no header.

#define DEVICE __device__ __forceinline__

struct bf16 { unsigned short bits; };
struct f16 { unsigned short bits; };
struct f8e4m3 { unsigned char bits; };
struct f8e5m2 { unsigned char bits; };

// A kernel may be launched while those ahead of it still run (programmatic dependent
// launch): it must touch no memory before they have ended.
DEVICE void wait_for_prerequisites() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Allows the kernels that wait for this one to be launched once all of its blocks are here, so that their blocks
// start while these work. With very many blocks the signals take longer than that saves.
DEVICE void launch_dependents() {
#if __CUDA_ARCH__ >= 900
    if (gridDim.x <= 1024) asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// A function, so that its argument is computed once. The compiler may contract two copies of an expression to
// different multiply-adds, and then a number would differ from itself.
DEVICE bool is_nan(float x) { return x != x; }
DEVICE bool is_nan(double x) { return x != x; }
DEVICE float infinity() { return __int_as_float(0x7f800000); }
DEVICE float nan32() { return __int_as_float(0x7fffffff); }

// --- conversions -----------------------------------------------------------

DEVICE float to_f32(bf16 x) { return __uint_as_float((unsigned)x.bits << 16); }
DEVICE float to_f32(f16 x) {
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
    return y;
}
DEVICE float to_f32(f8e5m2 x) { return to_f32(f16{(unsigned short)(x.bits << 8)}); }
#if __CUDA_ARCH__ >= 890
DEVICE float to_f32(f8e4m3 x) {
    unsigned pair;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"((unsigned short)x.bits));
    return to_f32(f16{(unsigned short)pair});
}
#else
DEVICE float to_f32(f8e4m3 x) {
    const unsigned s = (x.bits & 0x80u) << 24, m = x.bits & 0x7fu;
    if (m == 0x7fu) return __uint_as_float(s | 0x7fffffffu);
    if (m < 8u) { // subnormal: m * 2^-9
        const float y = (float)m * 0x1p-9f;
        return s ? -y : y;
    }
    return __uint_as_float(s | ((m << 20) + (120u << 23)));
}
#endif

template <typename T> DEVICE T from_f32(float x);
template <> DEVICE float from_f32<float>(float x) { return x; }
template <> DEVICE double from_f32<double>(float x) { return x; }
template <> DEVICE f16 from_f32<f16>(float x) {
    f16 y;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    return y;
}
template <> DEVICE bf16 from_f32<bf16>(float x) {
#if __CUDA_ARCH__ >= 800
    bf16 y;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    return y;
#else
    unsigned u = __float_as_uint(x);
    if (x != x) return bf16{0x7fff};
    u += 0x7fffu + ((u >> 16) & 1u);
    return bf16{(unsigned short)(u >> 16)};
#endif
}

#if __CUDA_ARCH__ >= 890
// Values too large become the largest finite one, here as below.
template <> DEVICE f8e4m3 from_f32<f8e4m3>(float x) {
    unsigned short pair;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
    return f8e4m3{(unsigned char)pair};
}
template <> DEVICE f8e5m2 from_f32<f8e5m2>(float x) {
    unsigned short pair;
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
    return f8e5m2{(unsigned char)pair};
}
#endif

// An integer as an f32 that rounds to narrower floats as the integer itself does. Rounding to odd: if anything was cut
// off, the last bit is set, and no narrower float has that bit.
template <typename T> DEVICE float sticky_f32(float toward_zero, T back, T x) {
    return __uint_as_float(__float_as_uint(toward_zero) | (back != x ? 1u : 0u));
}
DEVICE float odd_f32(int x) { const float y = __int2float_rz(x); return sticky_f32<long long>(y, __float2ll_rz(y), x); }
DEVICE float odd_f32(unsigned x) { const float y = __uint2float_rz(x); return sticky_f32<long long>(y, __float2ll_rz(y), x); }
DEVICE float odd_f32(long long x) { const float y = __ll2float_rz(x); return sticky_f32<long long>(y, __float2ll_rz(y), x); }

// An integer below 2^23, by way of the float's bits: conversion instructions are slow.
DEVICE float small_to_f32(unsigned x) { return __uint_as_float(0x4b000000u | x) - 8388608.0f; }

#if __CUDA_ARCH__ < 890
// Rounds |x| to a float of M fraction bits and smallest exponent E (of a normal
// number), to nearest, ties to even; the result is exact in f32.
template <int M, int E> DEVICE float round_small(float x) {
    const float a = fabsf(x);
    const int e = max(((int)(__float_as_uint(a) >> 23)) - 127, E);
    const float step = __uint_as_float((unsigned)(e - M + 127) << 23);
    return rintf(a / step) * step;
}
// Values too large become the largest finite one, as CUDA's own conversions do.
template <> DEVICE f8e4m3 from_f32<f8e4m3>(float x) {
    const unsigned char s = (__float_as_uint(x) >> 24) & 0x80u;
    if (x != x) return f8e4m3{(unsigned char)(s | 0x7fu)};
    const float a = fminf(round_small<3, -6>(x), 448.0f);
    const unsigned u = __float_as_uint(a);
    const unsigned m = a < 0x1p-6f ? (unsigned)(a * 0x1p9f) : ((u - (120u << 23)) >> 20);
    return f8e4m3{(unsigned char)(s | m)};
}
template <> DEVICE f8e5m2 from_f32<f8e5m2>(float x) {
    const unsigned char s = (__float_as_uint(x) >> 24) & 0x80u;
    if (x != x) return f8e5m2{(unsigned char)(s | 0x7fu)};
    const f16 h = from_f32<f16>(fminf(round_small<2, -14>(x), 57344.0f));
    return f8e5m2{(unsigned char)(s | (h.bits >> 8))};
}
#endif

DEVICE long long to_i64(double x) {
    return x != x ? 0 : x >= 0x1p63 ? 0x7fffffffffffffffLL : x <= -0x1p63 ? -0x7fffffffffffffffLL - 1 : (long long)x;
}
DEVICE int to_i32(double x) { return x != x ? 0 : __double2int_rz(x); }
DEVICE int to_i32(float x) { return __float2int_rz(x); }
DEVICE long long to_i64(float x) { return x != x ? 0 : __float2ll_rz(x); }
DEVICE unsigned to_u32(float x) { return __float2uint_rz(x); }
DEVICE unsigned to_u32(double x) { return x != x ? 0 : __double2uint_rz(x); }
// An index that does not fit into 32 bits becomes one that lies outside of every tensor, as it did before.
DEVICE INDEX to_index(long long x) {
    return sizeof(INDEX) == 8 ? (INDEX)x : (INDEX)min(max(x, -2147483647LL - 1), 2147483647LL);
}
// A number beyond 64 bits becomes the nearest that they hold.
DEVICE long long end_of(bool negative) { return negative ? -0x7fffffffffffffffLL - 1 : 0x7fffffffffffffffLL; }
DEVICE long long add_saturating(long long a, long long b) {
    const long long s = (long long)((unsigned long long)a + (unsigned long long)b);
    return ((a ^ s) & (b ^ s)) < 0 ? end_of(a < 0) : s;
}
DEVICE long long sub_saturating(long long a, long long b) {
    const long long d = (long long)((unsigned long long)a - (unsigned long long)b);
    return ((a ^ b) & (a ^ d)) < 0 ? end_of(a < 0) : d;
}
DEVICE long long mul_saturating(long long a, long long b) {
    const long long low = (long long)((unsigned long long)a * (unsigned long long)b);
    return __mul64hi(a, b) == low >> 63 ? low : end_of((a < 0) != (b < 0));
}
template <typename T> DEVICE short to_i16(T x) { return (short)min(max(to_i32(x), -32768), 32767); }
template <typename T> DEVICE signed char to_i8(T x) { return (signed char)min(max(to_i32(x), -128), 127); }
template <typename T> DEVICE unsigned char to_u8(T x) { return (unsigned char)min(max(to_i32(x), 0), 255); }

// --- arithmetic --------------------------------------------------------------

DEVICE float max_(float a, float b) {
#if __CUDA_ARCH__ >= 800
    float y;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
    return y;
#else
    return a != a || a > b ? a : b;
#endif
}
DEVICE float min_(float a, float b) {
#if __CUDA_ARCH__ >= 800
    float y;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
    return y;
#else
    return a != a || a < b ? a : b;
#endif
}
template <typename T> DEVICE T max_(T a, T b) { return a != a || a > b ? a : b; }
template <typename T> DEVICE T min_(T a, T b) { return a != a || a < b ? a : b; }

// The least and the largest of values; indices, which no program negates, have min_ and max_. ptxas makes one instruction of
// two that take the least, or the largest, of three signed integers, and where one of them is negated it loses the sign
// (CUDA 13.0, sm_90a). With 2^31 added the integers are in the order of unsigned ones, for which it is right. NVRTC must not see
// that: it would take the addition for one that does not overflow.
template <typename T> DEVICE T min_value(T a, T b) { return min_(a, b); }
template <typename T> DEVICE T max_value(T a, T b) { return max_(a, b); }
#if __CUDA_ARCH__ >= 900
DEVICE int min_value(int a, int b) {
    int y;
    asm("{ .reg .b32 a, b; xor.b32 a, %1, 0x80000000; xor.b32 b, %2, 0x80000000; min.u32 a, a, b; xor.b32 %0, a, 0x80000000; }" : "=r"(y) : "r"(a), "r"(b));
    return y;
}
DEVICE int max_value(int a, int b) {
    int y;
    asm("{ .reg .b32 a, b; xor.b32 a, %1, 0x80000000; xor.b32 b, %2, 0x80000000; max.u32 a, a, b; xor.b32 %0, a, 0x80000000; }" : "=r"(y) : "r"(a), "r"(b));
    return y;
}
DEVICE short min_value(short a, short b) { return (short)min_value((int)a, (int)b); }
DEVICE short max_value(short a, short b) { return (short)max_value((int)a, (int)b); }
#endif

// The fast forms treat numbers below 2^-126 in magnitude as zero, in what they take and in what they give. To handle
// them each would be three to seven instructions instead of one or two.
DEVICE float div_fast(float a, float b) {
    float y;
    asm("div.full.ftz.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
    return y;
}
DEVICE float rcp_fast(float a) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(a));
    return y;
}
DEVICE float exp2_fast(float a) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(a));
    return y;
}
DEVICE float log2_fast(float a) {
    float y;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(a));
    return y;
}
DEVICE float exp_fast(float a) { return exp2_fast(a * 1.4426950408889634f); }
DEVICE float sqrt_fast(float a) {
    float y;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(a));
    return y;
}
DEVICE float tanh_fast(float a) {
    float y;
    asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(a));
    return y;
}
// 1 - 2^(t R(t)) for t = |a|, where t R(t) approximates log2(erfc(t)), so that erf is off by 1.6e-8 of itself. Near
// zero, where the difference cancels, it is the tangent instead.
DEVICE float erf_fast(float a) {
    const float t = fabsf(a);
    float r = fmaf(-4.53576251e-5f, t, 4.45500770e-4f);
    r = fmaf(r, t, -1.48942305e-3f);
    r = fmaf(r, t, -7.74653257e-4f);
    r = fmaf(r, t, 2.82536945e-2f);
    r = fmaf(r, t, -1.48481617e-1f);
    r = fmaf(r, t, -9.18416394e-1f);
    r = fmaf(r, t, -1.62790859f);
    const float far = copysignf(1.0f - exp2_fast(r * t), a);
    return t < 0x1p-7f ? a * 1.12837917f : far;
}

// Up to 2^-6 three terms of the series, with a relative error of 2^-20; beyond, the logarithm of 1 + a, with 2^-22.
DEVICE float log1p_fast(float a) {
    const float y = log2_fast(1.0f + a);
    return fabsf(a) < 0x1p-6f ? a * (1.0f + a * (a * 0.33333334f - 0.5f)) : y * 0.6931471805599453f;
}

// With 1 + a = 2^k (1 + m), m from -0.25 to 0.5, the result is k log(2) + m + m^2 q(m). The minimax polynomial q leaves
// a relative error of 2^-27.6; in all the error is 0.91 units in the last place. Unlike log1pf it has no branch, so that
// the instructions of several elements interleave. For a <= -1, infinities and NaN it is log(1 + a): -inf, inf or NaN.
DEVICE float log1p_(float a) {
    const float one_more = 1.0f + a;
    const int k = (__float_as_int(one_more) - 0x3f400000) & 0xff800000; // times 2^23
    const float scale = 0.25f * __int_as_float(0x40800000 - k);         // 2^-k, which may be below 2^-126
    const float m = fmaf(a, scale, scale - 1.0f);
    float q = fmaf(-4.49097035e-2f, m, 1.04483401e-1f);
    q = fmaf(q, m, -1.31622328e-1f);
    q = fmaf(q, m, 1.44820605e-1f);
    q = fmaf(q, m, -1.66477670e-1f);
    q = fmaf(q, m, 1.99906068e-1f);
    q = fmaf(q, m, -2.50000546e-1f);
    q = fmaf(q, m, 3.33334544e-1f);
    q = fmaf(q, m, -0.5f);
    const float near = fmaf((float)k, 0x1.62e43p-24f, fmaf(m, m * q, m));
    const float far = log2_fast(one_more);
    return copysignf(one_more > 0.0f && one_more < infinity() ? near : far, a);
}

// Up to 7/8 t + t^3 q(t^2) for t = |a|, where the minimax polynomial q leaves a relative error of 2^-26.4; beyond,
// 1 - 2 / (exp(2 t) + 1). In all the error is 2.4 units in the last place. Unlike tanhf it has no branch, so that the
// instructions of several elements interleave.
DEVICE float tanh_(float a) {
    const float t = fabsf(a), s = a * a;
    float q = fmaf(1.37098995e-3f, s, -7.00325146e-3f);
    q = fmaf(q, s, 2.10171063e-2f);
    q = fmaf(q, s, -5.37616014e-2f);
    q = fmaf(q, s, 1.33309752e-1f);
    q = fmaf(q, s, -3.33332419e-1f);
    const float near = fmaf(q * s, t, t);
    const float far = fmaf(-2.0f, rcp_fast(exp2_fast(2.88539004f * t) + 1.0f), 1.0f);
    return copysignf(t < 0.875f ? near : far, a);
}

// Both values are computed before one is picked.
DEVICE float pick(bool c, float a, float b) { return c ? a : b; }

// Integers wrap around. In C signed overflow is undefined, and compilers rely on that, so unsigned arithmetic is used.
DEVICE int add_(int a, int b) { return (int)((unsigned)a + (unsigned)b); }
DEVICE int sub_(int a, int b) { return (int)((unsigned)a - (unsigned)b); }
DEVICE int mul_(int a, int b) { return (int)((unsigned)a * (unsigned)b); }
DEVICE long long add_(long long a, long long b) { return (long long)((unsigned long long)a + (unsigned long long)b); }
DEVICE long long sub_(long long a, long long b) { return (long long)((unsigned long long)a - (unsigned long long)b); }
DEVICE long long mul_(long long a, long long b) { return (long long)((unsigned long long)a * (unsigned long long)b); }
DEVICE unsigned sub_(unsigned a, unsigned b) { return a - b; }
DEVICE unsigned mul_(unsigned a, unsigned b) { return a * b; }

template <typename T> DEVICE T floordiv(T a, T b) {
    if (b == 0) return 0;
    if ((T)-1 < (T)0 && b == (T)-1) return (T)sub_((T)0, a);
    const T q = a / b;
    return q * b != a && (a < 0) != (b < 0) ? (T)(q - 1) : q;
}
template <typename T> DEVICE T mod_(T a, T b) {
    if (b == 0 || (T)-1 < (T)0 && b == (T)-1) return 0;
    const T r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? (T)(r + b) : r;
}
template <> DEVICE float mod_<float>(float a, float b) {
    const float r = fmodf(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
template <> DEVICE double mod_<double>(double a, double b) {
    const double r = fmod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
template <typename T> DEVICE T ipow(T a, T b) {
    if (b < 0) return a == 1 ? (T)1 : a == (T)-1 ? (T)(1 - 2 * (b & 1)) : (T)0;
    T r = 1;
    for (; b > 0; b >>= 1) {
        if (b & 1) r = (T)mul_(r, a);
        a = (T)mul_(a, a);
    }
    return r;
}
template <typename T> DEVICE T sign_(T a) { return a > 0 ? (T)1 : a < 0 ? (T)-1 : a; }
template <typename T> DEVICE T shl_(T a, T b) { return (long long)b < 0 || (long long)b > 63 ? (T)0 : (T)((unsigned long long)a << b); }
template <typename T> DEVICE T shr_(T a, T b) {
    if ((long long)b < 0 || (long long)b >= 8 * (int)sizeof(T)) return (long long)a < 0 ? (T)-1 : (T)0;
    return (T)(a >> (int)b);
}

// Sine and cosine. The library's argument reduction uses local memory, so this one is its own: Cody-Waite in three
// parts while that is exact enough. Larger arguments are multiplied by 2/pi modulo 4 (Payne and Hanek, 1983): 2/pi is
// stored in parts of 28 bits down to 2^-196, whose products with the 24 bits of a float are exact in f64. Multiples of 4
// are dropped from each product, and the sum is kept in two numbers.
DEVICE float reduce_half_pi(float x, int &quadrant) {
    if (fabsf(x) < 30000.0f) {
        const float n = rintf(x * 0.636619772f);
        quadrant = (int)n;
        return fmaf(n, -5.39030253e-15f, fmaf(n, -7.54978942e-8f, fmaf(n, -1.57079625f, x)));
    }
    const double parts[7] = {0xa2f9836p-28, 0xe4e4415p-56, 0x29fc275p-84, 0x7d1f534p-112,
                             0xddc0db6p-140, 0x295993cp-168, 0x439041fp-196};
    double high = 0, low = 0;
#pragma unroll
    for (int i = 0; i < 7; ++i) {
        double p = (double)x * parts[i];
        p = fma(-4.0, rint(p * 0.25), p);
        const double sum = high + p, part = sum - high;
        low += (high - (sum - part)) + (p - part);
        high = sum;
    }
    const double n = rint(high);
    quadrant = (int)n;
    return (float)(((high - n) + low) * 1.5707963267948966);
}
DEVICE float sin_poly(float r) {
    const float s = r * r;
    return fmaf(r * s, fmaf(s, fmaf(s, fmaf(s, 2.86567956e-6f, -1.98559923e-4f), 8.33338592e-3f), -1.66666672e-1f), r);
}
DEVICE float cos_poly(float r) {
    const float s = r * r;
    return fmaf(s, fmaf(s, fmaf(s, fmaf(s, 2.44677067e-5f, -1.38877297e-3f), 4.16666567e-2f), -0.5f), 1.0f);
}
DEVICE float sin_quadrant(float r, int q) {
    const float y = q & 1 ? cos_poly(r) : sin_poly(r);
    return q & 2 ? -y : y;
}
DEVICE float sin_(float x) {
    if (!(fabsf(x) <= 3.402823466e38f)) return nan32();
    int q;
    const float r = reduce_half_pi(x, q);
    return sin_quadrant(r, q);
}
DEVICE float cos_(float x) {
    if (!(fabsf(x) <= 3.402823466e38f)) return nan32();
    int q;
    const float r = reduce_half_pi(x, q);
    return sin_quadrant(r, q + 1);
}
DEVICE float tan_(float x) { return sin_(x) / cos_(x); }

// --- random numbers ----------------------------------------------------------

// Word index%4 of Philox4x32-10 at counter index/4 under the key (Salmon et al. 2011).
DEVICE uint4 philox_block(unsigned long long key, unsigned long long counter) {
    unsigned c0 = (unsigned)counter, c1 = (unsigned)(counter >> 32), c2 = 0, c3 = 0;
    unsigned k0 = (unsigned)key, k1 = (unsigned)(key >> 32);
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        const unsigned h0 = __umulhi(0xD2511F53u, c0), l0 = 0xD2511F53u * c0;
        const unsigned h1 = __umulhi(0xCD9E8D57u, c2), l1 = 0xCD9E8D57u * c2;
        c0 = h1 ^ c1 ^ k0;
        c1 = l1;
        c2 = h0 ^ c3 ^ k1;
        c3 = l0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return make_uint4(c0, c1, c2, c3);
}
DEVICE unsigned random_bits(unsigned long long key, unsigned long long index) {
    const uint4 b = philox_block(key, index >> 2);
    const unsigned i = (unsigned)index & 3u;
    return i == 0 ? b.x : i == 1 ? b.y : i == 2 ? b.z : b.w;
}
// The index%8-th sixteen bits of the block at counter index/8.
DEVICE unsigned random_bits16(unsigned long long key, unsigned long long index) {
    const uint4 b = philox_block(key, index >> 3);
    const unsigned i = ((unsigned)index >> 1) & 3u;
    const unsigned word = i == 0 ? b.x : i == 1 ? b.y : i == 2 ? b.z : b.w;
    return index & 1 ? word >> 16 : word & 0xffffu;
}

// --- vector access -----------------------------------------------------------

template <typename T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Vec { T v[N]; };

// Lane v of a vector, known when compiling, converted from its word in one instruction. Read by itself, an upper half
// would be moved to the lower one first.
template <int N> DEVICE float to_f32(const Vec<bf16, N> &x, int v) {
    if constexpr (N % 2) return to_f32(x.v[v]);
    const unsigned word = reinterpret_cast<const unsigned *>(&x)[v / 2];
    return __uint_as_float(v % 2 ? word & 0xffff0000u : word << 16);
}

// N neighbours starting at p, of which the first n are inside.
template <int N, typename T> DEVICE Vec<T, N> load(const T *p, int n) {
    if (n >= N) return *reinterpret_cast<const Vec<T, N> *>(p);
    Vec<T, N> r;
#pragma unroll
    for (int v = 0; v < N; ++v)
        if (v < n) r.v[v] = p[v];
    return r;
}

// The L2 cache replaces lines that were read under evict_first() before all others, and those
// under evict_last() after them.
DEVICE unsigned long long evict_first() {
    unsigned long long policy = 0;
#if __CUDA_ARCH__ >= 800
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
#endif
    return policy;
}
DEVICE unsigned long long evict_last() {
    unsigned long long policy = 0;
#if __CUDA_ARCH__ >= 800
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
#endif
    return policy;
}
DEVICE unsigned long long evict_normal() {
    unsigned long long policy = 0;
#if __CUDA_ARCH__ >= 800
    asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
#endif
    return policy;
}
// Both policies are computed, so that this is a select and no branch before the first read.
DEVICE unsigned long long policy_if(bool holds, unsigned long long policy) {
    const unsigned long long otherwise = evict_normal();
    return holds ? policy : otherwise;
}
template <int N, typename T> DEVICE Vec<T, N> load_under(const T *p, int n, unsigned long long policy) {
#if __CUDA_ARCH__ >= 800
    constexpr int BYTES = sizeof(Vec<T, N>);
    if constexpr (BYTES % 16 == 0) {
        if (n >= N) {
            union { Vec<T, N> value; unsigned word[BYTES / 4]; } bits;
#pragma unroll
            for (int i = 0; i < BYTES / 4; i += 4)
                asm volatile("ld.global.nc.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
                             : "=r"(bits.word[i]), "=r"(bits.word[i + 1]), "=r"(bits.word[i + 2]), "=r"(bits.word[i + 3])
                             : "l"(reinterpret_cast<const char *>(p) + 4 * i), "l"(policy));
            return bits.value;
        }
    }
#endif
    return load<N>(p, n);
}

// Hides from the compiler where the bits of x come from, without an instruction.
template <typename T, int N, int M> DEVICE void launder(Vec<T, N> (&x)[M]) {
    if constexpr (sizeof(Vec<T, N>) % 4 == 0) {
#pragma unroll
        for (int u = 0; u < M; ++u)
#pragma unroll
            for (int w = 0; w < (int)sizeof(Vec<T, N>) / 4; ++w) asm volatile("" : "+r"(reinterpret_cast<unsigned *>(&x[u])[w]));
    }
}

// Has w read as early as x although it is needed later. Otherwise the compiler issues that read where it is needed,
// behind the wait for x. The value of x does not change, because grids have one dimension, which the compiler does
// not know.
template <typename W> DEVICE unsigned first_word(const W &w) {
    if constexpr (sizeof(W) % 4 == 0) return reinterpret_cast<const unsigned &>(w);
    if constexpr (sizeof(W) == 2) return reinterpret_cast<const unsigned short &>(w);
    return reinterpret_cast<const unsigned char &>(w);
}
template <typename T, int N, int M, typename W> DEVICE void together(Vec<T, N> (&x)[M], const W &w) {
    if constexpr (sizeof(Vec<T, N>) % 4 == 0) reinterpret_cast<unsigned &>(x[0]) |= first_word(w) & blockIdx.y;
}
template <typename T, int N, int M, typename W, int K> DEVICE void together(Vec<T, N> (&x)[M], const Vec<W, N> (&w)[K]) {
#pragma unroll
    for (int u = 0; u < K; ++u) together(x, w[u]);
}

// N neighbouring words of random bits; index is a multiple of N, and N of 4.
template <int N> DEVICE Vec<unsigned, N> random_lanes(unsigned long long key, unsigned long long index) {
    Vec<unsigned, N> r;
#pragma unroll
    for (int v = 0; v < N; v += 4) {
        const uint4 b = philox_block(key, (index + v) >> 2);
        r.v[v] = b.x;
        r.v[v + 1] = b.y;
        r.v[v + 2] = b.z;
        r.v[v + 3] = b.w;
    }
    return r;
}

// The same of random_bits16; index is a multiple of N, and N of 8, or 4.
template <int N> DEVICE Vec<unsigned, N> random_lanes16(unsigned long long key, unsigned long long index) {
    Vec<unsigned, N> r;
#pragma unroll
    for (int v = 0; v < N; v += 8) {
        const uint4 b = philox_block(key, (index + v) >> 3);
        const bool upper = N == 4 && index & 4;
        const unsigned words[4] = {upper ? b.z : b.x, upper ? b.w : b.y, b.z, b.w};
#pragma unroll
        for (int i = 0; i < (N < 8 ? N : 8); ++i) r.v[v + i] = i % 2 ? words[i / 2] >> 16 : words[i / 2] & 0xffffu;
    }
    return r;
}

template <int N, typename T> DEVICE Vec<T, N> splat(T x) {
    Vec<T, N> r;
#pragma unroll
    for (int v = 0; v < N; ++v) r.v[v] = x;
    return r;
}

template <typename T, int N> DEVICE Vec<T, N> pack(const float (&x)[N]) {
    Vec<T, N> r;
#pragma unroll
    for (int v = 0; v < N; ++v) r.v[v] = from_f32<T>(x[v]);
    return r;
}
#if __CUDA_ARCH__ >= 800
template <int N> DEVICE void pack_pairs(unsigned *out, const float (&x)[N], bf16) {
#pragma unroll
    for (int v = 0; v < N / 2; ++v) asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(out[v]) : "f"(x[2 * v + 1]), "f"(x[2 * v]));
}
template <int N> DEVICE void pack_pairs(unsigned *out, const float (&x)[N], f16) {
#pragma unroll
    for (int v = 0; v < N / 2; ++v) asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(out[v]) : "f"(x[2 * v + 1]), "f"(x[2 * v]));
}
#endif

template <int N, typename T> DEVICE void store_lanes(T *p, const Vec<T, N> &r, int n) {
    if (n >= N) {
        *reinterpret_cast<Vec<T, N> *>(p) = r;
        return;
    }
#pragma unroll
    for (int v = 0; v < N; ++v)
        if (v < n) p[v] = r.v[v];
}
// Stores the first n of N values, each rounded once.
template <int N, typename T> DEVICE void store(T *p, const T (&x)[N], int n) {
    Vec<T, N> r;
#pragma unroll
    for (int v = 0; v < N; ++v) r.v[v] = x[v];
    store_lanes<N>(p, r, n);
}
// The same for elements that are moved without a conversion.
template <int N, typename T> DEVICE void store(T *p, const Vec<T, N> &x, int n) { store_lanes<N>(p, x, n); }
template <int N> DEVICE void store(f8e4m3 *p, const float (&x)[N], int n) { store_lanes<N>(p, pack<f8e4m3>(x), n); }
template <int N> DEVICE void store(f8e5m2 *p, const float (&x)[N], int n) { store_lanes<N>(p, pack<f8e5m2>(x), n); }
template <int N, typename T> DEVICE void store_half(T *p, const float (&x)[N], int n) {
#if __CUDA_ARCH__ >= 800
    if constexpr (N >= 2) {
        union { unsigned u[N / 2]; Vec<T, N> r; } both;
        pack_pairs(both.u, x, T{});
        store_lanes<N>(p, both.r, n);
        return;
    }
#endif
    store_lanes<N>(p, pack<T>(x), n);
}
template <int N> DEVICE void store(bf16 *p, const float (&x)[N], int n) { store_half<N>(p, x, n); }
template <int N> DEVICE void store(f16 *p, const float (&x)[N], int n) { store_half<N>(p, x, n); }

// A size that positions are divided by. In 32 bits the division is a multiplication by a factor, which the host has
// computed, or the thread where it divides many positions (Granlund and Montgomery, "Division by invariant integers
// using multiplication", 1994).
struct Factor { unsigned multiplier, shift; };
template <typename I> struct Divisor {
    I size;
    DEVICE Divisor(I n) : size(n) {}
    DEVICE Divisor(I n, Factor) : size(n) {}
    DEVICE I quotient(I x) const { return x / size; }
};
template <> struct Divisor<int> {
    int size;
    Factor by;
    DEVICE Divisor(int n, Factor f) : size(n), by(f) {}
    DEVICE Divisor(int n) : size(n) {
        by.shift = n > 1 ? 32 - __clz(n - 1) : 0;
        by.multiplier = n > 0 ? (unsigned)((((1ull << by.shift) - n) << 32) / n + 1) : 0;
    }
    DEVICE int quotient(int x) const { return (int)((__umulhi(x, by.multiplier) + x) >> by.shift); } // 0 <= x
};
template <typename I> DEVICE I operator/(I x, const Divisor<I> &d) { return d.quotient(x); }
template <typename I> DEVICE I operator%(I x, const Divisor<I> &d) { return x - d.quotient(x) * d.size; }

// --- reductions ----------------------------------------------------------------

struct Sum {
    template <typename T> static DEVICE T apply(T a, T b) { return a + b; }
    static DEVICE long long apply(long long a, long long b) { return add_(a, b); }
};
struct Prod {
    template <typename T> static DEVICE T apply(T a, T b) { return a * b; }
    static DEVICE long long apply(long long a, long long b) { return mul_(a, b); }
};
struct Max { template <typename T> static DEVICE T apply(T a, T b) { return max_value(a, b); } };
struct Min { template <typename T> static DEVICE T apply(T a, T b) { return min_value(a, b); } };
struct Any { template <typename T> static DEVICE T apply(T a, T b) { return a | b; } };
struct All { template <typename T> static DEVICE T apply(T a, T b) { return a & b; } };

DEVICE int shuffle(int x, int mask) { return __shfl_xor_sync(0xffffffffu, x, mask); }
DEVICE unsigned shuffle(unsigned x, int mask) { return __shfl_xor_sync(0xffffffffu, x, mask); }
DEVICE float shuffle(float x, int mask) { return __shfl_xor_sync(0xffffffffu, x, mask); }
DEVICE double shuffle(double x, int mask) { return __shfl_xor_sync(0xffffffffu, x, mask); }
DEVICE long long shuffle(long long x, int mask) { return __shfl_xor_sync(0xffffffffu, x, mask); }
DEVICE bool shuffle(bool x, int mask) { return __shfl_xor_sync(0xffffffffu, (int)x, mask); }
DEVICE short shuffle(short x, int mask) { return (short)shuffle((int)x, mask); }
DEVICE signed char shuffle(signed char x, int mask) { return (signed char)shuffle((int)x, mask); }
DEVICE unsigned char shuffle(unsigned char x, int mask) { return (unsigned char)shuffle((int)x, mask); }

template <class R, int LANES, typename T> DEVICE T reduce_lanes(T x) {
#pragma unroll
    for (int mask = LANES / 2; mask > 0; mask >>= 1) x = R::apply(x, shuffle(x, mask));
    return x;
}
// Whether folding a value twice gives the same, so that all lanes of a warp may take part where fewer have values.
template <typename T> constexpr bool repeats = false;

// The same over the threads of a warp that are LANES apart.
template <class R, int LANES, typename T> DEVICE T reduce_groups(T x) {
#pragma unroll
    for (int mask = LANES; mask < 32; mask <<= 1) x = R::apply(x, shuffle(x, mask));
    return x;
}

// A row has W threads in each of C blocks. It folds its partial values in two steps with one row_sync between them, so
// that several folds share the barrier. In a cluster every warp sends its value to all blocks. Every thread gets the
// same bits.
template <int W, int C> constexpr int slots = (W > 32 || C > 1) ? W / 32 * C : 1;

DEVICE int cluster_rank() {
    int r;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
    return r;
}
DEVICE void cluster_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
DEVICE void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }

// Writes x into the same word of shared memory in block `rank` of the cluster.
template <typename T> DEVICE void send(T *slot, const T &x, int rank) {
    static_assert(sizeof(T) % 4 == 0, "whole words");
    unsigned to;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"((unsigned)__cvta_generic_to_shared(slot)), "r"(rank));
    union { T value; unsigned word[sizeof(T) / 4]; } bits;
    bits.value = x;
#pragma unroll
    for (int i = 0; i < (int)sizeof(T) / 4; ++i)
        asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(to + 4 * i), "r"(bits.word[i]) : "memory");
}

template <class R, int W, int C, typename T> DEVICE T row_partial(T x, T *slot) {
    x = reduce_lanes<R, (W < 32 ? W : 32)>(x);
    if constexpr (C > 1) {
        if (threadIdx.x % 32 < C) send(&slot[cluster_rank() * (W / 32) + threadIdx.x / 32], x, threadIdx.x % 32);
    } else if (W > 32 && threadIdx.x % 32 == 0) {
        slot[threadIdx.x / 32] = x;
    }
    return x;
}
template <int W, int C> DEVICE void row_sync() {
    if constexpr (C > 1) {
        cluster_arrive();
        cluster_wait();
    } else if (W > 32) {
        __syncthreads();
    }
}
template <class R, int W, int C, typename T> DEVICE T row_total(T x, const T *slot) {
    if (W <= 32 && C == 1) return x;
    constexpr int N = slots<W, C>;
    if constexpr (N <= 32) return reduce_lanes<R, (repeats<T> ? 32 : N)>(slot[threadIdx.x % N]);
    x = slot[threadIdx.x % 32];
#pragma unroll
    for (int i = 1; i < N / 32; ++i) x = R::apply(x, slot[threadIdx.x % 32 + 32 * i]);
    if constexpr (N % 32 > 0)
        if (threadIdx.x % 32 < N % 32) x = R::apply(x, slot[threadIdx.x % 32 + N / 32 * 32]);
    return reduce_lanes<R, 32>(x);
}
// The same for values that are relative to a number of each warp, in `leads`; scale gives the factor that makes them
// relative to a common number.
template <class R, int W, int C, typename T, typename M, typename F> DEVICE T row_total(T x, const T *slot, const M *leads, F scale) {
    if (W <= 32 && C == 1) return x;
    constexpr int N = slots<W, C>, L = N < 32 ? N : 32;
    x = slot[threadIdx.x % L] * scale(leads[threadIdx.x % L]);
#pragma unroll
    for (int i = 1; i < N / L; ++i) x = R::apply(x, slot[threadIdx.x % L + L * i] * scale(leads[threadIdx.x % L + L * i]));
    if constexpr (N % L > 0)
        if (threadIdx.x % L < N % L) x = R::apply(x, slot[threadIdx.x % L + N / L * L] * scale(leads[threadIdx.x % L + N / L * L]));
    return reduce_lanes<R, L>(x);
}
