package ptxsim

import (
	"math/bits"
	"strings"
)

// logicFamilies work on bits.
var logicFamilies = map[string]family{
	"and": bitFamily, "or": bitFamily, "xor": bitFamily, "not": bitFamily, "cnot": bitFamily,
	"shl": bitFamily, "shr": bitFamily, "shf": bitFamily, "bfe": bitFamily, "bfi": bitFamily,
	"bfind": bitFamily, "brev": bitFamily, "clz": bitFamily, "popc": bitFamily, "prmt": bitFamily,
	"fns": bitFamily, "szext": bitFamily, "bmsk": bitFamily, "dp4a": dotFamily, "dp2a": dotFamily,
	"lop3": lop3Family,
}

func bitFamily(b *builder, s *statement) exec {
	typ, how := s.last(), s.Mods[:max(len(s.Mods)-1, 0)]
	if s.Op == "prmt" && len(s.Mods) == 2 { // its mode comes last
		typ, how = s.Mods[0], s.Mods[1:]
	}
	width := bitWidth[typ]
	if width == 0 {
		return nil
	}
	if len(how) == 0 {
		if f := bitLoop(s.Op, ^uint64(0)>>(64-width), typ); f != nil {
			return b.apply(s, f)
		}
	}
	op := strings.Join(append([]string{s.Op}, how...), ".")
	return b.apply(s, bitOperation(op, width, typ[0] == 's'))
}

// bitWidth is the types of instructions on bits.
var bitWidth = map[string]int{
	"pred": 1, "b16": 16, "b32": 32, "b64": 64,
	"u16": 16, "u32": 32, "u64": 64, "s16": 16, "s32": 32, "s64": 64,
}

// bitLoop is the operations that kernels are made of, as loops. A shift by the width or
// more gives what one by the width does (section 9.7.8.8), as in Go.
func bitLoop(op string, keep uint64, typ string) operation {
	switch op {
	case "and":
		return whole2(func(d, a, b *lanes) {
			for i := range d {
				d[i] = a[i] & b[i] & keep
			}
		})
	case "or":
		return whole2(func(d, a, b *lanes) {
			for i := range d {
				d[i] = (a[i] | b[i]) & keep
			}
		})
	case "xor":
		return whole2(func(d, a, b *lanes) {
			for i := range d {
				d[i] = (a[i] ^ b[i]) & keep
			}
		})
	case "not":
		return whole1(func(d, a *lanes) {
			for i := range d {
				d[i] = ^a[i] & keep
			}
		})
	case "shl":
		return whole2(func(d, a, b *lanes) {
			for i := range d {
				d[i] = a[i] << uint32(b[i]) & keep
			}
		})
	case "shr":
		return shiftRight(typ, keep)
	}
	return nil
}

func shiftRight(typ string, keep uint64) operation {
	switch typ {
	case "s16":
		return arithmeticShift[int16]()
	case "s32":
		return arithmeticShift[int32]()
	case "s64":
		return arithmeticShift[int64]()
	}
	return whole2(func(d, a, b *lanes) {
		for i := range d {
			d[i] = a[i] & keep >> uint32(b[i])
		}
	})
}

func arithmeticShift[T integer]() operation {
	keep := ones[T]()
	return whole2(func(d, a, b *lanes) {
		for i := range d {
			d[i] = uint64(T(a[i])>>uint32(b[i])) & keep
		}
	})
}

// bitOperation is the rest, by opcode and mode.
func bitOperation(op string, width int, signed bool) operation {
	keep := ^uint64(0) >> (64 - width)
	switch op {
	case "cnot":
		return single1(func(a uint64) uint64 { return truth(a&keep == 0) })
	case "brev":
		return single1(func(a uint64) uint64 { return bits.Reverse64(a) >> (64 - width) })
	case "clz":
		return single1(func(a uint64) uint64 { return uint64(bits.LeadingZeros64(a&keep) - (64 - width)) })
	case "popc":
		return single1(func(a uint64) uint64 { return uint64(bits.OnesCount64(a & keep)) })
	case "bfind", "bfind.shiftamt":
		shift := op != "bfind"
		return single1(func(a uint64) uint64 { return leading(a, width, signed, shift) })
	case "bfe":
		return single3(func(a, b, c uint64) uint64 { return extract(a, b, c, width, signed) })
	case "bfi":
		return single4(func(a, b, c, d uint64) uint64 { return insert(a, b, c, d, width) })
	case "fns":
		return single3(nthSet)
	}
	if f := funnel(op); f != nil {
		return f
	}
	if f := permutation(op); f != nil {
		return f
	}
	return maskOperation(op, signed)
}

