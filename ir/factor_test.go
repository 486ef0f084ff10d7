package ir

import (
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"
)

// divided is x / n as kernels compute it.
func divided(x uint32, factor uint64) uint32 {
	high := uint32(uint64(x) * (factor & (1<<32 - 1)) >> 32)
	return (high + x) >> (factor >> 32)
}

// TestFactorsDivide compares with division at the divisors and positions where an error of one
// would show: powers of two, their neighbours, and multiples of the divisor and theirs.
func TestFactorsDivide(t *testing.T) {
	const largest = 1<<31 - 1
	divisors := []int64{1, 2, 3, 5, 7, 10, 641, 1<<16 + 1, 3 << 29, largest - 1, largest}
	for s := 2; s < 31; s++ {
		divisors = append(divisors, 1<<s-1, 1<<s, 1<<s+1)
	}
	r := rand.New(rand.NewSource(1))
	for range 1000 {
		divisors = append(divisors, 1+r.Int63n(largest>>r.Intn(31)))
	}
	for _, n := range divisors {
		f := Factor(n)
		for _, x := range append([]int64{0, 1, n - 1, n, n + 1, largest / n * n, largest/n*n - 1, largest},
			r.Int63n(largest+1), r.Int63n(largest/n+1)*n) {
			if x >= 0 && x <= largest {
				require.Equal(t, uint32(x/n), divided(uint32(x), f), "%d / %d", x, n)
			}
		}
	}
	for _, n := range []int64{-1, 0, largest + 1, 1 << 40} {
		require.Zero(t, Factor(n), "%d", n)
	}
}
