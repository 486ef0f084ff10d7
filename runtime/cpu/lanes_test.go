package cpu

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fusec/fusec/ir"
)

// alongLanes is a generator whose lanes run along i, beside another range j, and the size S, which is 5.
func alongLanes() (g *gen, i, j *ir.Expr) {
	graph := ir.NewGraph("lanes")
	lane, other := graph.NewRange("i", ir.IntConst(1000)), graph.NewRange("j", ir.IntConst(7))
	g = &gen{code: &code{}, symbols: map[string]int64{"S": 5}, extent: map[*ir.Range]int64{lane: 1000, other: 7},
		isCol: map[*ir.Range]bool{lane: true}, vec: lane, deps: map[*ir.Expr]dep{}}
	return g, lane.At(), other.At()
}

// linear draws an index that grows by the same from each lane to the next, and by how much.
func linear(t *rapid.T, i, j *ir.Expr, depth int) (e *ir.Expr, step int64) {
	if depth == 0 {
		switch rapid.IntRange(0, 4).Draw(t, "leaf") {
		case 0:
			return j, 0
		case 1:
			return ir.Sym("S"), 0
		case 2:
			return ir.IntConst(rapid.Int64Range(-9, 9).Draw(t, "constant")), 0
		}
		return i, 1
	}
	a, stepA := linear(t, i, j, depth-1)
	switch op := rapid.SampledFrom([]string{"+", "-", "*", "* S", "neg", "cast", "local"}).Draw(t, "op"); op {
	case "+", "-":
		b, stepB := linear(t, i, j, rapid.IntRange(0, depth-1).Draw(t, "depth"))
		if op == "-" {
			return ir.Apply(ir.OpSub, a, b), stepA - stepB
		}
		return ir.Apply(ir.OpAdd, a, b), stepA + stepB
	case "*":
		by := rapid.Int64Range(-4, 4).Draw(t, "factor")
		return ir.Apply(ir.OpMul, a, ir.IntConst(by)), by * stepA
	case "* S":
		return ir.Apply(ir.OpMul, ir.Sym("S"), a), 5 * stepA
	case "neg":
		return ir.Apply(ir.OpNeg, a), -stepA
	case "cast":
		return ir.Cast(ir.Cast(a, ir.I64), ir.Index), stepA
	}
	return ir.LocalRef(&ir.Local{Name: "l", Type: ir.Index, Def: a}), stepA
}

// TestStepsOfLinearIndices: they are known however the index is written, so that elements side by side in memory are read as such.
func TestStepsOfLinearIndices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, i, j := alongLanes()
		e, want := linear(t, i, j, rapid.IntRange(0, 5).Draw(t, "depth"))
		got, ok := g.stride(e)
		require.True(t, ok, "%v", e)
		require.Equal(t, want, got, "%v", e)
	})
}

// TestStepsThatAreNotKnown: other indices have none, nor has what wraps to fewer bits. Quotients and remainders have one in tiles
// that do not cross a multiple of the divisor.
func TestStepsThatAreNotKnown(t *testing.T) {
	g, i, j := alongLanes()
	number := ir.IntConst
	apply := func(op ir.Op, a, b *ir.Expr) *ir.Expr { return ir.Apply(op, a, b) }
	for _, e := range []*ir.Expr{apply(ir.OpMul, i, i), apply(ir.OpMul, i, j), apply(ir.OpFloorDiv, i, number(64)), apply(ir.OpMod, i, number(64)),
		apply(ir.OpMax, i, j), ir.Cast(ir.Cast(i, ir.I32), ir.Index), ir.Cast(ir.Cast(i, ir.F32), ir.Index)} {
		_, ok := g.stride(e)
		assert.False(t, ok, "%v", e)
	}
	for _, of := range []struct {
		dividend *ir.Expr
		divisor  int64
		ok       bool
	}{
		{i, 32, true}, {i, 64, true}, {i, 48, false}, {i, 16, false}, {i, -32, false}, {apply(ir.OpAdd, i, number(1)), 32, false},
		{apply(ir.OpAdd, apply(ir.OpMul, j, number(64)), i), 64, true}, {apply(ir.OpAdd, apply(ir.OpMul, j, number(32)), i), 64, false},
		{apply(ir.OpMul, i, number(2)), 32, false},
	} {
		g.block = 32
		for op, step := range map[ir.Op]int64{ir.OpFloorDiv: 0, ir.OpMod: 1} {
			e := apply(op, of.dividend, number(of.divisor))
			got, ok := g.stride(e)
			assert.Equal(t, of.ok, ok, "%v", e)
			if ok {
				assert.Equal(t, step, got, "%v", e)
			}
		}
	}
}

// TestTilesEndAtMultiplesOfDivisors: of all constants that the lanes are divided by, unless tiles would be too short. Other
// divisions do not matter, such as those of what the lanes do not walk one by one.
func TestTilesEndAtMultiplesOfDivisors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, i, j := alongLanes()
		s, want := &survey{}, int64(0)
		for range rapid.IntRange(0, 4).Draw(t, "divisions") {
			by := rapid.SampledFrom([]int64{32, 64, 96, 160, 480, 1024, 7, 0, -64}).Draw(t, "by")
			dividend, counts := i, by > 0
			switch rapid.IntRange(0, 3).Draw(t, "dividend") {
			case 1:
				dividend = ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, j, ir.IntConst(3*by)), i)
			case 2:
				dividend, counts = ir.Apply(ir.OpMul, i, ir.IntConst(2)), false
			case 3:
				dividend, counts = j, false
			}
			op := rapid.SampledFrom([]ir.Op{ir.OpFloorDiv, ir.OpMod}).Draw(t, "op")
			s.divisions = append(s.divisions, ir.Apply(op, dividend, ir.IntConst(by)))
			if counts {
				want = gcd(want, by)
			}
		}
		if want < 32 { // tiles would be too short
			want = 0
		}
		require.Equal(t, want, g.blockOf(s))
	})
}
