package ir

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestInt128 compares with exact integers, cut to 128 bits and clamped to 64.
func TestInt128(t *testing.T) {
	exactly := func(a Int128) *big.Int {
		out := new(big.Int).Lsh(big.NewInt(a.High), 64)
		return out.Add(out, new(big.Int).SetUint64(a.Low))
	}
	cut := func(x *big.Int) *big.Int {
		whole := new(big.Int).Lsh(big.NewInt(1), 128)
		x = new(big.Int).Mod(x, whole)
		if x.Bit(127) == 1 {
			x.Sub(x, whole)
		}
		return x
	}
	var numbers []Int128
	for _, high := range []int64{0, -1, 1, 7, -1 << 62, 1 << 33, math.MaxInt64, math.MinInt64} {
		for _, low := range []uint64{0, 1, 3, math.MaxUint64, 1 << 63, 1<<63 - 1, 1 << 32} {
			numbers = append(numbers, Int128{high, low})
		}
	}
	for _, a := range numbers {
		x := exactly(a)
		want := x
		if !x.IsInt64() {
			want = big.NewInt(end(x.Sign() < 0))
		}
		require.Equal(t, want.Int64(), a.Clamped(), "%v", x)
		for _, b := range numbers {
			y := exactly(b)
			require.Zero(t, cut(new(big.Int).Add(x, y)).Cmp(exactly(a.Plus(b))), "%v + %v", x, y)
			require.Zero(t, cut(new(big.Int).Sub(x, y)).Cmp(exactly(a.Minus(b))), "%v - %v", x, y)
			require.Zero(t, cut(new(big.Int).Mul(x, y)).Cmp(exactly(a.Times(b))), "%v * %v", x, y)
			require.Equal(t, x.Cmp(y) < 0, a.Less(b), "%v < %v", x, y)
			quotient, rest := new(big.Int), new(big.Int)
			if y.Sign() != 0 { // big.Int rounds so that the rest is positive
				quotient.DivMod(x, y, rest)
				if y.Sign() < 0 && rest.Sign() > 0 {
					quotient.Sub(quotient, big.NewInt(1))
					rest.Add(rest, y)
				}
			}
			require.Zero(t, cut(quotient).Cmp(exactly(a.Over(b))), "%v / %v", x, y)
			require.Zero(t, rest.Cmp(exactly(a.Modulo(b))), "%v %% %v", x, y)
		}
	}
	for _, x := range []int64{0, 1, -1, math.MaxInt64, math.MinInt64} {
		require.Equal(t, x, exactly(ToInt128(x)).Int64())
	}
}
