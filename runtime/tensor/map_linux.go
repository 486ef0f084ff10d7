package tensor

import (
	"fmt"
	"os"
	"syscall"

	"github.com/fusec/fusec/internal/regular"
	"github.com/fusec/fusec/ir"
)

// A Mapped is a tensor whose elements lie in a file that is mapped into memory: they are
// read, or written, when they are touched, and need not fit in memory. It is an argument
// of runs like any other tensor. Nobody may shorten the file while it is mapped: touching
// what is gone ends the process. Close it; the tensor must not be used afterwards.
type Mapped struct {
	*Tensor
	mapping []byte
}

// MapNPYFile maps an .npy file; see ReadNPY. The file is never changed: elements that
// are written to become the process's own, as do those of a file in another byte order
// or in Fortran order, all of which are read at once.
func MapNPYFile(path string, want ir.DType) (m *Mapped, err error) {
	f, info, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if m, err = mapNPY(f, info.Size(), want); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

func mapNPY(f *os.File, size int64, want ir.DType) (*Mapped, error) {
	a, err := describe(f, size, want)
	if err != nil {
		return nil, err
	}
	if a.offset%a.DType.Size() != 0 {
		return nil, fmt.Errorf("the elements begin at byte %d, which %v cannot: read the file", a.offset, a.DType)
	}
	if a.big || a.transposed() { // all elements are copied then
		if err := a.admit(a.memory()); err != nil {
			return nil, err
		}
	}
	m, err := mapFile(f, a.Tensor, a.offset, a.bytes, syscall.MAP_PRIVATE)
	if err == nil {
		a.normalise()
	}
	return m, err
}

// CreateNPYFile makes an .npy file of zeros and maps it: what is written to the tensor
// is in the file, at the latest after Close. What was at path is lost.
func CreateNPYFile(path string, t ir.DType, shape ...int) (m *Mapped, err error) {
	x := &Tensor{DType: t, Shape: clone(shape)}
	n, err := byteSize(t, shape)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	header := headerText(t, shape)
	if _, err := f.Write(header); err != nil {
		return nil, err
	}
	// If the disk has no room, it is an error here; later, touching the memory would end the
	// process.
	if n > 0 {
		if err := syscall.Fallocate(int(f.Fd()), 0, int64(len(header)), int64(n)); err != nil {
			return nil, fmt.Errorf("%s: no room for %d bytes of elements: %w", path, n, err)
		}
	}
	return mapFile(f, x, len(header), n, syscall.MAP_SHARED)
}

// mapFile maps a file whose elements are n bytes from offset on.
func mapFile(f *os.File, x *Tensor, offset, n, flags int) (*Mapped, error) {
	m := &Mapped{Tensor: x}
	if n == 0 {
		return m, nil // an empty mapping is an error
	}
	var err error
	m.mapping, err = syscall.Mmap(int(f.Fd()), 0, offset+n, syscall.PROT_READ|syscall.PROT_WRITE, flags)
	if err != nil {
		return nil, fmt.Errorf("%s: mapping it into memory: %w", f.Name(), err)
	}
	x.Data = m.mapping[offset:]
	return m, nil
}

// Close ends the mapping. A second Close does nothing.
func (m *Mapped) Close() error {
	mapping := m.mapping
	m.mapping, m.Data = nil, nil
	if mapping == nil {
		return nil
	}
	return syscall.Munmap(mapping)
}
