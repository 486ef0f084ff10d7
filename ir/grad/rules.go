package grad

import (
	"math"

	"github.com/fusec/fusec/ir"
)

// A rule is the derivative of one scalar operation.
type rule struct {
	// by returns the adjoints of the arguments x of y = op(x...), given the adjoint d of y; nil
	// for an argument without one. All have the type in which the operation is computed.
	by func(d, y *ir.Expr, x []*ir.Expr) []part
	// singular rules can be infinite or NaN where the operation itself is finite or not needed.
	// So adjoints that are not needed have to be guarded by a condition, and not multiplied by
	// 0.
	singular bool
}

// A part is the adjoint of one argument: expr where cond holds, else 0; a nil cond always holds.
type part struct{ cond, expr *ir.Expr }

// constant is the rule of the operations whose derivative is 0 wherever it exists.
var constant = &rule{}

// rules is the column of derivatives of the table of operations. There is no row for operations
// that take no floats, nor for select and cast, which are handled separately.
var rules = map[ir.Op]*rule{
	ir.OpAdd:   {by: func(d, _ *ir.Expr, _ []*ir.Expr) []part { return parts(d, d) }},
	ir.OpSub:   {by: func(d, _ *ir.Expr, _ []*ir.Expr) []part { return parts(d, neg(d)) }},
	ir.OpMul:   {by: func(d, _ *ir.Expr, x []*ir.Expr) []part { return parts(mul(d, x[1]), mul(d, x[0])) }},
	ir.OpDiv:   {by: byDiv, singular: true},
	ir.OpMod:   {by: byMod, singular: true},
	ir.OpPow:   {by: byPow, singular: true},
	ir.OpMin:   {by: func(d, _ *ir.Expr, x []*ir.Expr) []part { return byExtremum(ir.OpLe, d, x) }},
	ir.OpMax:   {by: func(d, _ *ir.Expr, x []*ir.Expr) []part { return byExtremum(ir.OpGe, d, x) }},
	ir.OpNeg:   {by: func(d, _ *ir.Expr, _ []*ir.Expr) []part { return parts(neg(d)) }},
	ir.OpAbs:   one(func(d, _, x *ir.Expr) *ir.Expr { return mul(d, ir.Apply(ir.OpSign, x)) }),
	ir.OpSign:  constant,
	ir.OpFloor: constant,
	ir.OpCeil:  constant,
	ir.OpRound: constant,
	ir.OpTrunc: constant,

	ir.OpExp:   oneSingular(func(d, y, _ *ir.Expr) *ir.Expr { return mul(d, y) }),
	ir.OpExp2:  oneSingular(func(d, y, _ *ir.Expr) *ir.Expr { return mul(mul(d, y), num(y, math.Ln2)) }),
	ir.OpExpm1: oneSingular(func(d, _, x *ir.Expr) *ir.Expr { return mul(d, ir.Apply(ir.OpExp, x)) }),
	ir.OpLog:   oneSingular(func(d, _, x *ir.Expr) *ir.Expr { return div(d, x) }),
	ir.OpLog2:  oneSingular(func(d, _, x *ir.Expr) *ir.Expr { return div(d, mul(x, num(x, math.Ln2))) }),
	ir.OpLog10: oneSingular(func(d, _, x *ir.Expr) *ir.Expr { return div(d, mul(x, num(x, math.Ln10))) }),
	ir.OpLog1p: oneSingular(func(d, _, x *ir.Expr) *ir.Expr { return div(d, add(num(x, 1), x)) }),
	ir.OpSqrt:  oneSingular(func(d, y, _ *ir.Expr) *ir.Expr { return div(mul(d, num(y, 0.5)), y) }),
	ir.OpRsqrt: oneSingular(func(d, y, _ *ir.Expr) *ir.Expr {
		return mul(d, mul(mul(num(y, -0.5), y), mul(y, y)))
	}),
	ir.OpRecip: oneSingular(func(d, y, _ *ir.Expr) *ir.Expr { return mul(d, neg(mul(y, y))) }),
	ir.OpErf:   one(func(d, _, x *ir.Expr) *ir.Expr { return mul(d, bell(x, 2/math.Sqrt(math.Pi))) }),
	ir.OpErfc:  one(func(d, _, x *ir.Expr) *ir.Expr { return mul(d, bell(x, -2/math.Sqrt(math.Pi))) }),

	ir.OpSin:   one(func(d, _, x *ir.Expr) *ir.Expr { return mul(d, ir.Apply(ir.OpCos, x)) }),
	ir.OpCos:   one(func(d, _, x *ir.Expr) *ir.Expr { return mul(d, neg(ir.Apply(ir.OpSin, x))) }),
	ir.OpTan:   oneSingular(func(d, y, _ *ir.Expr) *ir.Expr { return mul(d, add(num(y, 1), mul(y, y))) }),
	ir.OpAsin:  oneSingular(func(d, _, x *ir.Expr) *ir.Expr { return mul(d, rsqrt(oneLessSquare(x))) }),
	ir.OpAcos:  oneSingular(func(d, _, x *ir.Expr) *ir.Expr { return neg(mul(d, rsqrt(oneLessSquare(x)))) }),
	ir.OpAtan:  one(func(d, _, x *ir.Expr) *ir.Expr { return div(d, add(num(x, 1), mul(x, x))) }),
	ir.OpAtan2: {by: byAtan2, singular: true},
	ir.OpSinh:  oneSingular(func(d, _, x *ir.Expr) *ir.Expr { return mul(d, ir.Apply(ir.OpCosh, x)) }),
	ir.OpCosh:  oneSingular(func(d, _, x *ir.Expr) *ir.Expr { return mul(d, ir.Apply(ir.OpSinh, x)) }),
	ir.OpTanh:  one(func(d, y, _ *ir.Expr) *ir.Expr { return mul(d, oneLessSquare(y)) }),
	ir.OpAsinh: one(func(d, _, x *ir.Expr) *ir.Expr { return mul(d, rsqrt(add(mul(x, x), num(x, 1)))) }),
	ir.OpAcosh: oneSingular(func(d, _, x *ir.Expr) *ir.Expr {
		return mul(d, mul(rsqrt(sub(x, num(x, 1))), rsqrt(add(x, num(x, 1)))))
	}),
	ir.OpAtanh: oneSingular(func(d, _, x *ir.Expr) *ir.Expr { return div(d, oneLessSquare(x)) }),

	ir.OpLt: constant, ir.OpLe: constant, ir.OpGt: constant, ir.OpGe: constant, ir.OpEq: constant, ir.OpNe: constant,
	ir.OpIsNaN: constant, ir.OpIsInf: constant, ir.OpIsFinite: constant,
}

