package ptxsim

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"strconv"
	"strings"
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
		switch {
		case m == "global" || m == "const":
			return global
		case strings.HasPrefix(m, "shared"):
			return shared
		case m == "local":
			return local
		case strings.HasPrefix(m, "param"):
			return param
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
	t := w.cta
	addr = uint64(uint32(addr))
	if rank := addr >> rankShift; rank > 0 {
		if int(rank) > len(t.cluster.ctas) {
			panic(w.fault(lane, "%#x is an address of no block of the cluster", addr))
		}
		t, addr = t.cluster.ctas[rank-1], addr&(1<<rankShift-1)
	}
	return w.within(lane, "shared memory", t.shared, addr-sharedStart, n)
}

func (w *warp) within(lane int, what string, data []byte, offset uint64, n int) []byte {
	if offset > uint64(len(data)) || uint64(n) > uint64(len(data))-offset {
		panic(w.fault(lane, "%d bytes at %#x of %s, which has %d", n, offset, what, len(data)))
	}
	return data[offset : offset+uint64(n)]
}

// memoryFamilies are loads and stores.
var memoryFamilies = map[string]family{
	"ld": loadFamily,
	"st": storeFamily,
}

// vectorOf is how many elements a load or store moves. Modifiers of caching and ordering
// mean nothing here: warps run one after the other.
func vectorOf(s *statement) int {
	for _, m := range s.Mods {
		if len(m) == 2 && m[0] == 'v' {
			n, _ := strconv.Atoi(m[1:])
			return n
		}
	}
	return 1
}

// access is what loads and stores have in common.
type access struct {
	in     space
	elem   int   // bytes
	regs   []int // -1: not kept
	base   int
	offset uint64
}

func (b *builder) access(s *statement, addr, data operand) access {
	a := access{in: spaceOf(s), elem: typeSize(s.last()), base: b.use(*addr.base), offset: addr.bits}
	elems := []operand{data}
	if data.kind == vecOperand {
		elems = data.elems
	}
	for _, e := range elems {
		if e.kind == sinkOperand {
			a.regs = append(a.regs, -1)
		} else {
			a.regs = append(a.regs, b.use(e))
		}
	}
	if vectorOf(s) != len(a.regs) {
		b.fail("%s with %d registers", s.text(), len(a.regs))
	}
	return a
}

func (a *access) at(w *warp, lane int) []byte {
	n := a.elem * len(a.regs)
	return w.bytes(lane, a.in, w.regs[a.base][lane]+a.offset, n, n)
}

// loadFamily: ld{.space}{.mods}{.vec}.type d, [a]{, policy}. Signed types are extended to
// the register's width by the readers of the register: bits of narrow loads are kept as
// the type's, extended to 64 bits for signed ones.
func loadFamily(b *builder, s *statement) exec {
	if len(s.Args) < 2 || s.Args[1].kind != addrOperand {
		return nil
	}
	a := b.access(s, s.Args[1], s.Args[0])
	signed := s.last()[0] == 's'
	return func(w *warp, mask uint32) {
		for m := mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			from := a.at(w, lane)
			for i, r := range a.regs {
				if r >= 0 {
					w.regs[r][lane] = read(from[i*a.elem:], a.elem, signed)
				}
			}
		}
	}
}

func storeFamily(b *builder, s *statement) exec {
	if len(s.Args) < 2 || s.Args[0].kind != addrOperand || slices.Contains(s.Mods, "async") {
		return nil
	}
	a := b.access(s, s.Args[0], s.Args[1])
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
