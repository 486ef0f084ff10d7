package ir

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/fusec/fusec/ir/diag"
)

// TestExprString prints each form with no more parentheses than it needs.
func TestExprString(t *testing.T) {
	g := NewGraph("g")
	x := g.Input("x", F32, []*Expr{Sym("N")}, diag.Span{})
	n := g.Input("n", I32, []*Expr{Sym("N")}, diag.Span{})
	w := g.Input("w", F32, []*Expr{IntConst(3)}, diag.Span{})
	i := g.NewRange("i", Sym("N"))
	at := []*Expr{i.At()}
	a, c := Load(x, at, nil), Load(n, at, nil)
	two := Num(F32, 2)
	apply := Apply
	for _, c := range []struct {
		want string
		e    *Expr
	}{
		{"x[i]", a},
		{"x[i] else -inf", Load(x, at, Num(F32, math.Inf(-1)))},
		{"-(x[i] else 1.0)", apply(OpNeg, Load(x, at, Num(F32, 1)))},
		{"f32(0.0)", Load(x, []*Expr{IntConst(-2)}, Num(F32, 0))},
		{"f32(1.5) + x[0]", apply(OpAdd, Load(w, []*Expr{apply(OpAdd, IntConst(1), IntConst(2))}, Num(F32, 1.5)), Load(x, []*Expr{IntConst(0)}, Num(F32, 0)))},
		{"w[2]", Load(w, []*Expr{IntConst(2)}, Num(F32, 0))},
		{"x[n[i]]", Load(x, []*Expr{Cast(c, Index)}, Num(F32, 0))},
		{"x[i + index(n[i])]", Load(x, []*Expr{apply(OpAdd, i.At(), Cast(c, Index))}, Num(F32, 0))},
		{"x[i] + 2.0 + x[i]", apply(OpAdd, apply(OpAdd, a, two), a)},
		{"x[i] - (x[i] - 2.0)", apply(OpSub, a, apply(OpSub, a, two))},
		{"(x[i] + 2.0) * x[i]", apply(OpMul, apply(OpAdd, a, two), a)},
		{"x[i] / (x[i] * 2.0)", apply(OpDiv, a, apply(OpMul, a, two))},
		{"-x[i] ** 2.0", apply(OpNeg, apply(OpPow, a, two))},
		{"(-x[i]) ** x[i] ** x[i]", apply(OpPow, apply(OpNeg, a), apply(OpPow, a, a))},
		{"(x[i] ** x[i]) ** -x[i]", apply(OpPow, apply(OpPow, a, a), apply(OpNeg, a))},
		{"(-2.0) ** x[i]", apply(OpPow, Num(F32, -2), a)},
		{"x[i] * -2.0", apply(OpMul, a, Num(F32, -2))},
		{"!(x[i] < 2.0) && x[i] != nan", apply(OpAnd, apply(OpNot, apply(OpLt, a, two)), apply(OpNe, a, Num(F32, math.NaN())))},
		{"(x[i] < 2.0) == (x[i] > 2.0)", apply(OpEq, apply(OpLt, a, two), apply(OpGt, a, two))},
		{"f32(2.0) + f32(2.0)", apply(OpAdd, two, two)},
		{"exp(f32(2.0))", apply(OpExp, two)},
		{"max(x[i], 2.0)", apply(OpMax, a, two)},
		{"where(i < 3, x[i], 0.0)", Where(apply(OpLt, i.At(), IntConst(3)), a, Num(F32, 0))},
		{"where(bool(true), f32(1.0), f32(0.0))", Where(IntNum(Bool, 1), Num(F32, 1), Num(F32, 0))},
		{"f32(i) * x[i]", apply(OpMul, Cast(i.At(), F32), a)},
		{"n[i] & 255 | n[i] << 2", apply(OpBitOr, apply(OpBitAnd, c, IntNum(I32, 255)), apply(OpShl, c, IntNum(I32, 2)))},
		{"(i + 1) / 2 % N", apply(OpMod, apply(OpFloorDiv, apply(OpAdd, i.At(), IntConst(1)), IntConst(2)), Sym("N"))},
		{"sum[i: N where i < 3] x[i]", Reduce(&Reduction{Op: Sum, Ranges: []*Range{i}, Where: apply(OpLt, i.At(), IntConst(3))}, a)},
		{"max(x[i])", Reduce(&Reduction{Op: Max}, a)},
		{"(max[i: N] f32(1.0)) + x[i]", apply(OpAdd, Reduce(&Reduction{Op: Max, Ranges: []*Range{i}}, Num(F32, 1)), a)},
		{"random_at(i64(7), i)", Random(IntNum(I64, 7), i.At())},
		{"(-9223372036854775807 - 1)", IntNum(I64, math.MinInt64)},
		{"1e-05", Num(F64, 1e-5)},
	} {
		assert.Equal(t, c.want, c.e.String())
	}
}

// TestPrintRenames keeps names apart that a pass may have made equal.
func TestPrintRenames(t *testing.T) {
	g := NewGraph("g")
	g.Symbols = []Symbol{{Name: "N", Default: 8}}
	g.OneKernel, g.TF32, g.Numerics = true, true, Strict
	x := g.Input("i", F32, []*Expr{Sym("N"), Sym("N")}, diag.Span{})
	a, b := g.NewRange("i", Sym("N")), g.NewRange("i", Sym("N"))
	y := g.Define("y", []*Range{a, b}, Load(x, []*Expr{a.At(), b.At()}, nil), Origin{})
	z := g.Define("z", nil, Num(BF16, 1), Origin{})
	g.Output("z", y, diag.Span{})
	g.Output("w", z, diag.Span{})
	g.Output("v", z, diag.Span{})
	g.Constraints = []Constraint{{Cond: Apply(OpGe, Sym("N"), IntConst(2)), Why: `"two"`}}
	assert.Equal(t, `@onekernel @strict @tf32 @bench(N=8)
graph g(i: f32[N, N]) -> (z: f32[N, N], w: bf16[], v: bf16[]) {
    require(N >= 2, "\"two\"")
    z[i_2, i_3] = i[i_2, i_3]
    w[] = bf16(1.0)
    v = w
}
`, Print(g))
}
