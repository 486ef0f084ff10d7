package tensor

import (
	"errors"
	"fmt"
	"io"

	"github.com/fusec/fusec/internal/regular"
	"github.com/fusec/fusec/ir"
)

// ReadNPY reads one array in the .npy format, versions 1 to 3, of any byte order
// and of C or Fortran order. size is the number of bytes r holds, known in advance
// so that a header cannot make the reader allocate more than the file is long. An array
// that does not fit in memory is an *ir.MemoryError.
//
// want is the type the elements must have; with ir.Invalid any type is taken,
// except raw bytes ("|V2", "|V1"), in which bf16 and f8 are stored: they need a
// want to be named. Errors do not name the source; the callers that open files add it.
func ReadNPY(r io.Reader, size int64, want ir.DType) (*Tensor, error) {
	a, err := describe(r, size, want)
	if err != nil {
		return nil, err
	}
	if err := a.admit(a.memory()); err != nil {
		return nil, err
	}
	a.Data = make([]byte, a.bytes)
	if _, err := io.ReadFull(r, a.Data); err != nil {
		return nil, truncated(fmt.Sprintf("the %d bytes of %v", a.bytes, a.Tensor), err)
	}
	a.normalise()
	return a.Tensor, drained(r)
}

// stored is an array as a file holds it. Its tensor has no elements until they are read
// or mapped.
type stored struct {
	*Tensor
	offset  int  // of the elements
	bytes   int  // of all elements
	big     bool // big-endian, where the type has more than one byte
	fortran bool // the first index is fastest
}

// memory is how many bytes of memory it takes to read the array: twice its size if it has to be
// transposed.
func (a *stored) memory() int {
	if a.transposed() {
		return 2 * a.bytes
	}
	return a.bytes
}

// transposed reports whether the elements are in another order than a Tensor's.
func (a *stored) transposed() bool { return a.fortran && len(a.Shape) > 1 && a.bytes > 0 }

// describe reads the header of an array, which must take all of size bytes; for want see
// ReadNPY.
func describe(r io.Reader, size int64, want ir.DType) (*stored, error) {
	h, err := readHeader(r)
	if err != nil {
		return nil, err
	}
	t, big, err := resolve(h.descr, want)
	if err != nil {
		return nil, err
	}
	n, err := byteSize(t, h.shape)
	if err != nil {
		return nil, err
	}
	a := &stored{&Tensor{DType: t, Shape: h.shape}, int(h.size), n, big, h.fortran}
	return a, a.checkLength(size - int64(h.size))
}

// checkLength compares the bytes that follow the header with what the elements take.
func (a *stored) checkLength(found int64) error {
	switch {
	case found < int64(a.bytes):
		return fmt.Errorf("truncated: expected %d bytes of elements for %v, found %d", a.bytes, a.Tensor, max(found, 0))
	case found > int64(a.bytes):
		return fmt.Errorf("expected %d bytes of elements for %v, found %d: the file holds something else as well",
			a.bytes, a.Tensor, found)
	}
	return nil
}

// drained reads up to the end: archives check their checksum only there.
func drained(r io.Reader) error {
	n, err := r.Read(make([]byte, 1))
	switch {
	case n > 0:
		return errors.New("expected the end of the file after the elements")
	case err != nil && err != io.EOF:
		return fmt.Errorf("after the elements: %w", err)
	}
	return nil
}

// ReadNPYFile reads an .npy file, which must be a regular one; see ReadNPY. Errors name
// the file.
func ReadNPYFile(path string, want ir.DType) (*Tensor, error) {
	f, info, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	x, err := ReadNPY(f, info.Size(), want)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return x, nil
}

// WriteNPY writes x as .npy version 1. bf16 becomes "<V2" and f8 "|V1", as
// ml_dtypes has NumPy write them.
func WriteNPY(w io.Writer, x *Tensor) error {
	if err := x.Check(); err != nil {
		return err
	}
	if _, err := w.Write(headerText(x.DType, x.Shape)); err != nil {
		return err
	}
	_, err := w.Write(x.Data)
	return err
}

// WriteNPYFile writes an .npy file: complete, or not at all. What was at path
// stays until the new file is complete.
func WriteNPYFile(path string, x *Tensor) error {
	return writeFile(path, func(w io.Writer) error { return WriteNPY(w, x) })
}

// normalise converts the stored elements to the order that a Tensor has.
func (a *stored) normalise() {
	x := a.Tensor
	if a.big {
		swapBytes(x.Data, x.DType.Size())
	}
	if a.transposed() {
		x.Data = fromFortran(x)
	}
	if x.DType == ir.Bool {
		for i, b := range x.Data {
			if b > 1 {
				x.Data[i] = 1
			}
		}
	}
}

func swapBytes(b []byte, size int) {
	for ; len(b) >= size; b = b[size:] {
		for i, j := 0, size-1; i < j; i, j = i+1, j-1 {
			b[i], b[j] = b[j], b[i]
		}
	}
}

// fromFortran returns the elements of x, which lie first index fastest, in row-major
// order. It walks the output in order and the input by strides.
func fromFortran(x *Tensor) []byte {
	rank, size := len(x.Shape), x.DType.Size()
	strides, step := make([]int, rank), size
	for d, extent := range x.Shape {
		strides[d] = step
		step *= extent
	}
	out, index, from := make([]byte, 0, len(x.Data)), make([]int, rank), 0
	for len(out) < len(x.Data) {
		for range x.Shape[rank-1] {
			out = append(out, x.Data[from:from+size]...)
			from += strides[rank-1]
		}
		from -= x.Shape[rank-1] * strides[rank-1]
		for d := rank - 2; d >= 0; d-- {
			from += strides[d]
			if index[d]++; index[d] < x.Shape[d] {
				break
			}
			from -= index[d] * strides[d]
			index[d] = 0
		}
	}
	return out
}
