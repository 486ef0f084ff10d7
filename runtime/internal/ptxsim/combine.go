package ptxsim

import (
	"math"
	"strings"

	"github.com/fusec/fusec/ir/num"
)

// A combine is the function of an atomic or a reduction: of two values of its type, given and
// returned as bits, the old one first.
type combine func(old, x uint64) uint64

// Canonical NaNs (PTX ISA, "Floating-Point": payloads are not kept).
const (
	nan16 = 0x7FFF
	nan32 = 0x7FFFFFFF
)

// combineOf is the operation on elements of a type; nil where the ISA has none.
func combineOf(op, element string) combine {
	if packed, ok := strings.CutSuffix(element, "x2"); ok {
		return combineHalves(combineOf(op, packed))
	}
	switch element {
	case "f16", "bf16", "f32", "f64":
		return floatCombine(op, element)
	}
	size := elementTypes[element]
	if size < 4 {
		return nil
	}
	f := integerCombine(op, element[0] == 's', 64-8*size)
	if f == nil || size == 8 {
		return f
	}
	return func(old, x uint64) uint64 { return uint64(uint32(f(uint64(uint32(old)), uint64(uint32(x))))) }
}

func combineHalves(f combine) combine {
	if f == nil {
		return nil
	}
	return func(old, x uint64) uint64 {
		return f(old&0xFFFF, x&0xFFFF) | f(old>>16&0xFFFF, x>>16&0xFFFF)<<16
	}
}

// integerCombine works on zero-extended integers; unused is how many bits of 64 those of
// the type leave.
func integerCombine(op string, signed bool, unused int) combine {
	less := func(a, b uint64) bool { return a < b }
	if signed {
		less = func(a, b uint64) bool { return int64(a<<unused) < int64(b<<unused) }
	}
	switch op {
	case "add":
		return func(old, x uint64) uint64 { return old + x }
	case "and":
		return func(old, x uint64) uint64 { return old & x }
	case "or":
		return func(old, x uint64) uint64 { return old | x }
	case "xor":
		return func(old, x uint64) uint64 { return old ^ x }
	case "exch":
		return func(_, x uint64) uint64 { return x }
	case "min":
		return func(old, x uint64) uint64 { return choose(less(x, old), x, old) }
	case "max":
		return func(old, x uint64) uint64 { return choose(less(old, x), x, old) }
	case "inc":
		return func(old, x uint64) uint64 { return choose(old >= x, 0, old+1) }
	case "dec":
		return func(old, x uint64) uint64 { return choose(old == 0 || old > x, x, old-1) }
	}
	return nil
}

func choose(c bool, a, b uint64) uint64 {
	if c {
		return a
	}
	return b
}

// floatCombine rounds to nearest even and keeps subnormals. Sums of f16 and bf16 may be
// rounded twice: f32 holds more than twice their bits, so the result is that of one
// rounding (Figueroa, "When is double rounding innocuous?", 1995).
func floatCombine(op, element string) combine {
	var f func(a, b float64) float64
	switch op {
	case "min", "max":
		f = math.Min
		if op == "max" {
			f = math.Max
		}
		f = numberOver(f)
	case "add":
		f = func(a, b float64) float64 { return a + b }
		if element == "bf16" {
			f = func(a, b float64) float64 { return float64(float32(a) + float32(b)) }
		}
	default:
		return nil
	}
	switch element {
	case "f16":
		return narrowCombine(f, num.F16Value, num.F16Bits)
	case "bf16":
		return narrowCombine(f, num.BF16Value, num.BF16Bits)
	case "f64":
		return func(old, x uint64) uint64 {
			return math.Float64bits(f(math.Float64frombits(old), math.Float64frombits(x)))
		}
	}
	return func(old, x uint64) uint64 {
		// f64 holds more than twice the bits of f32, too.
		v := float32(f(float64(math.Float32frombits(uint32(old))), float64(math.Float32frombits(uint32(x)))))
		if v != v {
			return nan32
		}
		return uint64(math.Float32bits(v))
	}
}

func narrowCombine(f func(a, b float64) float64, value func(uint16) float32,
	code func(float32) uint16) combine {
	return func(old, x uint64) uint64 {
		v := f(float64(value(uint16(old))), float64(value(uint16(x))))
		if v != v {
			return nan16
		}
		return uint64(code(float32(v)))
	}
}

// numberOver gives the number where one of two operands is NaN (PTX ISA, min and max).
func numberOver(f func(a, b float64) float64) func(a, b float64) float64 {
	return func(a, b float64) float64 {
		switch {
		case a != a:
			return b
		case b != b:
			return a
		}
		return f(a, b)
	}
}

// flushed is a combine of f32 that takes subnormals as zero, and gives zero for them.
func flushed(f combine) combine {
	return func(old, x uint64) uint64 { return flush(f(flush(old), flush(x))) }
}

// flush makes a subnormal f32 a zero of its sign.
func flush(v uint64) uint64 {
	if v&0x7F800000 == 0 {
		return v & 0x80000000
	}
	return v
}
