package ir

import "math"

// Op is a scalar operation or a leaf of an Expr.
type Op uint8

// The operations. Every one has a row in the op table; see OpInfo.
const (
	OpInvalid Op = iota

	// Leaves.
	OpConst    // Expr.Val or Expr.Int
	OpRange    // the current index of Expr.Range
	OpSym      // the size bound to the symbol Expr.Name
	OpLoad     // Expr.From at the indices Args, Expr.Fill outside
	OpReduce   // Expr.Reduce over the body Args[0]; only before normal form
	OpLocal    // a value computed earlier in the same kernel; only in plans
	OpRead     // a kernel argument at the flat offset Args[0]; only in plans
	OpRandom   // 32 Philox bits of (seed, index)
	OpRandom16 // 16 Philox bits of (seed, index)

	// Arithmetic.
	OpAdd
	OpSub
	OpMul
	OpDiv
	OpFloorDiv
	OpMod
	OpPow
	OpMin
	OpMax
	OpNeg
	OpAbs
	OpSign

	// Rounding.
	OpFloor
	OpCeil
	OpRound
	OpTrunc

	// Exponentials and roots.
	OpExp
	OpExp2
	OpExpm1
	OpLog
	OpLog2
	OpLog10
	OpLog1p
	OpSqrt
	OpRsqrt
	OpRecip
	OpErf
	OpErfc

	// Trigonometry.
	OpSin
	OpCos
	OpTan
	OpAsin
	OpAcos
	OpAtan
	OpAtan2
	OpSinh
	OpCosh
	OpTanh
	OpAsinh
	OpAcosh
	OpAtanh

	// Comparison and logic.
	OpLt
	OpLe
	OpGt
	OpGe
	OpEq
	OpNe
	OpAnd
	OpOr
	OpNot
	OpIsNaN
	OpIsInf
	OpIsFinite

	// Bits.
	OpBitAnd
	OpBitOr
	OpBitXor
	OpBitNot
	OpShl
	OpShr

	// Choice and conversion.
	OpSelect
	OpCast

	numOps
)

// Kinds is a set of Kind.
type Kinds uint8

// The sets that rows of the op table accept.
const (
	OnBool  Kinds = 1 << KindBool
	OnInt   Kinds = 1 << KindInt
	OnFloat Kinds = 1 << KindFloat
	OnNum         = OnInt | OnFloat
	OnAny         = OnBool | OnNum
	OnBits        = OnBool | OnInt
)

// Has reports whether the set holds k.
func (s Kinds) Has(k Kind) bool { return s&(1<<k) != 0 }

// ResultRule says how an operation's type follows from its arguments' type.
type ResultRule uint8

// The result rules.
const (
	SameType ResultRule = iota // the arguments' common type
	ToBool                     // bool
	Special                    // set by the constructor: leaves, casts, select
)

// OpInfo is one row of the op table.
type OpInfo struct {
	Name        string
	Infix       string // operator in .fuse text; "" prints as a call
	Arity       int    // -1: varies
	On          Kinds  // argument kinds
	Result      ResultRule
	Commutative bool
	Cost        int // issue slots of one f32 evaluation on a GPU, about
	Special     int // of those, how many use the special function unit

	// Float and Int evaluate one element; nil where the kind is not accepted.
	// Booleans are 0 and 1. Unused arguments are 0.
	Float func(a, b, c float64) float64
	Int   func(a, b, c int64) int64

	Doc string
}

// Info returns the operation's row.
func (op Op) Info() *OpInfo { return &ops[op] }

// String returns the operation's name.
func (op Op) String() string { return ops[op].Name }

// Ops returns the operations that compute, in table order: no leaves.
func Ops() []Op {
	var out []Op
	for op := OpAdd; op < numOps; op++ {
		out = append(out, op)
	}
	return out
}

// OpNamed returns the computing operation with the given name.
func OpNamed(name string) (Op, bool) {
	for _, op := range Ops() {
		if ops[op].Name == name {
			return op, true
		}
	}
	return OpInvalid, false
}

func float1(f func(float64) float64) func(a, b, c float64) float64 {
	return func(a, _, _ float64) float64 { return f(a) }
}

