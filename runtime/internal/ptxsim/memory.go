package ptxsim

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// Generic addresses: windows for all but global memory, whose addresses are the host's.
const (
	sharedWindow = 1 << 60
	localWindow  = 2 << 60
	paramWindow  = 3 << 60
	moduleWindow = 4 << 60
	windowMask   = 7 << 60
)

// rankShift is where an address of shared::cluster holds the block's rank and one; without
// it is an address of the block itself.
const rankShift = 24

// A space is a state space.
type space int

const (
	generic space = iota
	global
	shared // shared::cta and shared::cluster
	local
	param
)

// spaceOf is the state space that an instruction names.
func spaceOf(s *statement) space {
	for _, m := range s.Mods {
		if in, ok := spaces[m]; ok {
			return in
		}
	}
	return generic
}

// bytes is the memory that a lane sees at an address; a fault where there is none, or
// where the address is not a multiple of align.
func (w *warp) bytes(lane int, in space, addr uint64, n, align int) []byte {
	if align > 1 && addr%uint64(align) != 0 {
		panic(w.fault(lane, "%#x is not a multiple of %d", addr, align))
	}
	offset := addr &^ windowMask
	if in == generic || in == global {
		switch addr & windowMask {
		case sharedWindow:
			in = shared
		case localWindow:
			in = local
		case paramWindow:
			in = param
		case moduleWindow:
			return w.within(lane, "variables of the module", w.cta.cluster.launch.data, offset, n)
		default:
			out := w.cta.cluster.launch.Memory.Bytes(addr, n)
			if out == nil {
				panic(w.fault(lane, "%d bytes at %#x of global memory are not allocated", n, addr))
			}
			return out
		}
	}
	switch in {
	case local:
		return w.within(lane, "local memory", w.local[lane], offset, n)
	case param:
		if addr&windowMask == localWindow { // passed to a function
			return w.within(lane, "local memory", w.local[lane], offset, n)
		}
		return w.within(lane, "parameters", w.cta.cluster.launch.Params, offset, n)
	}
	return w.sharedBytes(lane, addr, n)
}

// sharedBytes is shared memory of the block itself or, with a rank in the address, of
// another in the cluster.
func (w *warp) sharedBytes(lane int, addr uint64, n int) []byte {
	t, offset := w.place(lane, addr)
	return w.within(lane, "shared memory", t.shared, offset, n)
}

// place is the block that an address of shared memory belongs to, and the offset in its
// memory. Shared memory of another block is there until that block ends (PTX ISA, "State
// Spaces": an access to it afterwards is undefined).
func (w *warp) place(lane int, addr uint64) (t *cta, offset uint64) {
	t, addr = w.cta, uint64(uint32(addr))
	if rank := addr >> rankShift; rank > 0 {
		if int(rank) > len(t.cluster.ctas) {
			panic(w.fault(lane, "%#x is an address of no block of the cluster", addr))
		}
		t, addr = t.cluster.ctas[rank-1], addr&(1<<rankShift-1)
		if t != w.cta && t.exited == t.threads {
			panic(w.fault(lane, "shared memory of block %v, which has ended", t.id))
		}
	}
	return t, addr - sharedStart
}

// sharedAddress is the address in shared memory that a pointer to it means; those without
// a state space are generic.
func (w *warp) sharedAddress(lane int, in space, addr uint64) uint64 {
	if in == shared {
		return addr
	}
	if addr&windowMask != sharedWindow {
		panic(w.fault(lane, "%#x is not an address of shared memory", addr))
	}
	return addr &^ windowMask
}

func (w *warp) within(lane int, what string, data []byte, offset uint64, n int) []byte {
	if offset > uint64(len(data)) || uint64(n) > uint64(len(data))-offset {
		panic(w.fault(lane, "%d bytes at %#x of %s, which has %d", n, offset, what, len(data)))
	}
	return data[offset : offset+uint64(n)]
}

// memoryFamilies are loads and stores.
var memoryFamilies = map[string]family{
	"ld":  loadFamily,
	"ldu": loadFamily,
	"st":  storeFamily,
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

// access is what loads, stores and atomics have in common.
type access struct {
	in   space
	elem int   // bytes
	regs []int // -1: not kept
	addr pointer
}

func (b *builder) access(s *statement, addr, data operand) access {
	a := access{in: spaceOf(s), elem: elementTypes[s.element()], addr: b.pointer(addr)}
	for _, e := range data.vector() {
		a.regs = append(a.regs, b.into(e))
	}
	if vectorOf(s) != len(a.regs) {
		b.fail("%s with %d registers", s.text(), len(a.regs))
	}
	return a
}

// at is the memory that a lane accesses: vectors lie at multiples of their whole size.
func (a *access) at(w *warp, lane int) []byte {
	n := a.elem * len(a.regs)
	return w.bytes(lane, a.in, a.addr.at(w, lane), n, n)
}

// loadFamily: ld{.mods}{.space}{.vec}.type d, [a]{, policy}; ldu. Elements narrower than
// their register are zero-extended, signed ones sign-extended (PTX ISA, "Operand Size
// Exceeding Instruction-Type Size").
func loadFamily(b *builder, s *statement) exec {
	if !s.only() || s.element() == "" || !kinds(s.plain(), "da") {
		return nil
	}
	a := b.access(s, s.Args[1], s.Args[0])
	if s.element()[0] == 's' {
		return signedLoad(a, s.Args[0].vector())
	}
	if len(a.regs) == 1 && a.elem == 4 && a.regs[0] >= 0 {
		to := a.regs[0]
		return func(w *warp, mask uint32) {
			for m := mask; m != 0; m &= m - 1 {
				lane := bits.TrailingZeros32(m)
				w.regs[to][lane] = uint64(binary.LittleEndian.Uint32(w.bytes(lane, a.in, a.addr.at(w, lane), 4, 4)))
			}
		}
	}
	return func(w *warp, mask uint32) {
		for m := mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			from := a.at(w, lane)
			for i, r := range a.regs {
				if r >= 0 {
					w.regs[r][lane] = read(from[i*a.elem:], a.elem, false)
				}
			}
		}
	}
}

// signedLoad extends elements to the width of each register, at least 32 bits.
func signedLoad(a access, data []operand) exec {
	return func(w *warp, mask uint32) {
		for m := mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			from := a.at(w, lane)
			for i, r := range a.regs {
				if r < 0 {
					continue
				}
				v := read(from[i*a.elem:], a.elem, true)
				if a.elem < 8 && typeSize(data[i].class) == 8 {
					v = uint64(int32(v))
				}
				w.regs[r][lane] = v
			}
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
	return func(w *warp, mask uint32) {
		w.cta.cluster.launch.events++
		for m := mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			to := a.at(w, lane)
			for i, r := range a.regs {
				write(to[i*a.elem:], a.elem, w.regs[r][lane])
			}
		}
	}
}

// read gives the bits of an element of 1, 2, 4 or 8 bytes; of signed ones extended to 32
// bits where they are narrower.
func read(from []byte, size int, signed bool) uint64 {
	switch size {
	case 1:
		if signed {
			return uint64(uint32(int8(from[0])))
		}
		return uint64(from[0])
	case 2:
		v := binary.LittleEndian.Uint16(from)
		if signed {
			return uint64(uint32(int16(v)))
		}
		return uint64(v)
	case 4:
		return uint64(binary.LittleEndian.Uint32(from))
	}
	return binary.LittleEndian.Uint64(from)
}

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
