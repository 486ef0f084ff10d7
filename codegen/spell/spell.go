// Package spell writes expressions, types, constants and names of the program in CUDA C.
package spell

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/fusec/fusec/ir"
)

// StorageType is the C type of a dtype in memory.
func StorageType(t ir.DType) string {
	switch t {
	case ir.BF16, ir.F16, ir.F8E4M3, ir.F8E5M2:
		return t.String()
	}
	return ComputeType(t)
}

// computeTypes are the C types of values inside a kernel.
var computeTypes = map[ir.DType]string{
	ir.Bool: "bool", ir.U8: "unsigned char", ir.I8: "signed char", ir.I16: "short", ir.I32: "int", ir.U32: "unsigned",
	ir.I64: "long long", ir.F32: "float", ir.F64: "double", ir.Index: "INDEX",
}

func ComputeType(t ir.DType) string { return computeTypes[t.Info().Compute] }

// spelling is one row of the CUDA operator table: an infix operator, or a format whose verbs
// are the arguments. f32, f64, ints and index are the texts for each kind; fast replaces f32 where
// upTo fraction bits are enough.
type spelling struct {
	infix string
	f32   string
	f64   string
	ints  string
	index string // of indices, where they differ from other integers
	fast  string
	upTo  int // fraction bits that fast is good for; 23 means always under fast numerics
}

// Fraction bits that the approximations are good for.
const (
	forBF16 = 7
	forF16  = 10
	forF32  = 23
)

