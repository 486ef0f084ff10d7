package interp

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

// TestIndicesAreExact: indices made of data at the ends of 64 bits are what exact integers give, or the end on that side, as
// written and simplified.
func TestIndicesAreExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 128))
	x := &ir.Value{Name: "x", Type: ir.I64, Axes: []*ir.Range{{Name: "k", Extent: ir.IntConst(4)}}}
	ends := []int64{math.MaxInt64, math.MinInt64, math.MaxInt64 - 1, math.MinInt64 + 1, 1 << 62, -1 << 62, 0, 1, -1, 3}
	for range 20_000 {
		data := make([]int64, 4)
		for k := range data {
			data[k] = ends[rng.IntN(len(ends))]
		}
		e, want := drawIndex(rng, x, data, 1+rng.IntN(3))
		if want.BitLen() > 126 {
			continue
		}
		clamped := want.Int64()
		if !want.IsInt64() {
			clamped = math.MaxInt64
			if want.Sign() < 0 {
				clamped = math.MinInt64
			}
		}
		for _, form := range []*ir.Expr{e, ir.Simplify(e, ir.Facts{})} {
			c := newCompiler(Strict, nil)
			c.leaf = func(e *ir.Expr) code {
				v := data[e.Args[0].Int]
				return code{int: func(*frame) int64 { return v }}
			}
			got := c.root(form).int
			require.Equal(t, clamped, got(c.frame()), "%s with %v, as %s", e, data, form)
		}
	}
}

// drawIndex draws sums, differences and products of elements and small numbers, and gives the exact value.
func drawIndex(rng *rand.Rand, x *ir.Value, data []int64, depth int) (*ir.Expr, *big.Int) {
	switch {
	case depth == 0 && rng.IntN(3) == 0:
		n := int64(rng.IntN(9) - 4)
		return ir.IntConst(n), big.NewInt(n)
	case depth == 0:
		k := rng.IntN(len(data))
		return ir.Cast(ir.Load(x, []*ir.Expr{ir.IntConst(int64(k))}, nil), ir.Index), big.NewInt(data[k])
	}
	a, exactA := drawIndex(rng, x, data, depth-1)
	b, exactB := drawIndex(rng, x, data, depth-1)
	switch rng.IntN(10) {
	case 7:
		n := int64(1 + rng.IntN(5))
		return ir.Apply(ir.OpFloorDiv, a, ir.IntConst(n)), new(big.Int).Div(exactA, big.NewInt(n))
	case 8:
		n := int64(1 + rng.IntN(5))
		return ir.Apply(ir.OpMod, a, ir.IntConst(n)), new(big.Int).Mod(exactA, big.NewInt(n))
	case 9:
		if exactA.Cmp(exactB) < 0 {
			return ir.Apply(ir.OpMin, a, b), exactA
		}
		return ir.Apply(ir.OpMin, a, b), exactB
	case 0:
		return ir.Apply(ir.OpNeg, a), new(big.Int).Neg(exactA)
	case 1, 2:
		return ir.Apply(ir.OpSub, a, b), new(big.Int).Sub(exactA, exactB)
	case 3:
		n := int64(rng.IntN(9) - 4)
		return ir.Apply(ir.OpMul, a, ir.IntConst(n)), new(big.Int).Mul(exactA, big.NewInt(n))
	case 4:
		if depth == 1 {
			return ir.Apply(ir.OpMul, a, b), new(big.Int).Mul(exactA, exactB)
		}
	}
	return ir.Apply(ir.OpAdd, a, b), new(big.Int).Add(exactA, exactB)
}
