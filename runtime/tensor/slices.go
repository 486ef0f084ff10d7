package tensor

import (
	"fmt"
	"unsafe"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/num"
)

// Element is a Go type whose memory is that of a dtype.
type Element interface {
	float32 | float64 | int64 | int32 | int16 | int8 | uint8 | uint32 | bool | BF16 | F16 | F8E4M3 | F8E5M2
}

// DTypeOf returns the dtype that stores T.
func DTypeOf[T Element]() ir.DType {
	var zero T
	switch any(zero).(type) {
	case float32:
		return ir.F32
	case float64:
		return ir.F64
	case int64:
		return ir.I64
	case int32:
		return ir.I32
	case int16:
		return ir.I16
	case int8:
		return ir.I8
	case uint32:
		return ir.U32
	case bool:
		return ir.Bool
	case BF16:
		return ir.BF16
	case F16:
		return ir.F16
	case F8E4M3:
		return ir.F8E4M3
	case F8E5M2:
		return ir.F8E5M2
	}
	return ir.U8
}

// FromSlice returns a tensor over data, which it shares: a write to one is seen in
// the other. Without a shape it is a vector; Scalar makes a tensor of one number and no axes.
func FromSlice[T Element](data []T, shape ...int) (*Tensor, error) {
	if shape == nil {
		shape = []int{len(data)}
	}
	return FromBytes(DTypeOf[T](), bytesOf(data), shape...)
}

// FromFloats returns a new tensor of any type t that holds data, rounded as
// ir/num defines. Without a shape it is a vector; Scalar makes a tensor of one number and no axes.
func FromFloats(t ir.DType, data []float32, shape ...int) (*Tensor, error) {
	x, err := newFor(t, len(data), shape)
	if err != nil {
		return nil, err
	}
	num.FromFloat32s(x.Data, t, data)
	return x, nil
}

// FromBits returns a tensor over the raw bits of 8- or 16-bit elements, which it
// shares: the way to hand over f16, bf16 and f8 values as other libraries hold
// them. FromSlice takes the same as typed numbers: BF16, F16, F8E4M3, F8E5M2.
func FromBits[T uint8 | uint16](t ir.DType, bits []T, shape ...int) (*Tensor, error) {
	if want := int(unsafe.Sizeof(T(0))); t.Size() != want {
		return nil, fmt.Errorf("bits of %d bytes an element cannot be %v, which has %d", want, t, t.Size())
	}
	if shape == nil {
		shape = []int{len(bits)}
	}
	return FromBytes(t, bytesOf(bits), shape...)
}

// Scalar returns a new tensor of rank 0, rounded as ir/num defines.
func Scalar(t ir.DType, v float64) (*Tensor, error) {
	x, err := New(t)
	if err != nil {
		return nil, err
	}
	num.Store(t, x.Data, v)
	return x, nil
}

func newFor(t ir.DType, n int, shape []int) (*Tensor, error) {
	if shape == nil {
		shape = []int{n}
	}
	x, err := New(t, shape...)
	if err == nil && x.Len() != n {
		return nil, fmt.Errorf("tensor %v needs %d elements, found %d", x, x.Len(), n)
	}
	return x, err
}

// View returns the elements of x without a copy: a write to one is seen in the
// other. ok is false where x holds another type or its memory is not aligned. For
// bool every byte must be 0 or 1, as New, FromSlice, Random and the readers make
// them.
func View[T Element](x *Tensor) (data []T, ok bool) {
	size := x.DType.Size()
	if x.DType != DTypeOf[T]() || len(x.Data)%size != 0 || !aligned(x.Data, size) {
		return nil, false
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(x.Data))), len(x.Data)/size), true
}

// Float32s returns the elements as float32: a View where it can be, else a
// converted copy. Read it only.
func (x *Tensor) Float32s() []float32 {
	if v, ok := View[float32](x); ok {
		return v
	}
	out := make([]float32, x.Len())
	num.ToFloat32s(out, x.DType, x.Data)
	return out
}

// Floats returns the elements as float64: a View where it can be, else a converted
// copy. Read it only.
func (x *Tensor) Floats() []float64 {
	if v, ok := View[float64](x); ok {
		return v
	}
	out := make([]float64, x.Len())
	num.ToFloat64s(out, x.DType, x.Data)
	return out
}

// Ints returns the elements as int64, exact for integers: a View where it can be,
// else a converted copy. Read it only.
func (x *Tensor) Ints() []int64 {
	if v, ok := View[int64](x); ok {
		return v
	}
	out := make([]int64, x.Len())
	num.ToInt64s(out, x.DType, x.Data)
	return out
}

func bytesOf[T Element | uint16](data []T) []byte {
	var zero T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(data))), len(data)*int(unsafe.Sizeof(zero)))
}