// spellings has a row for each computing operation; a test checks that.
var spellings = map[ir.Op]spelling{
	ir.OpAdd:      {infix: "+"},
	ir.OpSub:      {infix: "-"},
	ir.OpMul:      {infix: "*"},
	ir.OpDiv:      {f32: "(%s / %s)", f64: "(%s / %s)", fast: "div_fast(%s, %s)", upTo: forF32},
	ir.OpFloorDiv: {ints: "floordiv(%s, %s)"},
	ir.OpMod:      {f32: "mod_(%s, %s)", f64: "mod_(%s, %s)", ints: "mod_(%s, %s)"},
	ir.OpPow:      {f32: "powf(%s, %s)", f64: "pow(%s, %s)", ints: "ipow(%s, %s)"},
	ir.OpMin:      {f32: "min_(%s, %s)", f64: "min_(%s, %s)", ints: "min_value(%s, %s)", index: "min_(%s, %s)"},
	ir.OpMax:      {f32: "max_(%s, %s)", f64: "max_(%s, %s)", ints: "max_value(%s, %s)", index: "max_(%s, %s)"},
	ir.OpNeg:      {f32: "-%s", f64: "-%s", ints: "sub_((%[2]s)0, %[1]s)"},
	ir.OpAbs:      {f32: "fabsf(%s)", f64: "fabs(%s)", ints: "max_(%[1]s, (%[2]s)sub_((%[2]s)0, %[1]s))"},
	ir.OpSign:     {f32: "sign_(%s)", f64: "sign_(%s)", ints: "sign_(%s)"},
	ir.OpFloor:    {f32: "floorf(%s)", f64: "floor(%s)"},
	ir.OpCeil:     {f32: "ceilf(%s)", f64: "ceil(%s)"},
	ir.OpRound:    {f32: "rintf(%s)", f64: "rint(%s)"},
	ir.OpTrunc:    {f32: "truncf(%s)", f64: "trunc(%s)"},
	ir.OpExp:      {f32: "expf(%s)", f64: "exp(%s)", fast: "exp_fast(%s)", upTo: forF16},
	ir.OpExp2:     {f32: "exp2f(%s)", f64: "exp2(%s)", fast: "exp2_fast(%s)", upTo: forF32}, // both are ex2.approx
	ir.OpExpm1:    {f32: "expm1f(%s)", f64: "expm1(%s)"},
	ir.OpLog:      {f32: "logf(%s)", f64: "log(%s)"},
	ir.OpLog2:     {f32: "log2f(%s)", f64: "log2(%s)"},
	ir.OpLog10:    {f32: "log10f(%s)", f64: "log10(%s)"},
	ir.OpLog1p:    {f32: "log1p_(%s)", f64: "log1p(%s)", fast: "log1p_fast(%s)", upTo: forF16},
	ir.OpSqrt:     {f32: "sqrtf(%s)", f64: "sqrt(%s)", fast: "sqrt_fast(%s)", upTo: forF16},
	ir.OpRsqrt:    {f32: "(1.0f / sqrtf(%s))", f64: "(1.0 / sqrt(%s))", fast: "rsqrtf(%s)", upTo: forF32},
	ir.OpRecip:    {f32: "(1.0f / %s)", f64: "(1.0 / %s)", fast: "rcp_fast(%s)", upTo: forF32},
	ir.OpErf:      {f32: "erff(%s)", f64: "erf(%s)", fast: "erf_fast(%s)", upTo: forF16},
	ir.OpErfc:     {f32: "erfcf(%s)", f64: "erfc(%s)"},
	ir.OpSin:      {f32: "sin_(%s)", f64: "sin(%s)"},
	ir.OpCos:      {f32: "cos_(%s)", f64: "cos(%s)"},
	ir.OpTan:      {f32: "tan_(%s)", f64: "tan(%s)"},
	ir.OpAsin:     {f32: "asinf(%s)", f64: "asin(%s)"},
	ir.OpAcos:     {f32: "acosf(%s)", f64: "acos(%s)"},
	ir.OpAtan:     {f32: "atanf(%s)", f64: "atan(%s)"},
	ir.OpAtan2:    {f32: "atan2f(%s, %s)", f64: "atan2(%s, %s)"},
	ir.OpSinh:     {f32: "sinhf(%s)", f64: "sinh(%s)"},
	ir.OpCosh:     {f32: "coshf(%s)", f64: "cosh(%s)"},
	ir.OpTanh:     {f32: "tanh_(%s)", f64: "tanh(%s)", fast: "tanh_fast(%s)", upTo: forBF16},
	ir.OpAsinh:    {f32: "asinhf(%s)", f64: "asinh(%s)"},
	ir.OpAcosh:    {f32: "acoshf(%s)", f64: "acosh(%s)"},
	ir.OpAtanh:    {f32: "atanhf(%s)", f64: "atanh(%s)"},
	ir.OpLt:       {infix: "<"},
	ir.OpLe:       {infix: "<="},
	ir.OpGt:       {infix: ">"},
	ir.OpGe:       {infix: ">="},
	ir.OpEq:       {infix: "=="},
	ir.OpNe:       {infix: "!="},
	ir.OpAnd:      {infix: "&&"},
	ir.OpOr:       {infix: "||"},
	ir.OpNot:      {ints: "!%s"},
	ir.OpIsNaN:    {f32: "is_nan(%s)", f64: "is_nan(%s)"},
	ir.OpIsInf:    {f32: "(fabsf(%s) == infinity())", f64: "(fabs(%s) == (double)infinity())"},
	ir.OpIsFinite: {f32: "(fabsf(%s) < infinity())", f64: "(fabs(%s) < (double)infinity())"},
	ir.OpBitAnd:   {infix: "&"},
	ir.OpBitOr:    {infix: "|"},
	ir.OpBitXor:   {infix: "^"},
	ir.OpBitNot:   {ints: "~%s"},
	ir.OpShl:      {ints: "shl_(%s, %s)"},
	ir.OpShr:      {ints: "shr_(%s, %s)"},
	ir.OpSelect:   {},
	ir.OpCast:     {},
}

// Speller writes expressions. Local, Range and Read say how a local, a coordinate and a read are written
// at the place where the expression stands.
type Speller struct {
	Numerics ir.Numerics
	Mantissa int // fraction bits that results need; approximations that are good to them will do
	Facts    ir.Facts
	Local    func(*ir.Local) string
	Range    func(*ir.Range) string
	Read     func(*ir.Expr) string
	Eager    bool       // both sides of a condition are evaluated, without a branch
	byRange  bool       // the index that is being written is linear in ranges, see ir.ByRange
	bounds   []*ir.Expr // conditions that hold where the place of a read is computed
}

