package ptxsim

import (
	"math"
	"slices"
	"strings"
)

// convertFamilies turn types into each other.
var convertFamilies = map[string]family{"cvt": convertFamily}

// A conversion is what the modifiers of cvt say.
type conversion struct {
	from, to    string
	mode        rounding
	integral    bool // rounds to an integer: rni
	written     bool // the rounding is
	ftz, sat    bool
	finite      bool // satfinite
	relu        bool
	destination int // bits of the register that gets the result
}

// conversionOf reads a cvt; nil where a modifier is unknown.
func conversionOf(s *statement) *conversion {
	n := len(s.Mods)
	if n < 2 || len(s.Args) < 2 {
		return nil
	}
	c := &conversion{to: s.Mods[n-2], from: s.Mods[n-1], destination: 32}
	if class := s.Args[0].class; bitWidth[class] != 0 || formats[class] != nil {
		c.destination = 8 * typeSize(class)
	}
	flags := map[string]*bool{"ftz": &c.ftz, "sat": &c.sat, "satfinite": &c.finite, "relu": &c.relu}
	for _, m := range s.Mods[:n-2] {
		mode, rounds := roundings[m]
		switch {
		case flags[m] != nil:
			*flags[m] = true
		case rounds:
			c.mode, c.integral, c.written = mode, strings.HasSuffix(m, "i"), true
		default:
			return nil
		}
	}
	return c
}

// integers are the bits and signs of integer types.
var integers = map[string]struct {
	bits   int
	signed bool
}{
	"u8": {8, false}, "u16": {16, false}, "u32": {32, false}, "u64": {64, false},
	"s8": {8, true}, "s16": {16, true}, "s32": {32, true}, "s64": {64, true},
}

func convertFamily(b *builder, s *statement) exec {
	if s.has("pack") {
		return b.apply(s, packIntegers(s))
	}
	c := conversionOf(s)
	if c == nil {
		return nil
	}
	_, fromInteger := integers[c.from]
	_, toInteger := integers[c.to]
	from, to := formats[c.from], formats[c.to]
	switch {
	case len(s.Args) == 3:
		return b.apply(s, c.joined())
	case fromInteger && toInteger:
		return b.apply(s, c.betweenIntegers())
	case fromInteger && to != nil:
		return b.apply(s, c.toFloat())
	case from != nil && toInteger:
		return b.apply(s, c.toInteger())
	case from != nil && to != nil:
		return b.apply(s, c.betweenFloats())
	}
	return b.apply(s, c.apart())
}

// signExtended is the value of a type's bits.
func signExtended(a uint64, width int) int64 { return int64(a<<(64-width)) >> (64 - width) }

// widened is a result of an integer type in the register: extended to its width by the
// type's sign (section 9.4.1).
func (c *conversion) widened(v uint64) uint64 {
	to := integers[c.to]
	v &= ^uint64(0) >> (64 - to.bits)
	if to.signed && to.bits < c.destination {
		v = uint64(signExtended(v, to.bits)) & (^uint64(0) >> (64 - c.destination))
	}
	return v
}

// betweenIntegers extends, truncates or, with .sat, clamps.
func (c *conversion) betweenIntegers() operation {
	from, to := integers[c.from], integers[c.to]
	if c.written || c.relu || c.finite || c.ftz {
		return nil
	}
	keep := ^uint64(0) >> (64 - from.bits)
	switch {
	case c.sat:
		return single1(func(a uint64) uint64 {
			if v := signExtended(a, from.bits); from.signed && v < 0 {
				return c.widened(clampSigned(v, to.bits, to.signed))
			}
			return c.widened(min(a&keep, largest(to.bits, to.signed)))
		})
	case !from.signed && !to.signed || from.bits >= to.bits && to.bits >= c.destination:
		keep &= ^uint64(0) >> (64 - to.bits)
		return whole1(func(d, a *lanes) {
			for i := range d {
				d[i] = a[i] & keep
			}
		})
	case from.signed:
		up := 64 - from.bits
		return whole1(func(d, a *lanes) {
			for i := range d {
				d[i] = c.widened(uint64(int64(a[i]<<up) >> up))
			}
		})
	}
	return single1(func(a uint64) uint64 { return c.widened(a & keep) })
}