// one is the rule of an operation with one argument.
func one(by func(d, y, x *ir.Expr) *ir.Expr) *rule {
	return &rule{by: func(d, y *ir.Expr, x []*ir.Expr) []part { return parts(by(d, y, x[0])) }}
}

func oneSingular(by func(d, y, x *ir.Expr) *ir.Expr) *rule {
	r := one(by)
	r.singular = true
	return r
}

func parts(exprs ...*ir.Expr) []part {
	out := make([]part, len(exprs))
	for i, e := range exprs {
		out[i].expr = e
	}
	return out
}

func byDiv(d, y *ir.Expr, x []*ir.Expr) []part {
	q := div(d, x[1])
	return parts(q, neg(mul(q, y)))
}

func byMod(d, _ *ir.Expr, x []*ir.Expr) []part {
	return parts(d, neg(mul(d, ir.Apply(ir.OpFloor, div(x[0], x[1])))))
}

// byPow: the derivative with respect to the base is 0 if the exponent is 0, and the derivative
// with respect to the exponent is 0 if the base is 0 and the exponent is not negative.
func byPow(d, y *ir.Expr, x []*ir.Expr) []part {
	a, b := x[0], x[1]
	if b.Op == ir.OpConst {
		return parts(mul(d, power(a, b.Val)), nil)
	}
	zero := num(a, 0)
	return []part{
		{ir.Apply(ir.OpNe, b, zero), mul(d, mul(b, ir.Apply(ir.OpPow, a, sub(b, num(b, 1)))))},
		{ir.Apply(ir.OpOr, ir.Apply(ir.OpNe, a, zero), ir.Apply(ir.OpLt, b, zero)), mul(d, mul(y, ir.Apply(ir.OpLog, a)))},
	}
}

