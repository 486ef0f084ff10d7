package fuse

import (
	"math"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/num"
)

// exactRules keep every bit of every result, NaN, infinities and signed zeros
// included; a test proves each against the interpreter.
var exactRules = []rule{
	{"x*1 => x", op(ir.OpMul, v("x"), lit(1)), take("x")},
	{"x/1 => x", op(ir.OpDiv, v("x"), lit(1)), take("x")},
	{"x-0 => x", op(ir.OpSub, v("x"), lit(0)), take("x")},
	{"-(-x) => x", op(ir.OpNeg, op(ir.OpNeg, v("x"))), take("x")},
	{"x*-1 => -x", op(ir.OpMul, v("x"), lit(-1)), func(m match) *ir.Expr { return ir.Apply(ir.OpNeg, m["x"]) }},
	{"x/2^n => x*2^-n", op(ir.OpDiv, v("x"), c("c")), divideByPowerOfTwo},
	{"x**1 => x", op(ir.OpPow, v("x"), lit(1)), take("x")},
	{"x**2 => x*x", op(ir.OpPow, v("x"), lit(2)), func(m match) *ir.Expr { return ir.Apply(ir.OpMul, m["x"], m["x"]) }},
	{"abs(abs(x)) => abs(x)", op(ir.OpAbs, op(ir.OpAbs, v("x"))), func(m match) *ir.Expr { return ir.Apply(ir.OpAbs, m["x"]) }},
	{"abs(-x) => abs(x)", op(ir.OpAbs, op(ir.OpNeg, v("x"))), func(m match) *ir.Expr {
		if !m["x"].Type.Info().Signed {
			return nil // negation wraps, abs does nothing
		}
		return ir.Apply(ir.OpAbs, m["x"])
	}},
	{"max(x, x) => x", op(ir.OpMax, v("x"), v("x")), take("x")},
	{"min(x, x) => x", op(ir.OpMin, v("x"), v("x")), take("x")},
	{"!!x => x", op(ir.OpNot, op(ir.OpNot, v("x"))), take("x")},
	{"x && true => x", op(ir.OpAnd, v("x"), lit(1)), take("x")},
	{"x && false => false", op(ir.OpAnd, v("x"), lit(0)), func(match) *ir.Expr { return ir.IntNum(ir.Bool, 0) }},
	{"x || false => x", op(ir.OpOr, v("x"), lit(0)), take("x")},
	{"x || true => true", op(ir.OpOr, v("x"), lit(1)), func(match) *ir.Expr { return ir.IntNum(ir.Bool, 1) }},
	{"where(true, a, b) => a", op(ir.OpSelect, lit(1), v("a"), v("b")), take("a")},
	{"where(false, a, b) => b", op(ir.OpSelect, lit(0), v("a"), v("b")), take("b")},
	{"where(c, a, a) => a", op(ir.OpSelect, v("c"), v("a"), v("a")), take("a")},
	{"where(!c, a, b) => where(c, b, a)", op(ir.OpSelect, op(ir.OpNot, v("c")), v("a"), v("b")),
		func(m match) *ir.Expr { return ir.Where(m["c"], m["b"], m["a"]) }},
}

// fastRules change roundings, or results for operands at the edge of the range;
// they apply under fast alone, and are tested with a tolerance.
var fastRules = []rule{
	{"x+0 => x", op(ir.OpAdd, v("x"), lit(0)), take("x")},
	{"x/c => x*(1/c)", op(ir.OpDiv, v("x"), c("c")), func(m match) *ir.Expr {
		r := 1 / m["c"].Val
		if m["c"].Val == 0 || math.IsInf(r, 0) || math.Abs(r) < 0x1p-126 || r != r {
			return nil
		}
		return ir.Apply(ir.OpMul, m["x"], ir.Num(m["x"].Type, r))
	}},
	{"x**0.5 => sqrt(x)", op(ir.OpPow, v("x"), lit(0.5)), unary("x", ir.OpSqrt)},
	{"x**-0.5 => rsqrt(x)", op(ir.OpPow, v("x"), lit(-0.5)), unary("x", ir.OpRsqrt)},
	{"x**-1 => 1/x", op(ir.OpPow, v("x"), lit(-1)), unary("x", ir.OpRecip)},
	{"x**3 => x*x*x", op(ir.OpPow, v("x"), lit(3)), func(m match) *ir.Expr {
		return ir.Apply(ir.OpMul, ir.Apply(ir.OpMul, m["x"], m["x"]), m["x"])
	}},
	{"1/sqrt(x) => rsqrt(x)", op(ir.OpDiv, lit(1), op(ir.OpSqrt, v("x"))), unary("x", ir.OpRsqrt)},
	{"a/sqrt(x) => a*rsqrt(x)", op(ir.OpDiv, v("a"), op(ir.OpSqrt, v("x"))), func(m match) *ir.Expr {
		return ir.Apply(ir.OpMul, m["a"], ir.Apply(ir.OpRsqrt, m["x"]))
	}},
	{"recip(sqrt(x)) => rsqrt(x)", op(ir.OpRecip, op(ir.OpSqrt, v("x"))), unary("x", ir.OpRsqrt)},
	{"1/x => recip(x)", op(ir.OpDiv, lit(1), v("x")), unary("x", ir.OpRecip)},
	{"(x*a)*b => x*(a*b)", op(ir.OpMul, op(ir.OpMul, v("x"), c("a")), c("b")), func(m match) *ir.Expr {
		p := m["a"].Val * m["b"].Val
		if !m["x"].Type.IsFloat() || math.IsInf(p, 0) || p == 0 {
			return nil
		}
		return ir.Apply(ir.OpMul, m["x"], ir.Num(m["x"].Type, p))
	}},
	{"log(exp(x)) => x", op(ir.OpLog, op(ir.OpExp, v("x"))), take("x")},
}

func take(name string) func(match) *ir.Expr { return func(m match) *ir.Expr { return m[name] } }

// unary applies a float operation; the rule declines where the power was an integer's.
func unary(name string, o ir.Op) func(match) *ir.Expr {
	return func(m match) *ir.Expr {
		if !m[name].Type.IsFloat() {
			return nil
		}
		return ir.Apply(o, m[name])
	}
}

// divideByPowerOfTwo multiplies by the reciprocal where the type holds both: quotient
// and product are then the same number, rounded once.
func divideByPowerOfTwo(m match) *ir.Expr {
	d, t := m["c"].Val, m["x"].Type
	frac, exp := math.Frexp(d)
	if math.Abs(frac) != 0.5 || exp < -10 || exp > 10 || num.Round(t, d) != d || num.Round(t, 1/d) != 1/d {
		return nil
	}
	return ir.Apply(ir.OpMul, m["x"], ir.Num(m["x"].Type, 1/d))
}
