package packed

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/num"
)

// wholeValue computes an expression of integers, or of floats that hold whole numbers.
func wholeValue(e *ir.Expr, at map[*ir.Local]int64) float64 {
	switch e.Op {
	case ir.OpConst:
		if e.Type.IsFloat() {
			return e.Val
		}
		return float64(e.Int)
	case ir.OpLocal:
		return float64(at[e.Local])
	}
	var args [3]float64
	for i, a := range e.Args {
		args[i] = wholeValue(a, at)
	}
	switch {
	case e.Op == ir.OpCast && !e.Type.IsFloat() && e.Args[0].Type.IsFloat():
		return float64(num.FloatToInt(e.Type, args[0]))
	case e.Op == ir.OpCast && e.Type.IsFloat():
		return args[0]
	case e.Op == ir.OpCast:
		return float64(num.RoundInt(e.Type, int64(args[0])))
	case e.Type.IsFloat():
		return e.Op.Info().Float(args[0], args[1], args[2])
	}
	return float64(num.RoundInt(e.Type, e.Op.Info().Int(int64(args[0]), int64(args[1]), int64(args[2]))))
}

// field is the value of the bits of v that a bitField names.
func field(f bitField, v int64) int64 {
	part := v >> f.first & (1<<f.width - 1)
	if f.signed && part >= 1<<(f.width-1) {
		part -= 1 << f.width
	}
	return part
}

// TestFieldsAreTheirBits draws shifts, masks, divisions and conversions of an element: what is said to be a field
// of it has the value of those bits, at the ends and at random elements.
func TestFieldsAreTheirBits(t *testing.T) {
	whole := rapid.SampledFrom([]ir.DType{ir.I8, ir.U8, ir.I16, ir.I32, ir.U32})
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		from := &ir.Local{Name: "q", Type: whole.Draw(t, "type")}
		e := ir.LocalRef(from)
		for range rapid.IntRange(1, 4).Draw(t, "steps") {
			c := rapid.Int64Range(0, 9).Draw(t, "c")
			n := ir.IntNum(e.Type, c)
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				e = ir.Cast(e, whole.Draw(t, "to"))
			case 1:
				e = ir.Apply(ir.OpShr, e, n)
			case 2:
				e = ir.Apply(ir.OpBitAnd, ir.IntNum(e.Type, 1<<min(c, 6)-1), e)
			case 3:
				e = ir.Apply(ir.OpFloorDiv, e, ir.IntNum(e.Type, 1<<min(c, 6)))
			case 4:
				e = ir.Apply(ir.OpMod, e, ir.IntNum(e.Type, max(c, 1)))
			default:
				up := ir.Apply(ir.OpShl, e, n)
				e = ir.Apply(ir.OpShr, up, ir.IntNum(e.Type, rapid.Int64Range(0, 9).Draw(t, "down")))
			}
		}
		f, ok := bitFieldOf(e, from)
		if !ok {
			return
		}
		found++
		for i := range int64(80) {
			raw := i - 40
			if i >= 40 {
				raw = rapid.Int64().Draw(t, "element")
			}
			v := num.RoundInt(from.Type, raw)
			require.Equal(t, field(f, v), int64(wholeValue(e, map[*ir.Local]int64{from: v})), "%v of %d as %+v", e, v, f)
		}
	})
	assert.Positive(t, found)
}

