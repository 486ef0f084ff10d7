package ptxsim

import "math"

// A rounding is how a result that a format does not hold becomes one that it holds.
type rounding int

const (
	toNearest rounding = iota // ties to even: rn, rni
	toZero                    // rz, rzi
	toMinus                   // rm, rmi: towards minus infinity
	toPlus                    // rp, rpi
	toAway                    // to nearest, ties away from zero: rna
)

// roundings are the modifiers of opcodes; those with an i round to integers.
var roundings = map[string]rounding{
	"rn": toNearest, "rz": toZero, "rm": toMinus, "rp": toPlus, "rna": toAway,
	"rni": toNearest, "rzi": toZero, "rmi": toMinus, "rpi": toPlus,
}

// integral rounds to an integer.
func (r rounding) integral(x float64) float64 {
	switch r {
	case toZero:
		return math.Trunc(x)
	case toMinus:
		return math.Floor(x)
	case toPlus:
		return math.Ceil(x)
	case toAway:
		return math.Round(x)
	}
	return math.RoundToEven(x)
}

// A format is a binary floating-point format: sign, exponent and fraction.
type format struct {
	bits     int    // of the whole
	fraction int    // bits
	least    int    // exponent of the smallest normal number
	top      uint64 // the largest finite magnitude
	inf      uint64 // a NaN where the format has no infinities
	nan      uint64 // the canonical one
	padding  int    // bits below that are zero: tf32 lies in 32 bits
}

var (
	f16  = &format{bits: 16, fraction: 10, least: -14, top: 0x7bff, inf: 0x7c00, nan: 0x7fff}
	bf16 = &format{bits: 16, fraction: 7, least: -126, top: 0x7f7f, inf: 0x7f80, nan: 0x7fff}
	f32  = &format{bits: 32, fraction: 23, least: -126, top: 0x7f7fffff, inf: 0x7f800000, nan: 0x7fffffff}
	tf32 = &format{bits: 32, fraction: 10, least: -126, top: 0x3fbff, inf: 0x3fc00, nan: 0x7fffffff, padding: 13}
	e4m3 = &format{bits: 8, fraction: 3, least: -6, top: 0x7e, inf: 0x7f, nan: 0x7f}
	e5m2 = &format{bits: 8, fraction: 2, least: -14, top: 0x7b, inf: 0x7c, nan: 0x7f}
	f64  = &format{bits: 64, fraction: 52, least: -1022, top: 0x7fefffffffffffff,
		inf: 0x7ff0000000000000, nan: 0x7fffffffffffffff}
)

// formats are the types of instructions.
var formats = map[string]*format{
	"f16": f16, "bf16": bf16, "f32": f32, "tf32": tf32, "f64": f64, "e4m3": e4m3, "e5m2": e5m2,
}

// mask has the bits of a number.
func (f *format) mask() uint64 { return ^uint64(0) >> (64 - f.bits) }

// sign is the bit of it.
func (f *format) sign() uint64 { return 1 << (f.bits - 1) }

// decode gives the value of a number's bits.
func (f *format) decode(b uint64) float64 {
	switch f {
	case f64:
		return math.Float64frombits(b)
	case f32, tf32:
		return float64(math.Float32frombits(uint32(b)))
	case bf16:
		return float64(math.Float32frombits(uint32(b) << 16))
	}
	magnitude := b & (f.sign() - 1)
	negative := b & f.sign() << (64 - f.bits)
	switch exponent := int(magnitude >> f.fraction); {
	case magnitude > f.top && (magnitude != f.inf || f.inf == f.nan):
		return math.NaN()
	case magnitude > f.top:
		return math.Float64frombits(0x7ff<<52 | negative)
	case exponent == 0:
		tiny := float64(magnitude) * power(f.least-f.fraction)
		return math.Float64frombits(math.Float64bits(tiny) | negative)
	default:
		fraction := magnitude & (1<<f.fraction - 1) << (52 - f.fraction)
		return math.Float64frombits(uint64(exponent-1+f.least+1023)<<52 | fraction | negative)
	}
}

// power is 2^e for e of a normal f64.
func power(e int) float64 { return math.Float64frombits(uint64(e+1023) << 52) }

// encode rounds a value to a format, f64 excepted.
func (f *format) encode(x float64, mode rounding) uint64 {
	if f == f32 && mode == toNearest {
		return bits32(float32(x))
	}
	b := math.Float64bits(x)
	if x != x {
		return f.nan
	}
	negative := b >> 63 << (f.bits - 1)
	exponent := int(b>>52&0x7ff) - 1023
	var code uint64
	switch {
	case math.IsInf(x, 0):
		return f.inf<<f.padding | negative
	case exponent > 200: // beyond every format here: as what lies just outside
		code = f.top + 1
	case mode == toNearest && exponent >= f.least: // the bits of the f64, shortened
		drop := 52 - f.fraction
		b += 1<<(drop-1) - 1 + b>>drop&1
		code = b<<1>>1>>drop - uint64(f.least+1022)<<f.fraction
	default:
		// The units of a number in [2^e, 2^(e+1)) are 2^(e-fraction), and below the normal
		// numbers as of the smallest of them. The code of the units' number runs on from one
		// exponent to the next.
		exponent = max(exponent, f.least)
		units := math.Abs(mode.integral(x * power(f.fraction-exponent)))
		code = uint64(exponent-f.least)<<f.fraction + uint64(units)
	}
	if code > f.top {
		code = f.inf
		inward := mode == toMinus && negative == 0 || mode == toPlus && negative != 0
		if mode == toZero || inward {
			code = f.top
		}
	}
	return code<<f.padding | negative
}

// bits32 is the bits of an f32; NaNs are canonical, as of all f32 instructions (section
// 9.7.3).
func bits32(x float32) uint64 {
	if x != x {
		return 0x7fffffff
	}
	return uint64(math.Float32bits(x))
}

// value32 is the f32 that a register holds.
func value32(b uint64) float32 { return math.Float32frombits(uint32(b)) }

// odd rounds a sum of s and a rest too small for it to odd: where it is not exact, to the
// neighbour whose last bit is one. Rounding that to a format with two bits less, in any
// mode, gives what rounding the sum itself does (Boldo and Melquiond, "Emulation of FMA
// and correctly rounded sums: proved algorithms using rounding to odd", 2008).
func odd(s, rest float64) float64 {
	b := math.Float64bits(s)
	if rest == 0 || rest != rest || s-s != 0 || b&1 == 1 {
		return s
	}
	if (rest > 0) == (s > 0) {
		return math.Float64frombits(b + 1)
	}
	return math.Float64frombits(b - 1)
}

// oddSum is x+y rounded to odd. The rest of a sum is exact (Knuth, TAOCP 2, 4.2.2).
func oddSum(x, y float64) float64 {
	s := x + y
	v := s - x
	return odd(s, (x-(s-v))+(y-v))
}

// oddQuotient is x/y rounded to odd, for x and y of a narrower format.
func oddQuotient(x, y float64) float64 {
	q := x / y
	rest := math.FMA(-q, y, x)
	if math.Signbit(y) {
		rest = -rest
	}
	return odd(q, rest)
}

// oddRoot is the square root of x rounded to odd, for x of a narrower format.
func oddRoot(x float64) float64 {
	s := math.Sqrt(x)
	return odd(s, math.FMA(-s, s, x))
}
