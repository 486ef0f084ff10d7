package parser

import (
	"math"
	"strconv"
	"strings"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// number converts a literal.
func (b *builder) number(text string, span diag.Span) val {
	clean := strings.ReplaceAll(text, "_", "")
	if isInteger(clean) {
		i, err := strconv.ParseInt(clean, 0, 64)
		if err != nil {
			i, err = parseDecimal(clean)
		}
		if err != nil {
			return b.fail(span, "number %s does not fit in 64 bits", shorten(text))
		}
		return intv(i).at(span)
	}
	f, err := strconv.ParseFloat(clean, 64)
	switch {
	case err == nil:
		return floatv(f).at(span)
	case math.IsInf(f, 0):
		return b.fail(span, "number %s is too large: write inf for infinity", shorten(text))
	}
	return b.fail(span, "%s is not a number", shorten(text))
}

func isInteger(s string) bool {
	if len(s) > 1 && s[0] == '0' && (s[1]|0x20 == 'x' || s[1]|0x20 == 'b') {
		return true
	}
	return !strings.ContainsAny(s, ".eE")
}

// parseDecimal reads digits with leading zeros, which Go takes for octal.
func parseDecimal(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) }

func shorten(s string) string {
	if len(s) > 24 {
		return s[:20] + "..."
	}
	return s
}

func (b *builder) text(quoted string, span diag.Span) val {
	s, err := strconv.Unquote(quoted)
	if err != nil {
		return b.fail(span, "text has an unknown escape: use \\n, \\t, \\\" or \\\\")
	}
	return textv(s).at(span)
}

// formatFloat writes a number so that it reads back as the same float.
func formatFloat(f float64) string { return ir.Num(ir.F64, f).String() }

// fold computes a binary operation on compile-time values.
func (b *builder) fold(op string, x, y val, span diag.Span) val {
	switch {
	case op == "==" || op == "!=":
		return boolv(same(x, y) == (op == "==")).at(span)
	case op == "&&" || op == "||":
		return b.foldLogic(op, x, y, span)
	case x.kind == listVal && y.kind == listVal && op == "+":
		return val{kind: listVal, list: concat(x.list, y.list), span: span}
	case !x.isNumber() || !y.isNumber() || x.kind == boolVal || y.kind == boolVal:
		return b.fail(span, "cannot apply %s to %s and %s", op, x.describe(), y.describe())
	case x.kind == intVal && y.kind == intVal:
		return b.foldInt(op, x, y, span)
	}
	return b.foldFloat(op, x.toFloat(), y.toFloat(), span)
}

func (b *builder) foldLogic(op string, x, y val, span diag.Span) val {
	if x.kind != boolVal || y.kind != boolVal {
		return b.fail(span, "%s takes bools, not %s and %s", op, x.describe(), y.describe())
	}
	if op == "&&" {
		return boolv(x.int&y.int == 1).at(span)
	}
	return boolv(x.int|y.int == 1).at(span)
}

// same compares compile-time values; none equals only none.
func same(x, y val) bool {
	if x.isNumber() && y.isNumber() && x.kind != boolVal && y.kind != boolVal {
		return x.toFloat() == y.toFloat()
	}
	if x.kind != y.kind || len(x.list) != len(y.list) {
		return false
	}
	for i := range x.list {
		if !same(x.list[i], y.list[i]) {
			return false
		}
	}
	return x.int == y.int && x.text == y.text && x.dtype == y.dtype
}

func (b *builder) foldInt(op string, x, y val, span diag.Span) val {
	if (op == "/" || op == "%") && y.int == 0 {
		return b.fail(span, "division of %d by zero", x.int)
	}
	if overflows(op, x.int, y.int) {
		return b.fail(span, "%d %s %d does not fit in 64 bits", x.int, op, y.int)
	}
	code, ok := binaryOp(op, ir.I64)
	if !ok || code.Info().Int == nil {
		return b.fail(span, "cannot apply %s to two integers", op)
	}
	r := code.Info().Int(x.int, y.int, 0)
	if code.Info().Result == ir.ToBool {
		return boolv(r != 0).at(span)
	}
	return intv(r).at(span)
}

func overflows(op string, x, y int64) bool {
	switch op {
	case "+":
		return (x+y > x) != (y > 0) && y != 0
	case "-":
		return (x-y < x) != (y > 0) && y != 0
	case "*":
		return mulOverflows(x, y)
	case "/":
		return x == math.MinInt64 && y == -1
	case "**":
		return math.Abs(math.Pow(float64(x), float64(y))) >= 1<<63
	}
	return false
}

func (b *builder) foldFloat(op string, x, y float64, span diag.Span) val {
	code, ok := binaryOp(op, ir.F64)
	if !ok || code.Info().Float == nil {
		return b.fail(span, "cannot apply %s to floats", op)
	}
	r := code.Info().Float(x, y, 0)
	if code.Info().Result == ir.ToBool {
		return boolv(r != 0).at(span)
	}
	return floatv(r).at(span)
}

// foldCall computes an elementwise operation on compile-time numbers; ok is
// false where some argument is not one.
func (b *builder) foldCall(op ir.Op, args []val, span diag.Span) (v val, ok bool) {
	info := op.Info()
	floats, ints := [3]float64{}, [3]int64{}
	allInts, allBools := true, true
	for i, a := range args {
		if !a.isNumber() {
			return val{}, false
		}
		floats[i], ints[i] = a.toFloat(), a.int
		allInts = allInts && a.kind == intVal
		allBools = allBools && a.kind == boolVal
	}
	switch {
	case allBools && info.On.Has(ir.KindBool) && info.Int != nil:
		return boolv(info.Int(ints[0], ints[1], ints[2]) != 0).at(span), true
	case allInts && info.On.Has(ir.KindInt) && info.Int != nil:
		r := info.Int(ints[0], ints[1], ints[2])
		if info.Result == ir.ToBool {
			return boolv(r != 0).at(span), true
		}
		return intv(r).at(span), true
	case info.On.Has(ir.KindFloat) && info.Float != nil && !allBools:
		r := info.Float(floats[0], floats[1], floats[2])
		if info.Result == ir.ToBool {
			return boolv(r != 0).at(span), true
		}
		return floatv(r).at(span), true
	}
	return val{}, false
}

// staticInt evaluates an expression that must be an integer known now.
func (b *builder) staticInt(e *exprNode, what string) (int64, bool) {
	v := b.expr(e)
	if !v.ok() {
		return 0, false
	}
	if v.kind != intVal {
		b.errorf(e.span(), "%s must be an integer known at compile time, not %s", what, v.describe())
		return 0, false
	}
	return v.int, true
}
