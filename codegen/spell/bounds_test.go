package spell

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/fusec/fusec/ir"
)

// TestLiteralsHaveTheirWidth: a number that 32 bits hold is written as one of 32 bits, and any other with its own type: what C makes of a
// number without a suffix follows from how large it is.
func TestLiteralsHaveTheirWidth(t *testing.T) {
	for _, v := range []int64{0, 1, -1, math.MaxInt32 - 1, math.MaxInt32, math.MinInt32, math.MinInt32 + 1} {
		assert.NotContains(t, Literal(ir.IntNum(ir.Index, v)), "LL", v)
		assert.NotContains(t, Literal(ir.IntNum(ir.I32, v)), "LL", v)
		assert.Contains(t, Literal(ir.IntNum(ir.I64, v)), "LL", v)
	}
	for _, v := range []int64{math.MaxInt32 + 1, math.MinInt32 - 1, math.MaxInt64, math.MinInt64 + 1} {
		assert.Contains(t, Literal(ir.IntNum(ir.Index, v)), "(INDEX)", v)
		assert.Contains(t, Literal(ir.IntNum(ir.Index, v)), "LL", v)
	}
	assert.Contains(t, Literal(ir.IntNum(ir.I32, math.MinInt32)), "-2147483647 - 1", "its number has no literal")
	assert.Contains(t, Literal(ir.IntNum(ir.I64, math.MinInt64)), "9223372036854775807LL - 1")
}

// TestSmallNaturals: what is from 0 to 2^23-1 whatever its parts are.
func TestSmallNaturals(t *testing.T) {
	x := func(of ir.DType) *ir.Expr { return ir.LocalRef(&ir.Local{Name: "x", Type: of}) }
	for bits, small := range map[int64]bool{-1: false, 0: true, 1: true, 1<<23 - 1: true, 1 << 23: false, 1 << 30: false} {
		for _, of := range []ir.DType{ir.I32, ir.I64, ir.U32} {
			masked := ir.Apply(ir.OpBitAnd, x(of), ir.IntNum(of, bits))
			if of == ir.U32 && bits < 0 {
				continue
			}
			assert.Equal(t, small, smallNatural(masked), "%s & %d", of, bits)
			for _, to := range []ir.DType{ir.I8, ir.I16, ir.I32, ir.I64} {
				if to != of {
					assert.Equal(t, small && to.Size() >= 4, smallNatural(ir.Cast(masked, to)), "%s(%s & %d)", to, of, bits)
				}
			}
		}
	}
	for _, of := range []ir.DType{ir.I8, ir.U8, ir.I16, ir.I32} {
		assert.Equal(t, of == ir.U8, smallNatural(x(of)), of)
		assert.Equal(t, of == ir.U8, smallNatural(ir.Cast(x(of), ir.I64)), of)
	}
}

// TestIntegersBecomeFloats: those with more bits than an f32 has by the function that rounds once.
func TestIntegersBecomeFloats(t *testing.T) {
	for _, of := range ir.DTypes() {
		if of == ir.Bool || of.IsFloat() {
			continue
		}
		assert.Equal(t, of.Size() >= 4, strings.HasPrefix(floatOf("x", of), "odd_f32("), of)
	}
}

// TestGrownFrom: a product grows with its factor where that is positive.
func TestGrownFrom(t *testing.T) {
	e := ir.LocalRef(&ir.Local{Name: "x", Type: ir.Index})
	i := (&ir.Range{Name: "i", Extent: ir.IntConst(7)}).At()
	for factor, grows := range map[int64]bool{-3: false, -1: false, 0: false, 1: true, 2: true, 5: true} {
		by := ir.IntConst(factor)
		for _, x := range []*ir.Expr{ir.Apply(ir.OpMul, e, by), ir.Apply(ir.OpMul, by, e)} {
			if x.Op != ir.OpMul {
				continue // folded
			}
			assert.Equal(t, grows, grownFrom(x, e), "%d", factor)
			assert.Equal(t, grows, grownFrom(ir.Apply(ir.OpAdd, x, i), e), "%d", factor)
			assert.Equal(t, grows, grownFrom(ir.Apply(ir.OpAdd, i, x), e), "%d", factor)
		}
	}
	assert.True(t, grownFrom(e, e))
	assert.False(t, grownFrom(i, e))
}

// TestRemaindersAreBounded: a remainder is as bounded as its divisor, whatever is divided. Where that is any element of a tensor, it may be
// as large as any index.
func TestRemaindersAreBounded(t *testing.T) {
	s := &Speller{}
	element := func(name string, of ir.DType) *ir.Expr {
		return ir.Cast(ir.LocalRef(&ir.Local{Name: name, Type: of}), ir.Index)
	}
	number, small, natural := element("x", ir.I64), element("b", ir.U8), element("n", ir.U32)
	for _, c := range []struct {
		name         string
		divisor      *ir.Expr
		below, above bool
	}{
		{"a number", ir.IntConst(7), true, true},
		{"a size", ir.Sym("N"), true, true},
		{"a range", (&ir.Range{Name: "i", Extent: ir.Sym("N")}).At(), true, true},
		{"a byte", small, true, true},
		{"a natural number", natural, false, false},
		{"any number", number, false, false},
		{"any number at most a size", ir.Apply(ir.OpMin, number, ir.Sym("N")), false, false},
		{"any number between sizes", ir.Apply(ir.OpMax, ir.Apply(ir.OpMin, number, ir.Sym("N")), ir.IntConst(1)), true, true},
	} {
		for _, of := range []*ir.Expr{number, natural, element("y", ir.I32)} {
			e := ir.Apply(ir.OpMod, of, c.divisor)
			assert.Equal(t, c.below, s.bounded(e, false), "%s below", c.name)
			assert.Equal(t, c.above, s.bounded(e, true), "%s above", c.name)
		}
	}
}