// TestFieldsAreFound: the forms in which programs take fields are known.
func TestFieldsAreFound(t *testing.T) {
	from := &ir.Local{Name: "q", Type: ir.U8}
	q := ir.Cast(ir.LocalRef(from), ir.I32)
	c := func(n int64) *ir.Expr { return ir.IntNum(ir.I32, n) }
	shifted := func(up, down int64) *ir.Expr { return ir.Apply(ir.OpShr, ir.Apply(ir.OpShl, q, c(up)), c(down)) }
	for _, x := range []struct {
		e    *ir.Expr
		want bitField
	}{
		{ir.Apply(ir.OpShr, q, c(0)), bitField{0, 8, false}},
		{ir.Apply(ir.OpShr, q, c(7)), bitField{7, 1, false}},
		{ir.Apply(ir.OpBitAnd, q, c(15)), bitField{0, 4, false}},
		{ir.Apply(ir.OpMod, q, c(4)), bitField{0, 2, false}},
		{ir.Apply(ir.OpFloorDiv, q, c(16)), bitField{4, 4, false}},
		{shifted(24, 24), bitField{0, 8, true}},
		{ir.Apply(ir.OpBitAnd, shifted(24, 24), c(255)), bitField{0, 8, false}},
		{shifted(24, 28), bitField{4, 4, true}},
		{shifted(28, 28), bitField{0, 4, true}},
	} {
		f, ok := bitFieldOf(x.e, from)
		assert.True(t, ok, "%v", x.e)
		assert.Equal(t, x.want, f, "%v", x.e)
	}
	word := &ir.Local{Name: "q", Type: ir.I32}
	f, ok := bitFieldOf(ir.Apply(ir.OpShr, ir.Apply(ir.OpShl, ir.LocalRef(word), c(0)), c(4)), word)
	assert.True(t, ok)
	assert.Equal(t, bitField{4, 28, true}, f)
	for _, e := range []*ir.Expr{ir.Apply(ir.OpShr, q, c(8)), ir.Apply(ir.OpMod, q, c(6)), shifted(-1, 4), shifted(4, 2), shifted(0, 32)} {
		_, ok := bitFieldOf(e, from)
		assert.False(t, ok, "%v", e)
	}
	for _, e := range []*ir.Expr{ir.IntConst(4), c(4), ir.IntNum(ir.U8, 4), {Op: ir.OpCast, Type: ir.I64, Args: []*ir.Expr{ir.IntConst(4)}}} {
		n, ok := wholeConst(e)
		assert.True(t, ok && n == 4, "%v", e)
	}
	for _, e := range []*ir.Expr{ir.Num(ir.F32, 4), {Op: ir.OpCast, Type: ir.F32, Args: []*ir.Expr{c(4)}}, q, ir.Sym("N")} {
		_, ok := wholeConst(e)
		assert.False(t, ok, "%v", e)
	}
}

// TestWholeRanges draws sums, differences, masks and conversions of bytes: every value is within the range that
// they are said to have, and the ends of sums and differences are reached.
func TestWholeRanges(t *testing.T) {
	types := rapid.SampledFrom([]ir.DType{ir.I16, ir.I32, ir.F32})
	found, sharp := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		kind := types.Draw(t, "type")
		var locals []*ir.Local
		exact := true
		leaf := func() *ir.Expr {
			if n := rapid.Int64Range(-30, 30).Draw(t, "number"); len(locals) == 2 || n%3 == 0 {
				if kind.IsFloat() {
					return ir.Num(kind, float64(n))
				}
				return ir.IntNum(kind, n)
			}
			l := &ir.Local{Name: "q", Type: rapid.SampledFrom([]ir.DType{ir.I8, ir.U8}).Draw(t, "byte")}
			locals = append(locals, l)
			e := ir.LocalRef(l)
			switch c := rapid.Int64Range(-1, 40).Draw(t, "mask"); {
			case c%3 == 1:
				exact = exact && c&(c+1) == 0
				e = ir.Apply(ir.OpBitAnd, e, ir.IntNum(l.Type, c))
			case c%3 == 2:
				exact = exact && l.Type == ir.U8
				e = ir.Apply(ir.OpMod, e, ir.IntNum(l.Type, c))
			}
			return ir.Cast(e, kind)
		}
		e := leaf()
		for range rapid.IntRange(0, 3).Draw(t, "steps") {
			switch rapid.IntRange(0, 2).Draw(t, "step") {
			case 0:
				e = ir.Apply(ir.OpNeg, e)
			case 1:
				e = ir.Apply(ir.OpAdd, e, leaf())
			default:
				e = ir.Apply(ir.OpSub, leaf(), e)
			}
		}
		in, ok := wholeRangeOf(e)
		if !ok {
			return
		}
		found++
		lo, hi := math.Inf(1), math.Inf(-1)
		at := map[*ir.Local]int64{}
		var each func(rest []*ir.Local)
		each = func(rest []*ir.Local) {
			if len(rest) == 0 {
				v := wholeValue(e, at)
				lo, hi = min(lo, v), max(hi, v)
				return
			}
			for raw := range int64(256) {
				at[rest[0]] = num.RoundInt(rest[0].Type, raw)
				each(rest[1:])
			}
		}
		each(locals)
		require.LessOrEqual(t, float64(in.lo), lo, "%v", e)
		require.GreaterOrEqual(t, float64(in.hi), hi, "%v", e)
		if exact {
			sharp++
			require.Equal(t, [2]float64{float64(in.lo), float64(in.hi)}, [2]float64{lo, hi}, "%v", e)
		}
	})
	assert.Positive(t, found)
	assert.Positive(t, sharp)
	byte := ir.LocalRef(&ir.Local{Name: "q", Type: ir.U8})
	for _, op := range []ir.Op{ir.OpMod, ir.OpBitAnd} {
		_, ok := wholeRangeOf(ir.Apply(op, byte, ir.IntNum(ir.U8, 0)))
		assert.False(t, ok, "%s by 0", op)
	}
}
