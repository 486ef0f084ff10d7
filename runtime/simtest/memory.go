package simtest

import (
	"cmp"
	"slices"
	"unsafe"

	"github.com/fusec/fusec/runtime/internal/fakecuda"
)

// memory is the device's memory as one launch sees it: what was allocated when it began.
// It is for one goroutine.
type memory struct {
	pieces []fakecuda.Allocation // by address
	last   fakecuda.Allocation   // that an address was found in: the next often is, too
}

func newMemory(pieces []fakecuda.Allocation) *memory {
	slices.SortFunc(pieces, func(a, b fakecuda.Allocation) int { return cmp.Compare(a.Address, b.Address) })
	return &memory{pieces: pieces}
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

// find looks for the piece that holds all of the bytes.
func (m *memory) find(addr uint64, n int) bool {
	i, exact := slices.BinarySearchFunc(m.pieces, addr, func(a fakecuda.Allocation, addr uint64) int {
		return cmp.Compare(a.Address, addr)
	})
	if !exact {
		i--
	}
	if i < 0 || !holds(m.pieces[i], addr, n) {
		return false
	}
	m.last = m.pieces[i]
	return true
}