// largest is the greatest value of a type.
func largest(width int, signed bool) uint64 {
	if signed {
		width--
	}
	return ^uint64(0) >> (64 - width)
}

// clampSigned clamps a negative value.
func clampSigned(v int64, width int, signed bool) uint64 {
	if !signed {
		return 0
	}
	return uint64(max(v, -1<<(width-1)))
}

// toFloat rounds an integer. Its halves are exact in f64, and so is their sum but for its
// rounding to odd.
func (c *conversion) toFloat() operation {
	from, to := integers[c.from], formats[c.to]
	if !c.written || c.integral || c.relu || c.finite || to.bits < 16 {
		return nil
	}
	q := &floatForm{format: to, mode: c.mode, ftz: c.ftz, sat: c.sat}
	const half = 1 << 32
	return single1(func(a uint64) uint64 {
		upper, lower := float64(a>>32)*half, float64(uint32(a))
		switch {
		case from.signed:
			v := signExtended(a, from.bits)
			upper, lower = float64(v>>32)*half, float64(uint32(v))
		case from.bits < 64:
			upper, lower = 0, float64(a&(1<<from.bits-1))
		}
		if to == f64 {
			return q.fused(upper, 1, lower)
		}
		return q.out(oddSum(upper, lower))
	})
}

// toInteger rounds a float to an integer and clamps it to the type. A NaN is 0, but of f64
// and to 64 bits 1 << (bits-1) (section 9.7.9.21).
func (c *conversion) toInteger() operation {
	from, to := formats[c.from], integers[c.to]
	if !c.integral || c.relu || c.finite || from.bits < 16 {
		return nil
	}
	q := &floatForm{format: from, ftz: c.ftz && from == f32}
	nan := uint64(0)
	if from == f64 || to.bits == 64 {
		nan = 1 << (to.bits - 1)
	}
	top := largest(to.bits, to.signed)
	limit := math.Ldexp(1, to.bits)
	bottom := 0.0
	if to.signed {
		limit /= 2
		bottom = -limit
	}
	return single1(func(a uint64) uint64 {
		x := q.in(a)
		if x != x {
			return c.widened(nan)
		}
		switch x = c.mode.integral(x); {
		case x >= limit:
			return c.widened(top)
		case x <= bottom:
			return c.widened(uint64(int64(bottom)))
		case x < 0:
			return c.widened(uint64(int64(x)))
		}
		return c.widened(uint64(x))
	})
}

// betweenFloats rounds where the result has fewer bits, or to an integer.
func (c *conversion) betweenFloats() operation {
	from, to := formats[c.from], formats[c.to]
	switch {
	case from.bits < 16 || to.bits < 16, c.from == c.to && c.written && !c.integral:
		return nil
	case c.finite && to.bits >= from.bits && to != tf32:
		return nil
	}
	if f := c.loop(); f != nil {
		return f
	}
	source := &floatForm{format: from, ftz: c.ftz && from == f32}
	q := &floatForm{format: to, mode: c.mode, sat: c.sat, relu: c.relu, ftz: c.ftz && to == f32}
	return single1(func(a uint64) uint64 {
		x := source.in(a)
		if c.integral {
			x = c.mode.integral(x)
		}
		if c.finite {
			x = within(x, to)
		}
		return q.out(x)
	})
}

// within brings a value to the finite ones of a format; NaN stays.
func within(x float64, f *format) float64 {
	top := f.decode(f.top << f.padding)
	switch {
	case x > top:
		return top
	case x < -top:
		return -top
	}
	return x
}

// loop is the conversions that kernels are made of, as loops.
func (c *conversion) loop() operation {
	if c.ftz || c.sat || c.relu || c.finite {
		return nil
	}
	switch {
	case c.to == "f32" && c.from == "f16":
		return whole1(func(d, a *lanes) {
			for i := range d {
				d[i] = bits32(float32(f16.decode(a[i])))
			}
		})
	case c.to == "f32" && c.from == "bf16":
		return whole1(func(d, a *lanes) {
			for i := range d {
				d[i] = bits32(value32(a[i] << 16))
			}
		})
	case c.to == "bf16" && c.from == "f32" && c.mode == toNearest:
		return whole1(func(d, a *lanes) {
			for i := range d {
				d[i] = nearestBF16(a[i])
			}
		})
	}
	return nil
}

