package ir

import "math/bits"

// Factor replaces divisions by a size that is known when a kernel is launched with
// multiplications: floor(x / n) is (x * multiplier / 2^32 + x) / 2^shift for all x from 0 to
// 2^31 - 1, where the multiplier is in the lower 32 bits of the factor and the shift in the
// upper (Granlund and Montgomery, "Division by invariant integers using multiplication", 1994).
// It is 0 if n is not in that range, or 0.
func Factor(n int64) uint64 {
	if n <= 0 || n > 1<<31-1 {
		return 0
	}
	shift := bits.Len64(uint64(n - 1))
	multiplier := (uint64(1)<<shift-uint64(n))<<32/uint64(n) + 1
	return uint64(shift)<<32 | multiplier
}
