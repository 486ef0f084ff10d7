package simtest

import (
	"slices"
	"unsafe"

	"github.com/fusec/fusec/runtime/internal/fakecuda"
)

// memory is the device's memory as one launch sees it: pieces, none of which an access may
// leave. It is for one goroutine.
type memory struct {
	pieces []fakecuda.Allocation
	last   fakecuda.Allocation // that an address was found in: the next often is, too
}

// Bytes implements ptxsim.Memory.
func (m *memory) Bytes(addr uint64, n int) []byte {
	if !holds(m.last, addr, n) && !m.find(addr, n) {
		return nil
	}
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&addr))), n)
}

func holds(a fakecuda.Allocation, addr uint64, n int) bool {
	offset := addr - a.Address
	return addr >= a.Address && offset <= a.Bytes && uint64(n) <= a.Bytes-offset
}

// find looks for a piece that holds all of the bytes: there are few.
func (m *memory) find(addr uint64, n int) bool {
	i := slices.IndexFunc(m.pieces, func(a fakecuda.Allocation) bool { return holds(a, addr, n) })
	if i >= 0 {
		m.last = m.pieces[i]
	}
	return i >= 0
}
