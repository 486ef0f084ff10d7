package num

import (
	"math"
	"math/bits"
)

// minifloat describes a binary float of at most 16 bits: sign, exponent,
// mantissa, with IEEE subnormals. A code is its bits without the sign.
type minifloat struct {
	mant     int    // explicit fraction bits
	bias     int    // exponent bias
	sign     uint16 // sign bit
	max      uint16 // code of the largest finite value
	overflow uint16 // code of numbers that are larger
	inf      uint16 // code of infinity; 0 where there is none
	quiet    uint16 // code bits that make a NaN
	payload  uint16 // code bits that a NaN keeps from its source, sign with them
}

func f16() minifloat {
	return minifloat{mant: 10, bias: 15, sign: 1 << 15, max: 0x7bff, overflow: 0x7c00, inf: 0x7c00,
		quiet: 0x7e00, payload: 0x81ff}
}

func bf16() minifloat {
	return minifloat{mant: 7, bias: 127, sign: 1 << 15, max: 0x7f7f, overflow: 0x7f80, inf: 0x7f80,
		quiet: 0x7fc0, payload: 0x803f}
}

func f8e4m3() minifloat {
	return minifloat{mant: 3, bias: 7, sign: 1 << 7, max: 0x7e, overflow: 0x7e, quiet: 0x7f}
}

func f8e5m2() minifloat {
	return minifloat{mant: 2, bias: 15, sign: 1 << 7, max: 0x7b, overflow: 0x7b, inf: 0x7c, quiet: 0x7f}
}

// encode64 rounds v to the format. Exponent and fraction are treated as one
// integer, so that a carry out of the fraction moves to the next exponent.
func (f *minifloat) encode64(v float64) uint16 {
	b := math.Float64bits(v)
	sign := uint16(0)
	if b>>63 != 0 {
		sign = f.sign
	}
	b &^= 1 << 63
	shift := 52 - f.mant
	if v != v {
		return (sign|uint16(b>>shift)&^f.sign)&f.payload | f.quiet
	}
	if b < uint64(1023+1-f.bias)<<52 {
		// Below the normals the spacing is constant: adding a number whose last
		// bit weighs as much makes the adder round, and leaves the code behind.
		magic := uint64(1023+1-f.bias+shift) << 52
		sum := math.Float64frombits(b) + math.Float64frombits(magic)
		return sign | uint16(math.Float64bits(sum)-magic)
	}
	code := (b+(1<<(shift-1)-1)+b>>shift&1)>>shift - uint64(1023-f.bias)<<f.mant
	if code > uint64(f.max) {
		return sign | f.overflow
	}
	return sign | uint16(code)
}

// encode32 is encode64 for float32, with the constants of the format at hand: the
// writers of files and the CPU engine run it once an element.
func (f *encoder32) encode(v float32) uint16 {
	b := math.Float32bits(v)
	sign := uint16(b>>f.signShift) & f.sign
	b &= 1<<31 - 1
	switch {
	case b > 0x7f800000:
		return (sign|uint16(b>>(f.shift&31))&^f.sign)&f.payload | f.quiet
	case b < f.minNormal:
		sum := math.Float32frombits(b) + math.Float32frombits(f.magic)
		return sign | uint16(math.Float32bits(sum)-f.magic)
	}
	code := (b + f.bias + b>>(f.shift&31)&1) >> (f.shift & 31)
	if code > f.max {
		return sign | f.overflow
	}
	return sign | uint16(code)
}

// encoder32 is what encode needs of a minifloat, computed once.
type encoder32 struct {
	shift, signShift               uint32
	minNormal, magic, bias, max    uint32
	sign, overflow, quiet, payload uint16
}

func newEncoder32(f minifloat) encoder32 {
	shift := uint32(23 - f.mant)
	return encoder32{
		shift: shift, signShift: uint32(31 - bits.Len16(f.sign) + 1),
		minNormal: uint32(127+1-f.bias) << 23,
		magic:     uint32(127+1-f.bias+int(shift)) << 23,
		bias:      1<<(shift-1) - 1 - uint32(127-f.bias)<<23, // rounds and moves the exponent
		max:       uint32(f.max), sign: f.sign, overflow: f.overflow, quiet: f.quiet, payload: f.payload,
	}
}