// power is the derivative of a to a constant power, written without a power where possible.
func power(a *ir.Expr, n float64) *ir.Expr {
	switch n {
	case 0:
		return nil
	case 1:
		return num(a, 1)
	case 2:
		return mul(num(a, 2), a)
	case 3:
		return mul(num(a, 3), mul(a, a))
	}
	return mul(num(a, n), ir.Apply(ir.OpPow, a, num(a, n-1)))
}

// byExtremum gives the adjoint to the chosen argument, or half of it to each if they are equal.
func byExtremum(wins ir.Op, d *ir.Expr, x []*ir.Expr) []part {
	share := ir.Where(ir.Apply(ir.OpEq, x[0], x[1]), mul(d, num(d, 0.5)), d)
	return []part{{ir.Apply(wins, x[0], x[1]), share}, {ir.Apply(wins, x[1], x[0]), share}}
}

// byAtan2 is 0 at the origin.
func byAtan2(d, _ *ir.Expr, x []*ir.Expr) []part {
	a, b := x[0], x[1]
	square := add(mul(a, a), mul(b, b))
	there, by := ir.Apply(ir.OpNe, square, num(a, 0)), div(d, square)
	return []part{{there, mul(by, b)}, {there, neg(mul(by, a))}}
}

// bell is scale * exp(-x^2).
func bell(x *ir.Expr, scale float64) *ir.Expr {
	return mul(num(x, scale), ir.Apply(ir.OpExp, neg(mul(x, x))))
}

// oneLessSquare is 1 - x^2, with few roundings where x is near 1.
func oneLessSquare(x *ir.Expr) *ir.Expr { return mul(sub(num(x, 1), x), add(num(x, 1), x)) }

func rsqrt(x *ir.Expr) *ir.Expr { return ir.Apply(ir.OpRsqrt, x) }

// num is the constant v of the type of like.
func num(like *ir.Expr, v float64) *ir.Expr { return ir.Num(like.Type, v) }

// The operations below omit work that a constant operand makes unnecessary. A nil operand of a
// product stands for 0.

func mul(a, b *ir.Expr) *ir.Expr {
	switch {
	case a == nil || b == nil:
		return nil
	case a.IsConst(1):
		return b
	case b.IsConst(1):
		return a
	case a.IsConst(-1):
		return neg(b)
	case b.IsConst(-1):
		return neg(a)
	case a.Op == ir.OpConst && b.Op == ir.OpConst:
		return num(a, a.Val*b.Val)
	}
	return ir.Apply(ir.OpMul, a, b)
}

func div(a, b *ir.Expr) *ir.Expr {
	if b.IsConst(1) {
		return a
	}
	return ir.Apply(ir.OpDiv, a, b)
}

func neg(a *ir.Expr) *ir.Expr {
	switch {
	case a == nil:
		return nil
	case a.Op == ir.OpConst && a.Type.IsFloat():
		return num(a, -a.Val)
	case a.Op == ir.OpNeg:
		return a.Args[0]
	}
	return ir.Apply(ir.OpNeg, a)
}

func add(a, b *ir.Expr) *ir.Expr { return ir.Apply(ir.OpAdd, a, b) }

func sub(a, b *ir.Expr) *ir.Expr { return ir.Apply(ir.OpSub, a, b) }

// HasRule reports whether the derivative of an operation is known.
func HasRule(op ir.Op) bool { return rules[op] != nil || op == ir.OpSelect || op == ir.OpCast }

// HasDerivative reports whether an operation has a derivative that is not 0 everywhere.
func HasDerivative(op ir.Op) bool {
	r := rules[op]
	return op == ir.OpSelect || op == ir.OpCast || r != nil && r.by != nil
}
