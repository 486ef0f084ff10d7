package ptxsim

import (
	"math/bits"
	"slices"
)

// moveFamilies move bits between registers and turn addresses into others.
var moveFamilies = map[string]family{
	"mov":  moveFamily,
	"cvta": addressFamily,
}

// moveFamily: mov.type d, a; mov.b32 d, {a, b}; mov.b32 {a, b}, d.
func moveFamily(b *builder, s *statement) exec {
	if len(s.Args) != 2 {
		return nil
	}
	d, a := s.Args[0], s.Args[1]
	switch {
	case d.kind == vecOperand:
		return unpack(b, d.elems, b.use(a), typeSize(s.last())*8/len(d.elems))
	case a.kind == vecOperand:
		return pack(b, b.use(d), a.elems, typeSize(s.last())*8/len(a.elems))
	}
	to, from := b.use(d), b.value(a, s.last())
	return func(w *warp, mask uint32) {
		if mask == 1<<warpSize-1 {
			w.regs[to] = w.regs[from]
			return
		}
		for m := mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			w.regs[to][lane] = w.regs[from][lane]
		}
	}
}

// pack joins registers of so many bits, the first lowest.
func pack(b *builder, to int, parts []operand, width int) exec {
	var from []int
	for _, p := range parts {
		from = append(from, b.use(p))
	}
	return func(w *warp, mask uint32) {
		for m := mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			v := uint64(0)
			for i, r := range from {
				v |= w.regs[r][lane] & (1<<width - 1) << (i * width)
			}
			w.regs[to][lane] = v
		}
	}
}

// unpack takes a register apart.
func unpack(b *builder, parts []operand, from, width int) exec {
	var to []int
	for _, p := range parts {
		if p.kind == sinkOperand {
			to = append(to, -1)
		} else {
			to = append(to, b.use(p))
		}
	}
	return func(w *warp, mask uint32) {
		for m := mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			v := w.regs[from][lane]
			for i, r := range to {
				if r >= 0 {
					w.regs[r][lane] = v >> (i * width) & (1<<width - 1)
				}
			}
		}
	}
}

// addressFamily: cvta{.to}.space.u64 d, a: between a state space's addresses and generic
// ones.
func addressFamily(b *builder, s *statement) exec {
	if len(s.Args) != 2 {
		return nil
	}
	window := uint64(0)
	switch spaceOf(s) {
	case shared:
		window = sharedWindow
	case local:
		window = localWindow
	case param:
		window = paramWindow
	}
	if slices.Contains(s.Mods, "to") {
		window = -window
	}
	to, from := b.use(s.Args[0]), b.use(s.Args[1])
	return func(w *warp, mask uint32) {
		for m := mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			w.regs[to][lane] = w.regs[from][lane] + window
		}
	}
}
