// Package tensor holds host tensors: dense, row-major blocks of elements in
// ordinary memory, with their conversions to Go slices and to .npy and .npz files.
//
// It must not know graphs, plans, devices or kernels. Elements are little-endian,
// as ir/num stores them; the package is for little-endian hosts, like the drivers
// it feeds, and shares memory with Go slices on that ground.
package tensor

import (
	"fmt"
	"math"
	"strings"
	"unsafe"

	"github.com/fusec/fusec/internal/hostmem"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/num"
)

// MaxRank is the largest number of dimensions, the same as NumPy's.
const MaxRank = 64

// maxBytes is more than any machine can hold and less than what makes Go's
// allocator panic.
const maxBytes = min(math.MaxInt, 1<<46)

// Tensor is a contiguous row-major block of elements.
//
// A Tensor does not own its Data exclusively: constructors that take a slice share
// it. It holds no locks: any number of goroutines may read it, and whoever writes
// must be alone. Len(Data) is always the product of Shape times DType.Size(); the
// constructors and readers establish that, Check tests it for values built by hand.
type Tensor struct {
	DType ir.DType
	Shape []int  // empty for a scalar
	Data  []byte // little-endian elements
}

// New returns a tensor of zeros; an *ir.MemoryError where it does not fit in memory.
func New(t ir.DType, shape ...int) (*Tensor, error) {
	n, err := byteSize(t, shape)
	if err != nil {
		return nil, err
	}
	x := &Tensor{DType: t, Shape: clone(shape)}
	if err := x.admit(n); err != nil {
		return nil, err
	}
	x.Data = make([]byte, n)
	return x, nil
}

// admit returns an error where n bytes for x do not fit in memory.
func (x *Tensor) admit(n int) error { return hostmem.Admit("tensor "+x.String(), int64(n)) }

// FromBytes returns a tensor over data, which it shares: the raw little-endian
// elements.
func FromBytes(t ir.DType, data []byte, shape ...int) (*Tensor, error) {
	x := &Tensor{DType: t, Shape: clone(shape), Data: data}
	if err := x.Check(); err != nil {
		return nil, err
	}
	return x, nil
}

// Check returns an error unless dtype, shape and the length of Data agree.
func (x *Tensor) Check() error {
	n, err := byteSize(x.DType, x.Shape)
	if err != nil {
		return err
	}
	if n != len(x.Data) {
		return fmt.Errorf("tensor %v needs %d elements (%d bytes), found %d bytes",
			x, n/x.DType.Size(), n, len(x.Data))
	}
	return nil
}

// Len returns the number of elements.
func (x *Tensor) Len() int {
	if x.DType.Size() == 0 {
		return 0
	}
	return len(x.Data) / x.DType.Size()
}

// Clone returns a tensor with memory of its own.
func (x *Tensor) Clone() *Tensor {
	return &Tensor{DType: x.DType, Shape: clone(x.Shape), Data: append(make([]byte, 0, len(x.Data)), x.Data...)}
}

// Convert returns a new tensor of type t, each element converted as ir/num
// defines.
func (x *Tensor) Convert(t ir.DType) (*Tensor, error) {
	if err := x.Check(); err != nil {
		return nil, err
	}
	y, err := New(t, x.Shape...)
	if err != nil {
		return nil, err
	}
	num.Convert(y.Data, t, x.Data, x.DType)
	return y, nil
}

// String names type and shape as programs write them: f32[3, 4].
func (x *Tensor) String() string {
	var s strings.Builder
	s.WriteString(x.DType.String())
	s.WriteByte('[')
	for i, d := range x.Shape {
		if i > 0 {
			s.WriteString(", ")
		}
		fmt.Fprint(&s, d)
	}
	s.WriteByte(']')
	return s.String()
}

// Offset returns the flat index of the element at index. It panics, as indexing a
// slice does, where an index is out of range or one is missing.
func (x *Tensor) Offset(index ...int) int {
	if len(index) != len(x.Shape) {
		panic(fmt.Sprintf("tensor: %d indices for %v", len(index), x))
	}
	at := 0
	for d, i := range index {
		if i < 0 || i >= x.Shape[d] {
			panic(fmt.Sprintf("tensor: index %v out of range of %v", index, x))
		}
		at = at*x.Shape[d] + i
	}
	return at
}

// Index returns the index of the element at flat position at: Offset undone.
func (x *Tensor) Index(at int) []int {
	index := make([]int, len(x.Shape))
	for d := len(index) - 1; d >= 0; d-- {
		index[d] = at % x.Shape[d]
		at /= x.Shape[d]
	}
	return index
}

// At returns one element as a float64; IntAt is exact for i64. Both panic as
// Offset does.
func (x *Tensor) At(index ...int) float64 {
	return num.Load(x.DType, x.Data[x.Offset(index...)*x.DType.Size():])
}

// IntAt returns one element as an integer.
func (x *Tensor) IntAt(index ...int) int64 {
	return num.LoadInt(x.DType, x.Data[x.Offset(index...)*x.DType.Size():])
}

// byteSize returns the bytes of a tensor, or an error about its shape. The other dims have to
// fit even if one is zero.
func byteSize(t ir.DType, shape []int) (int, error) {
	if _, ok := ir.DTypeNamed(t.String()); !ok {
		return 0, fmt.Errorf("element type %v cannot be stored in a tensor", t)
	}
	if len(shape) > MaxRank {
		return 0, fmt.Errorf("a tensor has at most %d dimensions, found %d", MaxRank, len(shape))
	}
	size, empty := t.Size(), false
	for _, d := range shape {
		if d < 0 {
			return 0, fmt.Errorf("dimensions are at least 0, found %d in shape %v", d, shape)
		}
		if d == 0 {
			empty = true
			continue
		}
		if size > maxBytes/d {
			return 0, fmt.Errorf("shape %v of %v is larger than the address space", shape, t)
		}
		size *= d
	}
	if empty {
		return 0, nil
	}
	return size, nil
}

func clone(shape []int) []int { return append(make([]int, 0, len(shape)), shape...) }

func aligned(b []byte, size int) bool {
	return uintptr(unsafe.Pointer(unsafe.SliceData(b)))%uintptr(size) == 0
}