// Expr writes e, in parentheses where it is not a single term.
func (s *Speller) Expr(e *ir.Expr) string {
	switch e.Op {
	case ir.OpConst:
		return Literal(e)
	case ir.OpRange:
		return s.Range(e.Range)
	case ir.OpSym:
		return Identifier(e.Name)
	case ir.OpLocal:
		return s.Local(e.Local)
	case ir.OpRead:
		return s.Read(e)
	case ir.OpRandom:
		return fmt.Sprintf("random_bits(%s, %s)", s.Expr(e.Args[0]), s.Expr(e.Args[1]))
	case ir.OpRandom16:
		return fmt.Sprintf("random_bits16(%s, %s)", s.Expr(e.Args[0]), s.Expr(e.Args[1]))
	case ir.OpSelect:
		if sideBySide(e) {
			return fmt.Sprintf("pick(%s, %s, %s)", s.Bare(e.Args[0]), s.Bare(e.Args[1]), s.Bare(e.Args[2]))
		}
		return fmt.Sprintf("(%s ? %s : %s)", s.Expr(e.Args[0]), s.Expr(e.Args[1]), s.Expr(e.Args[2]))
	case ir.OpCast:
		return s.cast(e)
	case ir.OpReduce:
		return s.sum(e)
	}
	return s.operation(e)
}

// mostAside is the most work of both sides of a choice that is computed without a branch.
const mostAside = 32

// sideBySide reports whether both sides of a choice are computed, without a branch. With branches, the
// elements of a thread are computed one after another instead of together. For cheap sides the compiler
// does this by itself. Sides that read memory must not run where the condition forbids it.
func sideBySide(e *ir.Expr) bool {
	work, special, plain := 0, 0, e.Type == ir.F32
	for _, side := range e.Args[1:] {
		ir.Walk(side, func(x *ir.Expr) bool {
			info := x.Op.Info()
			work, special = work+info.Cost, special+info.Special
			plain = plain && x.Op != ir.OpRead && x.Op != ir.OpReduce
			return plain
		})
	}
	return plain && special > 0 && work <= mostAside
}

// sum writes a sum over ranges of its own as a function called in place.
func (s *Speller) sum(e *ir.Expr) string {
	loops := ""
	for _, r := range e.Reduce.Ranges {
		loops += fmt.Sprintf("for (INDEX %[1]s = 0; %[1]s < %[2]s; ++%[1]s) ", s.Range(r), s.Expr(r.Extent))
	}
	return fmt.Sprintf("[&] { %s sum = 0; %ssum += %s; return sum; }()", ComputeType(e.Type), loops, s.Bare(e.Args[0]))
}

// Bare is Expr without the outer parentheses.
func (s *Speller) Bare(e *ir.Expr) string { return Unwrapped(s.Expr(e)) }

// Unwrapped is a text without outer parentheses.
func Unwrapped(text string) string {
	if len(text) < 2 || text[0] != '(' {
		return text
	}
	depth := 0
	for i, c := range text {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth == 0 {
			if i == len(text)-1 {
				return text[1:i]
			}
			return text
		}
	}
	return text
}

