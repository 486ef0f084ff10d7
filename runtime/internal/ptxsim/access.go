package ptxsim

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// An access is the common part of loads, stores and atomics.
type access struct {
	in     space
	elem   int   // bytes
	regs   []int // -1: not kept
	addr   pointer
	signed []uint64 // of signed loads: the bits that each register holds; nil: others
	strong bool     // ordered with accesses of other threads, so it is not in a race with them
}

// vectorOf is how many elements an instruction moves.
func vectorOf(s *statement) int {
	for _, m := range s.Mods {
		if n := vectors[m]; n > 0 {
			return n
		}
	}
	return 1
}

func (b *builder) access(s *statement, addr, data operand) access {
	a := access{in: spaceOf(s), elem: elementTypes[s.element()], addr: b.pointer(addr),
		strong: s.which("volatile", "relaxed", "acquire", "release", "mmio") != ""}
	for _, e := range data.vector() {
		a.regs = append(a.regs, b.into(e))
	}
	if vectorOf(s) != len(a.regs) {
		b.fail("%s with %d registers", s.text(), len(a.regs))
	}
	return a
}

// at is the memory that a lane accesses. Vectors must be at multiples of their whole size.
func (a *access) at(w *warp, lane int) []byte {
	n := a.elem * len(a.regs)
	return w.bytes(lane, a.in, a.addr.at(w, lane), n, n)
}

// A stretch is memory that the lanes of a mask access one after the other, or all at the
// same place: lane l at (l-first)*step. Most accesses are such, and need one look-up.
type stretch struct {
	data        []byte // nil: they are not
	first, step int
}

// stretch is also nil if something is wrong: lanes are then handled one by one, so that the
// error names the lane.
func (a *access) stretch(w *warp, mask uint32) stretch {
	addrs := &w.regs[a.addr.reg]
	n, first := a.elem*len(a.regs), bits.TrailingZeros32(mask)
	base, step := addrs[first], n
	if second := bits.TrailingZeros32(mask & (mask - 1)); second < warpSize && addrs[second] == base {
		step = 0
	}
	for m := mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		if addrs[lane] != base+uint64((lane-first)*step) {
			return stretch{}
		}
	}
	addr := base + a.addr.offset
	if addr%uint64(n) != 0 || actual(a.in, addr) == local {
		return stretch{}
	}
	last := bits.Len32(mask) - 1
	return stretch{w.find(first, a.in, addr, (last-first)*step+n), first, step}
}

// loadFamily: ld{.mods}{.space}{.vec}.type d, [a]{, policy}; ldu.
func loadFamily(b *builder, s *statement) exec {
	if !s.only() || s.element() == "" || !kinds(s.plain(), "da") {
		return nil
	}
	a := b.access(s, s.Args[1], s.Args[0])
	if s.element()[0] == 's' {
		for _, o := range s.Args[0].vector() {
			a.signed = append(a.signed, 1<<(8*max(typeSize(o.class), 4))-1)
		}
	}
	return a.load
}

func (a *access) load(w *warp, mask uint32) {
	if r := w.cta.cluster.races; r != nil {
		r.note(w, mask, a, false)
	}
	if s := a.stretch(w, mask); s.data != nil {
		for i, r := range a.regs {
			if r >= 0 {
				s.gather(&w.regs[r], mask, i*a.elem, a.elem)
			}
		}
	} else {
		for m := mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			from := a.at(w, lane)
			for i, r := range a.regs {
				if r >= 0 {
					w.regs[r][lane] = read(from[i*a.elem:], a.elem)
				}
			}
		}
	}
	if a.signed != nil {
		a.extend(w, mask)
	}
}

// gather reads an element of each lane, at an offset in what the lane accesses.
func (s *stretch) gather(to *lanes, mask uint32, offset, elem int) {
	data := s.data[offset:]
	for m := mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		from := data[(lane-s.first)*s.step:]
		switch elem {
		case 1:
			to[lane&31] = uint64(from[0])
		case 2:
			to[lane&31] = uint64(binary.LittleEndian.Uint16(from))
		case 4:
			to[lane&31] = uint64(binary.LittleEndian.Uint32(from))
		default:
			to[lane&31] = binary.LittleEndian.Uint64(from)
		}
	}
}

// extend gives signed elements the width of their register, at least 32 bits (PTX ISA,
// "Operand Size Exceeding Instruction-Type Size").
func (a *access) extend(w *warp, mask uint32) {
	unused := 64 - 8*a.elem
	for i, r := range a.regs {
		if r < 0 {
			continue
		}
		for m := mask; m != 0; m &= m - 1 {
			v := &w.regs[r][bits.TrailingZeros32(m)]
			*v = uint64(int64(*v<<unused)>>unused) & a.signed[i]
		}
	}
}

// storeFamily: st{.mods}{.space}{.vec}.type [a], b{, policy}.
func storeFamily(b *builder, s *statement) exec {
	if s.has("async") {
		return sendFamily(b, s)
	}
	if !s.only() || s.element() == "" || !kinds(s.plain(), "as") {
		return nil
	}
	a := b.access(s, s.Args[0], s.Args[1])
	if slices.Contains(a.regs, -1) {
		return nil
	}
	return a.store
}

func (a *access) store(w *warp, mask uint32) {
	w.cta.cluster.launch.events++
	if r := w.cta.cluster.races; r != nil {
		r.note(w, mask, a, true)
	}
	if s := a.stretch(w, mask); s.data != nil {
		for i, r := range a.regs {
			s.scatter(&w.regs[r], mask, i*a.elem, a.elem)
		}
		return
	}
	for m := mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		to := a.at(w, lane)
		for i, r := range a.regs {
			write(to[i*a.elem:], a.elem, w.regs[r][lane])
		}
	}
}

// scatter writes an element of each lane; of lanes at the same place the last one wins.
func (s *stretch) scatter(from *lanes, mask uint32, offset, elem int) {
	data := s.data[offset:]
	for m := mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		write(data[(lane-s.first)*s.step:], elem, from[lane&31])
	}
}

// read gives the bits of an element of 1, 2, 4 or 8 bytes.
func read(from []byte, size int) uint64 {
	switch size {
	case 1:
		return uint64(from[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(from))
	case 4:
		return uint64(binary.LittleEndian.Uint32(from))
	}
	return binary.LittleEndian.Uint64(from)
}

// write stores the low bits of a value as an element.
func write(to []byte, size int, v uint64) {
	switch size {
	case 1:
		to[0] = byte(v)
	case 2:
		binary.LittleEndian.PutUint16(to, uint16(v))
	case 4:
		binary.LittleEndian.PutUint32(to, uint32(v))
	default:
		binary.LittleEndian.PutUint64(to, v)
	}
}
