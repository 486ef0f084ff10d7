package ir

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSaturating compares with exact integers, cut to 64 bits.
func TestSaturating(t *testing.T) {
	numbers := []int64{0, 1, -1, 2, -2, 3, 5, -7, 1 << 31, -1 << 31, 1<<32 - 1, 1 << 62, -1 << 62, 3037000500, -3037000500,
		math.MaxInt64, math.MinInt64, math.MaxInt64 - 1, math.MinInt64 + 1}
	exact := map[Op]func(z, a, b *big.Int) *big.Int{OpAdd: (*big.Int).Add, OpSub: (*big.Int).Sub, OpMul: (*big.Int).Mul,
		OpNeg: func(z, a, _ *big.Int) *big.Int { return z.Neg(a) }}
	for op, of := range exact {
		for _, a := range numbers {
			for _, b := range numbers {
				want := of(new(big.Int), big.NewInt(a), big.NewInt(b))
				if !want.IsInt64() {
					want = big.NewInt(end(want.Sign() < 0))
				}
				require.Equal(t, want.Int64(), Saturating(op)(a, b), "%v of %d and %d", op, a, b)
			}
		}
	}
	require.Nil(t, Saturating(OpFloorDiv))
}