func float2(f func(a, b float64) float64) func(a, b, c float64) float64 {
	return func(a, b, _ float64) float64 { return f(a, b) }
}

// log2 is the logarithm to base 2. math.Log2 is inaccurate just above 1.
func log2(x float64) float64 {
	fraction, exponent := math.Frexp(x)
	if fraction < math.Sqrt2/2 {
		fraction, exponent = 2*fraction, exponent-1
	}
	if fraction == 1 { // a power of two
		return float64(exponent)
	}
	return float64(exponent) + math.Log(fraction)/math.Ln2
}

// asin is the inverse sine. math.Asin is inaccurate near 1 and -1, where 1 - x^2 has to be computed as a product.
func asin(x float64) float64 { return math.Atan2(x, math.Sqrt((1-x)*(1+x))) }

// acos is the inverse cosine, accurate near 1 for the same reason.
func acos(x float64) float64 { return math.Atan2(math.Sqrt((1-x)*(1+x)), x) }

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func truthInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

var ops = [numOps]OpInfo{
	OpInvalid: {Name: "invalid"},
	OpConst:   {Name: "const", Result: Special},
	OpRange:   {Name: "range", Result: Special},
	OpSym:     {Name: "sym", Result: Special},
	OpLoad:    {Name: "load", Arity: -1, Result: Special},
	OpReduce:  {Name: "reduce", Arity: 1, Result: Special},
	OpLocal:   {Name: "local", Result: Special},
	OpRead:    {Name: "read", Arity: 1, Result: Special},
	OpRandom: {Name: "random_bits", Arity: 2, On: OnInt, Result: Special, Cost: 20, Int: philoxRow,
		Doc: "32 random bits: Philox4x32-10 keyed by a seed, at a counter"},
	OpRandom16: {Name: "random_bits16", Arity: 2, On: OnInt, Result: Special, Cost: 10, Int: philox16Row,
		Doc: "16 random bits: half a word of Philox4x32-10, so that one evaluation serves eight"},

	OpAdd: {Name: "add", Infix: "+", Arity: 2, On: OnNum, Commutative: true, Cost: 1, Doc: "sum",
		Float: func(a, b, _ float64) float64 { return a + b }, Int: func(a, b, _ int64) int64 { return a + b }},
	OpSub: {Name: "sub", Infix: "-", Arity: 2, On: OnNum, Cost: 1, Doc: "difference",
		Float: func(a, b, _ float64) float64 { return a - b }, Int: func(a, b, _ int64) int64 { return a - b }},
	OpMul: {Name: "mul", Infix: "*", Arity: 2, On: OnNum, Commutative: true, Cost: 1, Doc: "product",
		Float: func(a, b, _ float64) float64 { return a * b }, Int: func(a, b, _ int64) int64 { return a * b }},
	OpDiv: {Name: "div", Infix: "/", Arity: 2, On: OnFloat, Cost: 4, Special: 1, Doc: "quotient of floats",
		Float: func(a, b, _ float64) float64 { return a / b }},
	OpFloorDiv: {Name: "floordiv", Infix: "/", Arity: 2, On: OnInt, Cost: 20, Doc: "quotient of integers rounded down; 0 for a zero divisor",
		Int: func(a, b, _ int64) int64 { return FloorDiv(a, b) }},
	OpMod: {Name: "mod", Infix: "%", Arity: 2, On: OnNum, Cost: 20, Doc: "remainder with the divisor's sign",
		Float: float2(floorMod), Int: func(a, b, _ int64) int64 { return FloorMod(a, b) }},
	OpPow: {Name: "pow", Infix: "**", Arity: 2, On: OnNum, Cost: 12, Special: 2, Doc: "power",
		Float: float2(math.Pow), Int: func(a, b, _ int64) int64 { return intPow(a, b) }},
	OpMin: {Name: "min", Arity: 2, On: OnAny, Commutative: true, Cost: 1, Doc: "smaller of two, NaN if either is",
		Float: func(a, b, _ float64) float64 { return min(a, b) }, Int: func(a, b, _ int64) int64 { return min(a, b) }},
	OpMax: {Name: "max", Arity: 2, On: OnAny, Commutative: true, Cost: 1, Doc: "larger of two, NaN if either is",
		Float: func(a, b, _ float64) float64 { return max(a, b) }, Int: func(a, b, _ int64) int64 { return max(a, b) }},
	OpNeg: {Name: "neg", Infix: "-", Arity: 1, On: OnNum, Cost: 1, Doc: "negation",
		Float: func(a, _, _ float64) float64 { return -a }, Int: func(a, _, _ int64) int64 { return -a }},
	OpAbs: {Name: "abs", Arity: 1, On: OnNum, Cost: 1, Doc: "absolute value",
		Float: float1(math.Abs), Int: func(a, _, _ int64) int64 { return max(a, -a) }},
	OpSign: {Name: "sign", Arity: 1, On: OnNum, Cost: 2, Doc: "-1, 0 or 1; NaN for NaN",
		Float: float1(sign), Int: func(a, _, _ int64) int64 { return truthInt(a > 0) - truthInt(a < 0) }},

	OpFloor: {Name: "floor", Arity: 1, On: OnFloat, Cost: 1, Doc: "round down", Float: float1(math.Floor)},
	OpCeil:  {Name: "ceil", Arity: 1, On: OnFloat, Cost: 1, Doc: "round up", Float: float1(math.Ceil)},
	OpRound: {Name: "round", Arity: 1, On: OnFloat, Cost: 1, Doc: "round to nearest, ties to even", Float: float1(math.RoundToEven)},
	OpTrunc: {Name: "trunc", Arity: 1, On: OnFloat, Cost: 1, Doc: "round toward zero", Float: float1(math.Trunc)},

	OpExp:   {Name: "exp", Arity: 1, On: OnFloat, Cost: 2, Special: 1, Doc: "e to the power x", Float: float1(math.Exp)},
	OpExp2:  {Name: "exp2", Arity: 1, On: OnFloat, Cost: 1, Special: 1, Doc: "2 to the power x", Float: float1(math.Exp2)},
	OpExpm1: {Name: "expm1", Arity: 1, On: OnFloat, Cost: 16, Special: 1, Doc: "exp(x) - 1, exact near 0", Float: float1(math.Expm1)},
	OpLog:   {Name: "log", Arity: 1, On: OnFloat, Cost: 8, Special: 1, Doc: "natural logarithm", Float: float1(math.Log)},
	OpLog2:  {Name: "log2", Arity: 1, On: OnFloat, Cost: 8, Special: 1, Doc: "logarithm to base 2", Float: float1(log2)},
	OpLog10: {Name: "log10", Arity: 1, On: OnFloat, Cost: 8, Special: 1, Doc: "logarithm to base 10", Float: float1(math.Log10)},
	OpLog1p: {Name: "log1p", Arity: 1, On: OnFloat, Cost: 16, Special: 1, Doc: "log(1 + x), exact near 0", Float: float1(math.Log1p)},
	OpSqrt:  {Name: "sqrt", Arity: 1, On: OnFloat, Cost: 4, Special: 1, Doc: "square root", Float: float1(math.Sqrt)},
	OpRsqrt: {Name: "rsqrt", Arity: 1, On: OnFloat, Cost: 2, Special: 1, Doc: "1 / sqrt(x)",
		Float: func(a, _, _ float64) float64 { return 1 / math.Sqrt(a) }},
	OpRecip: {Name: "recip", Arity: 1, On: OnFloat, Cost: 2, Special: 1, Doc: "1 / x", Float: func(a, _, _ float64) float64 { return 1 / a }},
	OpErf:   {Name: "erf", Arity: 1, On: OnFloat, Cost: 20, Special: 1, Doc: "error function", Float: float1(math.Erf)},
	OpErfc:  {Name: "erfc", Arity: 1, On: OnFloat, Cost: 24, Special: 2, Doc: "1 - erf(x)", Float: float1(math.Erfc)},

	OpSin:   {Name: "sin", Arity: 1, On: OnFloat, Cost: 36, Doc: "sine", Float: float1(math.Sin)},
	OpCos:   {Name: "cos", Arity: 1, On: OnFloat, Cost: 36, Doc: "cosine", Float: float1(math.Cos)},
	OpTan:   {Name: "tan", Arity: 1, On: OnFloat, Cost: 30, Special: 1, Doc: "tangent", Float: float1(math.Tan)},
	OpAsin:  {Name: "asin", Arity: 1, On: OnFloat, Cost: 20, Special: 1, Doc: "inverse sine", Float: float1(asin)},
	OpAcos:  {Name: "acos", Arity: 1, On: OnFloat, Cost: 20, Special: 1, Doc: "inverse cosine", Float: float1(acos)},
	OpAtan:  {Name: "atan", Arity: 1, On: OnFloat, Cost: 20, Special: 1, Doc: "inverse tangent", Float: float1(math.Atan)},
	OpAtan2: {Name: "atan2", Arity: 2, On: OnFloat, Cost: 30, Special: 1, Doc: "angle of the point (b, a)", Float: float2(math.Atan2)},
	OpSinh:  {Name: "sinh", Arity: 1, On: OnFloat, Cost: 20, Special: 2, Doc: "hyperbolic sine", Float: float1(math.Sinh)},
	OpCosh:  {Name: "cosh", Arity: 1, On: OnFloat, Cost: 10, Special: 2, Doc: "hyperbolic cosine", Float: float1(math.Cosh)},
	OpTanh:  {Name: "tanh", Arity: 1, On: OnFloat, Cost: 8, Special: 2, Doc: "hyperbolic tangent", Float: float1(math.Tanh)},
	OpAsinh: {Name: "asinh", Arity: 1, On: OnFloat, Cost: 20, Special: 2, Doc: "inverse hyperbolic sine", Float: float1(math.Asinh)},
	OpAcosh: {Name: "acosh", Arity: 1, On: OnFloat, Cost: 20, Special: 2, Doc: "inverse hyperbolic cosine", Float: float1(math.Acosh)},
	OpAtanh: {Name: "atanh", Arity: 1, On: OnFloat, Cost: 20, Special: 2, Doc: "inverse hyperbolic tangent", Float: float1(math.Atanh)},

	OpLt: {Name: "lt", Infix: "<", Arity: 2, On: OnAny, Result: ToBool, Cost: 1, Doc: "a < b",
		Float: func(a, b, _ float64) float64 { return truth(a < b) }, Int: func(a, b, _ int64) int64 { return truthInt(a < b) }},
	OpLe: {Name: "le", Infix: "<=", Arity: 2, On: OnAny, Result: ToBool, Cost: 1, Doc: "a <= b",
		Float: func(a, b, _ float64) float64 { return truth(a <= b) }, Int: func(a, b, _ int64) int64 { return truthInt(a <= b) }},
	OpGt: {Name: "gt", Infix: ">", Arity: 2, On: OnAny, Result: ToBool, Cost: 1, Doc: "a > b",
		Float: func(a, b, _ float64) float64 { return truth(a > b) }, Int: func(a, b, _ int64) int64 { return truthInt(a > b) }},
	OpGe: {Name: "ge", Infix: ">=", Arity: 2, On: OnAny, Result: ToBool, Cost: 1, Doc: "a >= b",
		Float: func(a, b, _ float64) float64 { return truth(a >= b) }, Int: func(a, b, _ int64) int64 { return truthInt(a >= b) }},
	OpEq: {Name: "eq", Infix: "==", Arity: 2, On: OnAny, Result: ToBool, Commutative: true, Cost: 1, Doc: "a == b",
		Float: func(a, b, _ float64) float64 { return truth(a == b) }, Int: func(a, b, _ int64) int64 { return truthInt(a == b) }},
	OpNe: {Name: "ne", Infix: "!=", Arity: 2, On: OnAny, Result: ToBool, Commutative: true, Cost: 1, Doc: "a != b",
		Float: func(a, b, _ float64) float64 { return truth(a != b) }, Int: func(a, b, _ int64) int64 { return truthInt(a != b) }},
	OpAnd: {Name: "and", Infix: "&&", Arity: 2, On: OnBool, Result: ToBool, Commutative: true, Cost: 1, Doc: "both",
		Int: func(a, b, _ int64) int64 { return a & b }},
	OpOr: {Name: "or", Infix: "||", Arity: 2, On: OnBool, Result: ToBool, Commutative: true, Cost: 1, Doc: "either",
		Int: func(a, b, _ int64) int64 { return a | b }},
	OpNot: {Name: "not", Infix: "!", Arity: 1, On: OnBool, Result: ToBool, Cost: 1, Doc: "negation of a bool",
		Int: func(a, _, _ int64) int64 { return a ^ 1 }},
	OpIsNaN: {Name: "isnan", Arity: 1, On: OnFloat, Result: ToBool, Cost: 1, Doc: "whether x is NaN",
		Float: func(a, _, _ float64) float64 { return truth(a != a) }},
	OpIsInf: {Name: "isinf", Arity: 1, On: OnFloat, Result: ToBool, Cost: 1, Doc: "whether x is infinite",
		Float: func(a, _, _ float64) float64 { return truth(math.IsInf(a, 0)) }},
	OpIsFinite: {Name: "isfinite", Arity: 1, On: OnFloat, Result: ToBool, Cost: 1, Doc: "whether x is neither NaN nor infinite",
		Float: func(a, _, _ float64) float64 { return truth(a-a == 0) }},

	OpBitAnd: {Name: "bitand", Infix: "&", Arity: 2, On: OnBits, Commutative: true, Cost: 1, Doc: "bitwise and",
		Int: func(a, b, _ int64) int64 { return a & b }},
	OpBitOr: {Name: "bitor", Infix: "|", Arity: 2, On: OnBits, Commutative: true, Cost: 1, Doc: "bitwise or",
		Int: func(a, b, _ int64) int64 { return a | b }},
	OpBitXor: {Name: "bitxor", Infix: "^", Arity: 2, On: OnBits, Commutative: true, Cost: 1, Doc: "bitwise exclusive or",
		Int: func(a, b, _ int64) int64 { return a ^ b }},
	OpBitNot: {Name: "bitnot", Arity: 1, On: OnInt, Cost: 1, Doc: "bitwise complement",
		Int: func(a, _, _ int64) int64 { return ^a }},
	OpShl: {Name: "shl", Infix: "<<", Arity: 2, On: OnInt, Cost: 1, Doc: "shift left; 0 for a shift of the width or more",
		Int: func(a, b, _ int64) int64 { return shiftLeft(a, b) }},
	OpShr: {Name: "shr", Infix: ">>", Arity: 2, On: OnInt, Cost: 1, Doc: "shift right, keeping the sign of signed types",
		Int: func(a, b, _ int64) int64 { return shiftRight(a, b) }},

	OpSelect: {Name: "where", Arity: 3, On: OnAny, Result: Special, Cost: 1, Doc: "b where a holds, else c",
		Float: func(a, b, c float64) float64 { return pick(a != 0, b, c) },
		Int:   func(a, b, c int64) int64 { return pick(a != 0, b, c) }},
	OpCast: {Name: "cast", Arity: 1, On: OnAny, Result: Special, Cost: 1, Doc: "conversion to another dtype"},
}