// nearestBF16 is the upper half of an f32, rounded to nearest.
func nearestBF16(a uint64) uint64 {
	a &= 0xffffffff
	if a&0x7fffffff > 0x7f800000 {
		return bf16.nan
	}
	return (a + 0x7fff + a>>16&1) >> 16
}

// joined: cvt.mode{.relu}{.satfinite}.{f16x2,bf16x2,e4m3x2,e5m2x2}.f32 d, a, b: a is the
// upper.
func (c *conversion) joined() operation {
	typ, packed := strings.CutSuffix(c.to, "x2")
	to := formats[typ]
	if !packed || to == nil || c.from != "f32" || !c.written || c.integral || c.sat || c.ftz {
		return nil
	}
	if to.bits == 8 && !c.finite {
		return nil
	}
	if to == bf16 && c.mode == toNearest && !c.relu && !c.finite {
		return whole2(func(d, a, b *lanes) {
			for i := range d {
				d[i] = nearestBF16(a[i])<<16 | nearestBF16(b[i])
			}
		})
	}
	one := c.narrow(f32, to)
	return single2(func(a, b uint64) uint64 { return one(a)<<to.bits | one(b) })
}

// narrow converts one number, finite where the conversion asks for it.
func (c *conversion) narrow(from, to *format) func(a uint64) uint64 {
	q := &floatForm{format: to, mode: c.mode, relu: c.relu}
	return func(a uint64) uint64 {
		x := from.decode(a)
		if c.finite {
			x = within(x, to)
		}
		return q.out(x)
	}
}

// apart: packed forms with one source: cvt.rn.satfinite{.relu}.{e4m3x2,e5m2x2}.f16x2 and
// cvt.rn{.relu}.f16x2.{e4m3x2,e5m2x2}.
func (c *conversion) apart() operation {
	typ, packed := strings.CutSuffix(c.to, "x2")
	source, both := strings.CutSuffix(c.from, "x2")
	from, to := formats[source], formats[typ]
	if !packed || !both || c.mode != toNearest || c.sat || c.ftz || from == nil || to == nil {
		return nil
	}
	if !(from == f16 && to.bits == 8 && c.finite || from.bits == 8 && to == f16) {
		return nil
	}
	one := c.narrow(from, to)
	return single1(func(a uint64) uint64 { return one(a) | one(a>>from.bits)<<to.bits })
}

// packIntegers: cvt.pack.sat.type.s32 d, a, b{, c}: both clamped, b lowest, and the lower
// bits of c above them where there is room (section 9.7.9.22).
func packIntegers(s *statement) operation {
	types := map[string]struct {
		bits   int
		signed bool
	}{
		"u16": {16, false}, "s16": {16, true}, "u8": {8, false}, "s8": {8, true},
		"u4": {4, false}, "s4": {4, true}, "u2": {2, false}, "s2": {2, true},
	}
	if len(s.Mods) < 4 {
		return nil
	}
	t, ok := types[s.Mods[2]]
	rest := s.Mods[3:]
	if s.Mods[0] != "pack" || s.Mods[1] != "sat" || !ok || rest[0] != "s32" ||
		len(rest) > 1 && !(len(rest) == 2 && rest[1] == "b32") || (t.bits < 16) != slices.Contains(rest, "b32") {
		return nil
	}
	clamp := func(a uint64) uint64 {
		v := int64(int32(a))
		if v < 0 {
			return clampSigned(v, t.bits, t.signed) & (1<<t.bits - 1)
		}
		return min(uint64(v), largest(t.bits, t.signed))
	}
	two := func(a, b uint64) uint64 { return clamp(a)<<t.bits | clamp(b) }
	if t.bits == 16 {
		return single2(two)
	}
	return single3(func(a, b, c uint64) uint64 { return (c<<(2*t.bits) | two(a, b)) & 0xffffffff })
}