func (s *Speller) operation(e *ir.Expr) string {
	sp := spellings[e.Op]
	t := e.Args[0].Type
	switch {
	case e.Type == ir.Index && s.outgrows(e):
		return "to_index(" + s.wide(e) + ")"
	case t == ir.Index && e.Op.Info().Result == ir.ToBool && ir.Needs128(e, ir.SizeBits):
		return s.operation128(e)
	case t == ir.Index && e.Op.Info().Result == ir.ToBool && s.comparesWide(e):
		return fmt.Sprintf("(%s %s %s)", s.wide(e.Args[0]), sp.infix, s.wide(e.Args[1]))
	}
	if e.Type == ir.Index && !s.byRange {
		if by := ir.ByRange(e); by != e {
			s.byRange = true
			text := s.operation(by)
			s.byRange = false
			return text
		}
	}
	args := make([]any, len(e.Args))
	for i, a := range e.Args {
		args[i] = s.Expr(a)
	}
	if t == ir.Index && (e.Op == ir.OpFloorDiv || e.Op == ir.OpMod) && s.natural(e) {
		return fmt.Sprintf("(%s %s %s)", args[0], map[ir.Op]string{ir.OpFloorDiv: "/", ir.OpMod: "%"}[e.Op], args[1])
	}
	if infix := map[ir.Op]string{ir.OpAnd: "&", ir.OpOr: "|"}[e.Op]; s.Eager && infix != "" {
		return fmt.Sprintf("(bool)(%s %s %s)", args[0], infix, args[1])
	}
	if wrapping := map[ir.Op]string{ir.OpAdd: "add_", ir.OpSub: "sub_", ir.OpMul: "mul_"}[e.Op]; wrapping != "" && (t == ir.I32 || t == ir.I64) {
		return fmt.Sprintf("%s(%s, %s)", wrapping, args[0], args[1])
	}
	if sp.infix != "" {
		return narrowed(e.Type, fmt.Sprintf("(%s %s %s)", args[0], sp.infix, args[1]))
	}
	for i, a := range e.Args { // a template takes both arguments in one type
		switch {
		case t == ir.Index && a.Op == ir.OpConst:
			args[i] = "(INDEX)" + Literal(a)
		case t.IsInt() && t.Size() < 4 && len(args) == 2 && a.Op != ir.OpConst: // folds hold narrow integers as int
			args[i] = fmt.Sprintf("(%s)(%s)", ComputeType(t), args[i])
		}
	}
	format := s.format(sp, t)
	if e.Op == ir.OpAbs && !t.IsFloat() && !t.Info().Signed {
		return args[0].(string)
	}
	if (e.Op == ir.OpAbs || e.Op == ir.OpNeg) && !t.IsFloat() {
		args = append(args, ComputeType(t))
	}
	text := fmt.Sprintf(format, args...)
	if strings.HasPrefix(format, "-") || strings.HasPrefix(format, "~") || strings.HasPrefix(format, "!") {
		text = "(" + text + ")"
	}
	return narrowed(e.Type, text)
}

// natural reports whether C's division gives the language's result: no operand is negative and
// the divisor is not zero.
func (s *Speller) natural(e *ir.Expr) bool {
	return ir.ProveNonNegative(e.Args[0], s.Facts) && ir.ProveLess(ir.IntConst(0), e.Args[1], s.Facts)
}

func (s *Speller) format(sp spelling, t ir.DType) string {
	switch {
	case t == ir.F64:
		return sp.f64
	case t == ir.Index && sp.index != "":
		return sp.index
	case t != ir.F32:
		return sp.ints
	case sp.fast != "" && s.Numerics == ir.Fast && s.Mantissa <= sp.upTo:
		return sp.fast
	}
	return sp.f32
}

// narrowed wraps arithmetic that C would widen to int.
func narrowed(t ir.DType, text string) string {
	switch t {
	case ir.I8, ir.U8, ir.I16:
		return "(" + ComputeType(t) + ")" + text
	}
	return text
}

// cast writes a conversion.
func (s *Speller) cast(e *ir.Expr) string {
	from := e.Args[0]
	if from.Type == ir.Index && !s.exact(from) {
		return CastText(s.wide(from), ir.I64, e.Type)
	}
	arg := s.Expr(from)
	if e.Type == ir.F32 && from.Type == from.Type.Info().Compute && smallNatural(from) {
		return "small_to_f32((unsigned)" + arg + ")"
	}
	return CastText(arg, from.Type, e.Type)
}