// decode returns the value of bits b, exactly.
func (f *minifloat) decode(b uint16) float32 {
	code := b &^ f.sign
	v := math.Ldexp(float64(code), 1-f.bias-f.mant)
	if e := int(code >> f.mant); e > 0 {
		frac := float64(code&(1<<f.mant-1)) + float64(int(1)<<f.mant)
		v = math.Ldexp(frac, e-f.bias-f.mant)
	}
	switch {
	case code > f.max && code == f.inf:
		v = math.Inf(1)
	case code > f.max:
		v = math.NaN()
	}
	if b&f.sign != 0 {
		v = math.Copysign(v, -1)
	}
	return float32(v)
}

// The formats and decoding tables; never written after the package is loaded.
var (
	fmtF16, fmtBF16  = f16(), bf16()
	fmtE4M3, fmtE5M2 = f8e4m3(), f8e5m2()
	encF16           = newEncoder32(f16())
	encE4M3, encE5M2 = newEncoder32(f8e4m3()), newEncoder32(f8e5m2())
	tabE4M3, tabE5M2 = f8Table(f8e4m3()), f8Table(f8e5m2())
)

func f8Table(f minifloat) (tab [256]float32) {
	for i := range tab {
		tab[i] = f.decode(uint16(i))
	}
	return tab
}

// F16Bits returns the f16 nearest to v.
func F16Bits(v float32) uint16 {
	if b := math.Float32bits(v); f16Normal(b) {
		return f16Round(b)
	}
	return encF16.encode(v)
}

// f16Normal reports whether the float32 with bits b is, as f16, normal and finite:
// then f16Round does. Two functions, so that both are small enough to be inlined.
func f16Normal(b uint32) bool {
	const lo, hi = 0x38800000, 0x477ff000 // from the smallest normal up to overflow
	return b&^(1<<31)-lo < hi-lo
}

func f16Round(b uint32) uint16 {
	a := b &^ (1 << 31)
	return uint16(b>>16)&0x8000 | uint16((a-(127-15)<<23+0xfff+a>>13&1)>>13)
}

// F16Value returns the value of an f16.
func F16Value(bits uint16) float32 {
	sign, code := uint32(bits&0x8000)<<16, uint32(bits&0x7fff)
	if code-0x400 < 0x7800 {
		return math.Float32frombits(sign | (code<<13 + (127-15)<<23))
	}
	return f16Rare(sign, code)
}

// f16Rare is F16Value of zero, subnormals, infinities and NaN.
func f16Rare(sign, code uint32) float32 {
	if code >= 0x7c00 {
		return math.Float32frombits(sign | 0x7f800000 | code<<13)
	}
	return math.Float32frombits(sign | math.Float32bits(float32(code)*0x1p-24))
}

// BF16Bits returns the bf16 nearest to v.
func BF16Bits(v float32) uint16 {
	b := math.Float32bits(v)
	if b&0x7fffffff > 0x7f800000 {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// BF16Value returns the value of a bf16.
func BF16Value(bits uint16) float32 { return math.Float32frombits(uint32(bits) << 16) }

// F8E4M3Bits returns the f8e4m3 nearest to v, saturated.
func F8E4M3Bits(v float32) uint8 { return uint8(encE4M3.encode(v)) }

// F8E4M3Value returns the value of an f8e4m3.
func F8E4M3Value(bits uint8) float32 { return tabE4M3[bits] }

// F8E5M2Bits returns the f8e5m2 nearest to v, saturated.
func F8E5M2Bits(v float32) uint8 { return uint8(encE5M2.encode(v)) }

// F8E5M2Value returns the value of an f8e5m2.
func F8E5M2Value(bits uint8) float32 { return tabE5M2[bits] }
