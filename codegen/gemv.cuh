
// --- fragments from memory ------------------------------------------------------------

// The words that tensor cores take of eight neighbours as they are in memory; zeros
// where they are outside.
template <int N, typename T> DEVICE void words(unsigned (&to)[4], const Vec<T, N> &x, int sub, bool inside) {
    union { Vec<T, N> values; unsigned u[N / 2]; } both;
    both.values = x;
#pragma unroll
    for (int i = 0; i < 4; ++i) to[i] = inside ? both.u[4 * sub + i] : 0;
}

// d += x * w for 16 rows of x, 8 of w and 32 columns: each thread holds eight
// neighbours of the rows lane/4 and lane/4 + 8 of x and lane/4 of w, the same columns
// of all. Which 16 columns a step takes does not matter to a sum.
template <typename T> DEVICE void multiply_pieces(float (&d)[4], const unsigned (&x)[2][4], const unsigned (&w)[4]) {
#pragma unroll
    for (int s = 0; s < 2; ++s) {
        const unsigned a[4] = {x[0][2 * s], x[1][2 * s], x[0][2 * s + 1], x[1][2 * s + 1]};
        HalfParts<T, 16, 8>::multiply(d, a, &w[2 * s], T{});
    }
}