// CastText writes a conversion between any two types, of compute or of storage.
func CastText(arg string, from, to ir.DType) string {
	if from != from.Info().Compute {
		arg, from = "to_f32("+arg+")", ir.F32
	}
	if to != to.Info().Compute {
		return fmt.Sprintf("from_f32<%s>(%s)", to, floatOf(arg, from))
	}
	return convert(arg, from, to)
}

// smallNatural reports whether an integer is known to be from 0 to 2^23-1. It can then be
// converted to a float by setting bits, without the slow conversion.
func smallNatural(e *ir.Expr) bool {
	const limit = 1 << 23
	switch e.Op {
	case ir.OpCast:
		from := e.Args[0]
		return from.Type == ir.U8 || !from.Type.IsFloat() && !e.Type.IsFloat() && e.Type.Size() >= 4 && smallNatural(from)
	case ir.OpBitAnd:
		for _, a := range e.Args {
			if a.Op == ir.OpConst && a.Int >= 0 && a.Int < limit {
				return true
			}
		}
		return false
	}
	return e.Type == ir.U8
}

// floatOf writes a number as an f32 such that rounding it to any narrower float gives the right
// result.
func floatOf(arg string, t ir.DType) string {
	switch {
	case t == ir.F32:
		return arg
	case t.IsInt() && t.Size() >= 4: // may have more bits than an f32
		return "odd_f32(" + arg + ")"
	}
	return "(float)" + arg
}

func convert(arg string, from, to ir.DType) string {
	switch {
	case from == to:
		return arg
	case to == ir.Bool:
		return "(" + arg + " != 0)"
	case to == ir.Index && from.IsFloat():
		return "to_index(to_i64(" + arg + "))"
	case to == ir.Index && (from == ir.I64 || from == ir.U32): // may have more bits
		return "to_index(" + arg + ")"
	case from.IsFloat() && !to.IsFloat():
		return fmt.Sprintf("to_%s(%s)", to, arg)
	}
	return fmt.Sprintf("(%s)%s", ComputeType(to), arg)
}

// Literal writes a constant of a compute or storage type.
func Literal(e *ir.Expr) string {
	switch t := e.Type; {
	case t == ir.F64:
		return float64Literal(e.Val)
	case t == ir.F32:
		return Float32Literal(e.Val)
	case t.IsFloat():
		return fmt.Sprintf("from_f32<%s>(%s)", t, Float32Literal(e.Val))
	case t == ir.Bool:
		return strconv.FormatBool(e.Int != 0)
	case t == ir.U32:
		return fmt.Sprintf("%du", uint32(e.Int))
	case t == ir.I64 && e.Int == math.MinInt64:
		return "(-9223372036854775807LL - 1)"
	case t == ir.I64:
		return parenthesised(fmt.Sprintf("%dLL", e.Int))
	case t == ir.Index && (e.Int > math.MaxInt32 || e.Int < math.MinInt32):
		return parenthesised(fmt.Sprintf("(INDEX)%dLL", e.Int))
	case t == ir.I32 && e.Int == math.MinInt32:
		return "(-2147483647 - 1)"
	case t == ir.Index || t == ir.I32:
		return parenthesised(strconv.FormatInt(e.Int, 10))
	default:
		return fmt.Sprintf("(%s)%d", ComputeType(t), e.Int)
	}
}

func parenthesised(text string) string {
	if strings.HasPrefix(text, "-") {
		return "(" + text + ")"
	}
	return text
}

func Float32Literal(v float64) string {
	f := float64(float32(v))
	switch {
	case f != f:
		return "nan32()"
	case math.IsInf(f, 1):
		return "infinity()"
	case math.IsInf(f, -1):
		return "(-infinity())"
	}
	return parenthesised(decimal(f, 32) + "f")
}

func float64Literal(v float64) string {
	switch {
	case v != v:
		return "((double)nan32())"
	case math.IsInf(v, 1):
		return "((double)infinity())"
	case math.IsInf(v, -1):
		return "(-(double)infinity())"
	}
	return parenthesised(decimal(v, 64))
}

func decimal(v float64, bits int) string {
	text := strconv.FormatFloat(v, 'g', -1, bits)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return text
}
