package passes

import (
	"math"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/num"
)

// exactRules keep every bit of every result, also of NaN, infinities and signed zeros. A test proves each
// against the interpreter.
var exactRules = []rule{
	{"x*1 => x", op(ir.OpMul, v("x"), lit(1)), take("x")},
	{"x/1 => x", op(ir.OpDiv, v("x"), lit(1)), take("x")},
	{"x-0 => x", op(ir.OpSub, v("x"), lit(0)), take("x")},
	{"x+-0 => x", op(ir.OpAdd, v("x"), lit(math.Copysign(0, -1))), take("x")}, // integers have one zero
	{"x+0 => x", op(ir.OpAdd, v("x"), lit(0)), func(m match) *ir.Expr {
		if m["x"].Type.IsFloat() && !zeroOrMore(m["x"], mostZeroOrMore) {
			return nil // -0+0 is 0
		}
		return m["x"]
	}},
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

// fastRules change roundings and nothing else: NaN, infinities and the signs of zeros stay, and finite
// numbers stay finite, except where a result is within a rounding of the end of the range. They apply
// only under fast numerics, and are tested with a tolerance.
var fastRules = []rule{
	{"x/c => x*(1/c)", op(ir.OpDiv, v("x"), c("c")), func(m match) *ir.Expr {
		r := 1 / m["c"].Val
		if !inRange(r, m["x"].Type) {
			return nil
		}
		return ir.Apply(ir.OpMul, m["x"], ir.Num(m["x"].Type, r))
	}},
	{"x**0.5 => sqrt(x)", op(ir.OpPow, v("x"), lit(0.5)), rootOr(ir.OpSqrt, math.Inf(1))},
	{"x**-0.5 => rsqrt(x)", op(ir.OpPow, v("x"), lit(-0.5)), rootOr(ir.OpRsqrt, 0)},
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
		a, b, p := math.Abs(m["a"].Val), math.Abs(m["b"].Val), m["a"].Val*m["b"].Val
		if !inRange(p, m["x"].Type) {
			return nil
		}
		if a > 1 && b < 1 && !(isWhole(m["x"]) && a < 0x1p60) { // x*a may be infinite where x*(a*b) is not
			return nil
		}
		return ir.Apply(ir.OpMul, m["x"], ir.Num(m["x"].Type, p))
	}},
}

func take(name string) func(match) *ir.Expr { return func(m match) *ir.Expr { return m[name] } }

// unary applies a float operation; the rule does not apply to a power of an integer.
func unary(name string, o ir.Op) func(match) *ir.Expr {
	return func(m match) *ir.Expr {
		if !m[name].Type.IsFloat() {
			return nil
		}
		return ir.Apply(o, m[name])
	}
}

// rootOr replaces a power of x by its square root, or by one over that. The power differs from the root
// at -infinity, where it is ofMinusInfinity, and at -0, where it is the same as at 0. If x may be
// -infinity or -0, the replacement handles these cases.
func rootOr(o ir.Op, ofMinusInfinity float64) func(match) *ir.Expr {
	return func(m match) *ir.Expr {
		x := m["x"]
		switch {
		case !x.Type.IsFloat():
			return nil
		case zeroOrMore(x, mostZeroOrMore):
			return ir.Apply(o, x)
		}
		least := ir.Apply(ir.OpEq, x, ir.Num(x.Type, math.Inf(-1)))
		return ir.Where(least, ir.Num(x.Type, ofMinusInfinity), ir.Apply(o, ir.Apply(ir.OpAdd, x, ir.Num(x.Type, 0))))
	}
}

// inRange reports whether kernels compute with a constant in full precision where the program has type t.
func inRange(c float64, t ir.DType) bool {
	return t.IsFloat() && math.Abs(c) >= 0x1p-126 && math.Abs(c) <= t.Info().Compute.Info().Max
}

// isWhole reports whether an expression is an integer below 2^64 in magnitude.
func isWhole(e *ir.Expr) bool {
	return e.Op == ir.OpCast && !e.Args[0].Type.IsFloat()
}

// mostZeroOrMore is the depth to which zeroOrMore searches.
const mostZeroOrMore = 8

// zeroOrMore reports whether an expression is proved to be NaN, or at least 0 and not -0.
func zeroOrMore(e *ir.Expr, depth int) bool {
	if depth == 0 {
		return false
	}
	of := func(e *ir.Expr) bool { return zeroOrMore(e, depth-1) }
	switch e.Op {
	case ir.OpConst:
		return e.Type.IsFloat() && !math.Signbit(e.Val)
	case ir.OpAbs, ir.OpExp, ir.OpExp2:
		return true
	case ir.OpCast:
		return e.Args[0].Type.IsFloat() && of(e.Args[0]) || !e.Args[0].Type.IsFloat() && !e.Args[0].Type.Info().Signed
	case ir.OpMul:
		return ir.Equal(e.Args[0], e.Args[1]) || of(e.Args[0]) && of(e.Args[1])
	case ir.OpAdd, ir.OpDiv, ir.OpMin, ir.OpMax:
		return of(e.Args[0]) && of(e.Args[1])
	case ir.OpSqrt, ir.OpRsqrt, ir.OpRecip:
		return of(e.Args[0])
	case ir.OpSelect:
		return of(e.Args[1]) && of(e.Args[2])
	case ir.OpLoad:
		v := e.From
		if e.Fill != nil && !of(e.Fill) || v.Body == nil || v.Reduce != nil && v.Reduce.Op != ir.Sum {
			return false
		}
		return of(v.Body)
	}
	return false
}

// divideByPowerOfTwo multiplies by the reciprocal where the type holds both: quotient and product are then
// the same number, rounded once.
func divideByPowerOfTwo(m match) *ir.Expr {
	d, t := m["c"].Val, m["x"].Type
	frac, exp := math.Frexp(d)
	if math.Abs(frac) != 0.5 || exp < -10 || exp > 10 || num.Round(t, d) != d || num.Round(t, 1/d) != 1/d {
		return nil
	}
	return ir.Apply(ir.OpMul, m["x"], ir.Num(m["x"].Type, 1/d))
}
