package ptxsim

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
	if out := w.find(lane, in, addr, n); out != nil || n == 0 {
		return out
	}
	in, what := actual(in, addr), "memory"
	switch in {
	case global:
		panic(w.fault(lane, "%d bytes at %#x of global memory are not allocated", n, addr))
	case shared:
		t, offset := w.place(lane, addr)
		panic(w.fault(lane, "%d bytes at %#x of shared memory, which has %d", n, offset+sharedStart, len(t.shared)))
	case local:
		what = "local memory"
	case param:
		what = "parameters"
	}
	panic(w.fault(lane, "%d bytes at %#x of %s, which are not there", n, addr&^windowMask, what))
}

// sharedBytes is shared memory of the block itself or, with a rank in the address, of
// another in the cluster.
func (w *warp) sharedBytes(lane int, addr uint64, n int) []byte {
	return w.bytes(lane, shared, addr, n, 1)
}

// actual is the state space that an address lies in. Variables of the module are global.
func actual(in space, addr uint64) space {
	switch {
	case in == param && addr&windowMask == localWindow: // passed to a function
		return local
	case in != generic:
		return in
	}
	switch addr & windowMask {
	case sharedWindow:
		return shared
	case localWindow:
		return local
	case paramWindow:
		return param
	}
	return global
}

// find is bytes, but returns nil if any of them does not exist.
func (w *warp) find(lane int, in space, addr uint64, n int) []byte {
	switch c := w.cta; actual(in, addr) {
	case shared:
		if offset := uint64(uint32(addr)) - sharedStart; offset < uint64(len(c.shared)) {
			return extent(c.shared, offset, n)
		}
		t, offset := w.place(lane, addr)
		return extent(t.shared, offset, n)
	case local:
		return extent(w.local[lane], addr&^windowMask, n)
	case param:
		return extent(c.cluster.launch.Params, addr&^windowMask, n)
	}
	if addr&windowMask == moduleWindow {
		return extent(w.cta.cluster.launch.data, addr&^windowMask, n)
	}
	return w.cta.cluster.launch.Memory.Bytes(addr, n)
}

// extent is part of a piece of memory; nil where that does not hold all of it.
func extent(data []byte, offset uint64, n int) []byte {
	if offset > uint64(len(data)) || uint64(n) > uint64(len(data))-offset {
		return nil
	}
	return data[offset : offset+uint64(n)]
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

// sharedAddress is the address in shared memory of a pointer; pointers without a state space
// are generic.
func (w *warp) sharedAddress(lane int, in space, addr uint64) uint64 {
	if in == shared {
		return addr
	}
	if addr&windowMask != sharedWindow {
		panic(w.fault(lane, "%#x is not an address of shared memory", addr))
	}
	return addr &^ windowMask
}

// memoryFamilies are loads and stores.
var memoryFamilies = map[string]family{
	"ld":  loadFamily,
	"ldu": loadFamily,
	"st":  storeFamily,
}