func truth(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// leading is bfind (section 9.7.1.20): the position of the highest bit that is no sign
// bit, all ones where there is none; or the shift that brings it to the top.
func leading(a uint64, width int, signed, shift bool) uint64 {
	a <<= 64 - width
	if signed && int64(a) < 0 {
		a = ^a
	}
	a >>= 64 - width
	if a == 0 {
		return 0xffffffff
	}
	at := bits.Len64(a) - 1
	if shift {
		at = width - 1 - at
	}
	return uint64(at)
}

// extract is bfe (section 9.7.1.23): position and length are bytes; what lies beyond the
// register is the sign.
func extract(a, b, c uint64, width int, signed bool) uint64 {
	at, n := b&0xff, c&0xff
	keep := ^uint64(0) >> (64 - width)
	if n == 0 {
		return 0
	}
	if !signed {
		return a & keep >> at & (1<<n - 1)
	}
	wide := int64(a<<(64-width)) >> (64 - width)
	up := 64 - min(n, 64)
	return uint64(wide>>at<<up>>up) & keep
}

// insert is bfi (section 9.7.1.24).
func insert(a, b, c, d uint64, width int) uint64 {
	at, n := c&0xff, d&0xff
	field := uint64(1<<n-1) << at
	return (a<<at&field | b&^field) & (^uint64(0) >> (64 - width))
}

// nthSet is fns (section 9.7.1.21): the position of the n-th set bit from a base, below it
// for negative n; all ones where there is none.
func nthSet(mask, base, offset uint64) uint64 {
	at, n := int(uint32(base)), int(int32(offset))
	step := 1
	switch {
	case n == 0:
		if at < 32 && mask>>at&1 == 1 {
			return uint64(at)
		}
		return 0xffffffff
	case n < 0:
		step, n = -1, -n
	}
	for ; at >= 0 && at < 32; at += step {
		if mask>>at&1 == 1 {
			if n--; n == 0 {
				return uint64(at)
			}
		}
	}
	return 0xffffffff
}

// funnel is shf (section 9.7.8.7): a shift of the 64 bits b, a.
func funnel(op string) operation {
	both := func(a, b uint64) uint64 { return b<<32 | a&0xffffffff }
	switch op {
	case "shf.l.clamp":
		return single3(func(a, b, c uint64) uint64 { return both(a, b) << min(uint32(c), 32) >> 32 })
	case "shf.l.wrap":
		return single3(func(a, b, c uint64) uint64 { return both(a, b) << (c & 31) >> 32 })
	case "shf.r.clamp":
		return single3(func(a, b, c uint64) uint64 { return both(a, b) >> min(uint32(c), 32) & 0xffffffff })
	case "shf.r.wrap":
		return single3(func(a, b, c uint64) uint64 { return both(a, b) >> (c & 31) & 0xffffffff })
	}
	return nil
}

// permutation is prmt (section 9.7.9.7): four bytes out of eight.
func permutation(op string) operation {
	pick := func(a, b, selectors uint64) uint64 {
		from, out := b<<32|a&0xffffffff, uint64(0)
		for i := range 4 {
			s := selectors >> (4 * i)
			v := from >> (8 * (s & 7)) & 0xff
			if s&8 != 0 { // its sign, eight times
				v = uint64(uint8(int8(v) >> 7))
			}
			out |= v << (8 * i)
		}
		return out
	}
	modes := map[string][4]uint64{ // the selectors by the lowest bits of c
		"prmt.f4e":  {0x3210, 0x4321, 0x5432, 0x6543},
		"prmt.b4e":  {0x5670, 0x6701, 0x7012, 0x0123},
		"prmt.rc8":  {0x0000, 0x1111, 0x2222, 0x3333},
		"prmt.ecl":  {0x3210, 0x3211, 0x3222, 0x3333},
		"prmt.ecr":  {0x0000, 0x1110, 0x2210, 0x3210},
		"prmt.rc16": {0x1010, 0x3232, 0x1010, 0x3232},
	}
	if op == "prmt" {
		return single3(pick)
	}
	selectors, ok := modes[op]
	if !ok {
		return nil
	}
	return single3(func(a, b, c uint64) uint64 { return pick(a, b, selectors[c&3]) })
}

// maskOperation is szext and bmsk (sections 9.7.1.22 and 9.7.1.25): sign or zero extension
// from a width, and a mask of a width at a position.
func maskOperation(op string, signed bool) operation {
	wrap := strings.HasSuffix(op, ".wrap")
	amount := func(n uint64) uint64 {
		if wrap {
			return n & 31
		}
		return min(uint64(uint32(n)), 32)
	}
	switch op {
	case "szext.wrap", "szext.clamp":
		return single2(func(a, n uint64) uint64 {
			if n = amount(n); n == 0 {
				return 0
			}
			if signed {
				return uint64(uint32(int32(a<<(32-n)) >> (32 - n)))
			}
			return a & (1<<n - 1)
		})
	case "bmsk.wrap", "bmsk.clamp":
		return single2(func(at, n uint64) uint64 { return (1<<amount(n) - 1) << amount(at) & 0xffffffff })
	}
	return nil
}

// dotFamily: dp4a.atype.btype d, a, b, c and dp2a.{lo,hi}.atype.btype d, a, b, c (sections
// 9.7.1.26 and 9.7.1.27): c plus products of bytes, or of halfwords of a with bytes of b.
func dotFamily(b *builder, s *statement) exec {
	mods := s.Mods
	n, from, wide := 4, 0, 8 // products, the first byte of b, bits of an element of a
	if s.Op == "dp2a" {
		if len(mods) == 0 || mods[0] != "lo" && mods[0] != "hi" {
			return nil
		}
		n, wide = 2, 16
		if mods[0] == "hi" {
			from = 2
		}
		mods = mods[1:]
	}
	if len(mods) != 2 || !word(mods[0]) || !word(mods[1]) {
		return nil
	}
	signs := [2]bool{mods[0] == "s32", mods[1] == "s32"}
	return b.apply(s, single3(func(x, y, sum uint64) uint64 {
		for i := range n {
			factor := extract(y, uint64((from+i)*8), 8, 64, signs[1])
			sum += factor * extract(x, uint64(i*wide), uint64(wide), 64, signs[0])
		}
		return uint64(uint32(sum))
	}))
}

func word(typ string) bool { return typ == "s32" || typ == "u32" }

// lop3Family: lop3.b32 d, a, b, c, table, and lop3.{or,and}.b32 d|p, a, b, c, table, q,
// where p is that operation of q and of d being other than zero (section 9.7.8.6).
func lop3Family(b *builder, s *statement) exec {
	if len(s.Args) < 5 || s.last() != "b32" || s.Args[4].kind != immOperand {
		return nil
	}
	table := s.Args[4].bits
	plain := *s
	plain.Args = append([]operand(nil), s.Args[:4]...)
	plain.Args[0].pair = nil
	f := b.apply(&plain, single3(func(x, y, z uint64) uint64 {
		out := uint64(0)
		for i := range 8 {
			if table>>i&1 == 1 {
				out |= inverted(x, i&4 == 0) & inverted(y, i&2 == 0) & inverted(z, i&1 == 0)
			}
		}
		return out & 0xffffffff
	}))
	if len(s.Mods) == 1 && len(s.Args) == 5 && s.Args[0].pair == nil {
		return f
	}
	join := boolean(s.Mods[0])
	if f == nil || join == nil || len(s.Mods) != 2 || len(s.Args) != 6 || s.Args[0].pair == nil {
		return nil
	}
	d, p, q, flip := s.Args[0].reg, s.Args[0].pair.reg, b.use(s.Args[5]), truth(s.Args[5].negate)
	return func(w *warp, mask uint32) {
		f(w, mask)
		for m := mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			w.regs[p][lane] = join(truth(w.regs[d][lane] != 0), w.regs[q][lane]^flip) & 1
		}
	}
}

func inverted(x uint64, invert bool) uint64 {
	if invert {
		return ^x
	}
	return x
}