func pick[T any](c bool, a, b T) T {
	if c {
		return a
	}
	return b
}

func sign(a float64) float64 {
	switch {
	case a > 0:
		return 1
	case a < 0:
		return -1
	}
	return a // keeps NaN and signed zero
}

// FloorDiv is integer division rounded down, as Python's //. A zero divisor
// gives 0, so that no generated program can trap.
func FloorDiv(a, b int64) int64 {
	if b == 0 {
		return 0
	}
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

// FloorMod is the remainder that goes with FloorDiv: it has the divisor's sign.
func FloorMod(a, b int64) int64 {
	if b == 0 {
		return 0
	}
	return a - b*FloorDiv(a, b)
}

func floorMod(a, b float64) float64 {
	r := math.Mod(a, b)
	if r != 0 && (r < 0) != (b < 0) {
		r += b
	}
	return r
}

func intPow(a, b int64) int64 {
	if b < 0 {
		switch a {
		case 1:
			return 1
		case -1:
			return 1 - 2*(b&1)
		}
		return 0
	}
	r := int64(1)
	for ; b > 0; b >>= 1 {
		if b&1 == 1 {
			r *= a
		}
		a *= a
	}
	return r
}

func shiftLeft(a, b int64) int64 {
	if b < 0 || b > 63 {
		return 0
	}
	return a << uint(b)
}

func shiftRight(a, b int64) int64 {
	if b < 0 || b > 63 {
		b = 63
	}
	return a >> uint(b)
}
