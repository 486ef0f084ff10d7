
// --- attention over f32, each the sum of bf16 parts --------------------------------
// An f32 is the sum of PARTS bf16 numbers of 8 bits each, largest first. A product of two f32 is the sum of the
// products of their parts; those smaller than the last bit of an f32 are left out.

// Whether an f32 is infinite or NaN.
DEVICE bool is_special(unsigned bits) { return (bits & 0x7f800000u) == 0x7f800000u; }

// The parts of two neighbours, the first in the lower half. The first part is truncated, not rounded, so that it is
// finite where x is. Of an infinity or NaN it is the only part that is not zero.
DEVICE void split(unsigned (&parts)[PARTS], float x, float y) {
    const bool special_x = is_special(__float_as_uint(x)), special_y = is_special(__float_as_uint(y));
#pragma unroll
    for (int p = 0; p < PARTS; ++p) {
        if (p == PARTS - 1 && p > 0) {
            parts[p] = pack(x, y, bf16{});
            break;
        }
        unsigned a = __float_as_uint(x), b = __float_as_uint(y);
        if (p == 0 && x != x) a = 0x7fc00000u; // truncation may cut off all bits that make it a NaN
        if (p == 0 && y != y) b = 0x7fc00000u;
        parts[p] = __byte_perm(a, b, 0x7632);
        x = p == 0 && special_x ? 0.0f : x - __uint_as_float(a & 0xffff0000u);
        y = p == 0 && special_y ? 0.0f : y - __uint_as_float(b & 0xffff0000u);
    }
}

// A panel of ROWS rows of WIDTH elements for each part.
template <int ROWS, int WIDTH> struct PartPanel {
    static constexpr int LINES = ROWS, PER_LINE = WIDTH / 8; // chunks of 8 elements
    Panel<bf16, ROWS, WIDTH> part[PARTS];

    DEVICE void left(unsigned (&r)[PARTS][4], int m, int k) const {
#pragma unroll
        for (int p = 0; p < PARTS; ++p) part[p].left(r[p], m, k);
    }
    DEVICE void right(unsigned (&r)[PARTS][4], int n, int k) const {
#pragma unroll
        for (int p = 0; p < PARTS; ++p) part[p].right(r[p], n, k);
    }
    DEVICE void right_across(unsigned (&r)[PARTS][4], int n, int k) const {
#pragma unroll
        for (int p = 0; p < PARTS; ++p) part[p].right_across(r[p], n, k);
    }
    // Stores eight neighbours of a line.
    DEVICE void store(int line, int column, const float (&x)[8]) {
        unsigned words[4][PARTS];
#pragma unroll
        for (int i = 0; i < 4; ++i) split(words[i], x[2 * i], x[2 * i + 1]);
#pragma unroll
        for (int p = 0; p < PARTS; ++p)
            *reinterpret_cast<Vec<unsigned, 4> *>(&part[p].at[line][column]) =
                Vec<unsigned, 4>{words[0][p], words[1][p], words[2][p], words[3][p]};
    }
};

// Two bf16, with zeros for infinities and NaN.
DEVICE unsigned finite_only(unsigned r) {
    const unsigned special = (r & 0x7f807f80u) + 0x00800080u & 0x80008000u; // an exponent of ones carries into the sign's place
    return r & ~((special >> 15) * 0xffffu);
}

// d += a * b, over all parts, small products first. An infinity is multiplied by the first part of the other
// factor only: the other parts may be zero, and infinity times zero is NaN.
DEVICE void multiply_parts(float (&d)[4], const unsigned (&a)[PARTS][4], const unsigned (&finite_a)[4],
                           const unsigned (&b)[PARTS][4], int first) {
    const unsigned finite_b[2] = {finite_only(b[0][first]), finite_only(b[0][first + 1])};
#pragma unroll
    for (int sum = PARTS - 1; sum > 0; --sum)
#pragma unroll
        for (int p = 0; p <= sum; ++p) {
            const unsigned(&left)[4] = p == 0 ? finite_a : a[p];
            if (p == sum) multiply(d, left, finite_b[0], finite_b[1], bf16{});
            else multiply(d, left, b[sum - p][first], b[sum - p][first + 1], bf16{});
        }
    multiply(d, a[0], b[0][first], b[0][first + 1], bf16{});
}

DEVICE void finite_parts(unsigned (&to)[4], const unsigned (&from)[PARTS][4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) to[i] = finite_only(from[0][i]);
}
