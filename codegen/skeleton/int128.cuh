
// --- indices of 128 bits -----------------------------------------------------

// An integer of 128 bits, whose sums, differences and products wrap: an index made of data, where parts of it may not fit 64 bits.
struct Int128 {
    unsigned long long high, low;
};
DEVICE Int128 int128(long long x) { return {(unsigned long long)(x >> 63), (unsigned long long)x}; }
DEVICE Int128 operator+(Int128 a, Int128 b) {
    const unsigned long long low = a.low + b.low;
    return {a.high + b.high + (low < a.low), low};
}
DEVICE Int128 operator-(Int128 a, Int128 b) { return {a.high - b.high - (a.low < b.low), a.low - b.low}; }
DEVICE Int128 operator*(Int128 a, Int128 b) {
    return {__umul64hi(a.low, b.low) + a.high * b.low + a.low * b.high, a.low * b.low};
}
DEVICE bool operator==(Int128 a, Int128 b) { return a.high == b.high && a.low == b.low; }
DEVICE bool operator!=(Int128 a, Int128 b) { return !(a == b); }
DEVICE bool operator<(Int128 a, Int128 b) {
    return (long long)a.high < (long long)b.high || (a.high == b.high && a.low < b.low);
}
DEVICE bool operator>(Int128 a, Int128 b) { return b < a; }
DEVICE bool operator<=(Int128 a, Int128 b) { return !(b < a); }
DEVICE bool operator>=(Int128 a, Int128 b) { return !(a < b); }
DEVICE Int128 min_(Int128 a, Int128 b) { return b < a ? b : a; }
DEVICE Int128 max_(Int128 a, Int128 b) { return a < b ? b : a; }
DEVICE bool negative(Int128 a) { return (long long)a.high < 0; }
DEVICE bool fits64(Int128 a) { return a.high == (unsigned long long)((long long)a.low >> 63); }
// The number of 64 bits that is nearest.
DEVICE long long clamped(Int128 a) { return fits64(a) ? (long long)a.low : end_of(negative(a)); }
// The quotient, rounded down, and 0 by 0; a bit at a time where 64 bits do not hold the numbers.
DEVICE Int128 floordiv(Int128 a, Int128 b) {
    if (fits64(a) && fits64(b) && !(a == int128(end_of(true)))) return int128(floordiv((long long)a.low, (long long)b.low));
    if (b == int128(0)) return b;
    const bool down = negative(a) != negative(b);
    a = negative(a) ? int128(0) - a : a;
    b = negative(b) ? int128(0) - b : b;
    Int128 quotient = {0, 0}, rest = {0, 0};
    for (int i = 0; i < 128; ++i) {
        const bool carry = negative(rest);
        rest = {rest.high << 1 | rest.low >> 63, rest.low << 1 | a.high >> 63};
        a = a + a;
        quotient = quotient + quotient;
        if (carry || rest.high > b.high || (rest.high == b.high && rest.low >= b.low)) {
            rest = rest - b;
            quotient.low |= 1;
        }
    }
    return down ? int128(0) - quotient - int128(rest != int128(0)) : quotient;
}
DEVICE Int128 mod_(Int128 a, Int128 b) { return b == int128(0) ? b : a - b * floordiv(a, b); }
