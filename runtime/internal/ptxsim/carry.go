package ptxsim

import "math/bits"

// carryFamily is addition with the carry flag that every lane has (section 9.7.2): add.cc,
// addc{.cc}, sub.cc, subc{.cc}, mad{.lo,.hi}.cc, madc{.lo,.hi}{.cc}. Of a subtraction the
// flag is the borrow.
func carryFamily(b *builder, s *statement) exec {
	width := map[string]int{"u32": 32, "s32": 32, "b32": 32, "u64": 64, "s64": 64, "b64": 64}[s.last()]
	product := s.Op == "mad" || s.Op == "madc"
	subtract := s.Op == "sub" || s.Op == "subc"
	reads := s.Op == "addc" || s.Op == "subc" || s.Op == "madc"
	n := 3
	if product {
		n = 4
	}
	if width == 0 || len(s.Args) != n {
		return nil
	}
	writes, upper := false, false
	for _, m := range s.Mods[:len(s.Mods)-1] {
		switch {
		case m == "cc":
			writes = true
		case product && m == "hi":
			upper = true
		case !product || m != "lo":
			return nil
		}
	}
	factor := factorOf(s.last(), upper)
	var r [4]int
	for i, o := range s.Args {
		r[i] = b.use(o)
	}
	return func(w *warp, mask uint32) {
		for m := mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			x, y, in := w.regs[r[1]][lane], w.regs[r[2]][lane], uint64(0)
			if product {
				x, y = factor(x, y), w.regs[r[3]][lane]
			}
			if reads {
				in = uint64(w.carry >> lane & 1)
			}
			sum, out := addition(x, y, in, width, subtract)
			w.regs[r[0]][lane] = sum
			if writes {
				w.carry = w.carry&^(1<<lane) | uint32(out)<<lane
			}
		}
	}
}

// factorOf is the product whose half is added.
func factorOf(typ string, upper bool) func(x, y uint64) uint64 {
	if !upper {
		return func(x, y uint64) uint64 { return x * y }
	}
	switch typ {
	case "u32", "b32":
		return func(x, y uint64) uint64 { return high(uint32(x), uint32(y)) }
	case "s32":
		return func(x, y uint64) uint64 { return high(int32(x), int32(y)) }
	case "s64":
		return func(x, y uint64) uint64 { return high(int64(x), int64(y)) }
	}
	return func(x, y uint64) uint64 { return high(x, y) }
}

// addition adds or subtracts numbers of 32 or 64 bits, with the carry or borrow in and out.
func addition(x, y, in uint64, width int, subtract bool) (sum, out uint64) {
	up := 64 - width // so that the 64-bit carry is theirs
	x, y, in = x<<up, y<<up, in<<up
	if subtract {
		low, borrow := bits.Sub64(x, y, 0)
		low, again := bits.Sub64(low, in, 0)
		return low >> up, borrow | again
	}
	low, carry := bits.Add64(x, y, 0)
	low, again := bits.Add64(low, in, 0)
	return low >> up, carry | again
}
