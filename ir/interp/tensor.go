package interp

import (
	"fmt"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/num"
)

// Scalar is one element: F holds floats, I integers and bools.
type Scalar struct {
	F float64
	I int64
}

// Tensor is a dense row-major array in host memory. F holds the elements of a
// float type, I those of integers and bool; the other is nil.
type Tensor struct {
	Type  ir.DType
	Shape []int
	F     []float64
	I     []int64
}

// New returns a tensor of zeros.
func New(t ir.DType, shape ...int) *Tensor {
	out := &Tensor{Type: t, Shape: shape}
	if t.IsFloat() {
		out.F = make([]float64, count(shape))
	} else {
		out.I = make([]int64, count(shape))
	}
	return out
}

// FromBytes decodes elements as they lie in memory.
func FromBytes(t ir.DType, shape []int, data []byte) *Tensor {
	out := New(t, shape...)
	if t.IsFloat() {
		num.ToFloat64s(out.F, t, data)
	} else {
		num.ToInt64s(out.I, t, data)
	}
	return out
}

// Bytes encodes the elements as they lie in memory.
func (t *Tensor) Bytes() []byte {
	out := make([]byte, t.Len()*t.Type.Size())
	if t.Type.IsFloat() {
		num.FromFloat64s(out, t.Type, t.F)
	} else {
		num.FromInt64s(out, t.Type, t.I)
	}
	return out
}

// Len returns the number of elements.
func (t *Tensor) Len() int { return count(t.Shape) }

// at returns the element at a flat offset.
func (t *Tensor) at(offset int64) Scalar {
	if t.F != nil {
		return Scalar{F: t.F[offset]}
	}
	return Scalar{I: t.I[offset]}
}

func (t *Tensor) set(offset int64, v Scalar) {
	if t.F != nil {
		t.F[offset] = v.F
	} else {
		t.I[offset] = v.I
	}
}

// rounded returns t with every element as its type stores it.
func (t *Tensor) rounded() *Tensor {
	out := New(t.Type, t.Shape...)
	for i, v := range t.F {
		out.F[i] = num.Round(t.Type, v)
	}
	for i, v := range t.I {
		out.I[i] = num.RoundInt(t.Type, v)
	}
	return out
}

// check reports an element count that does not fit the shape.
func (t *Tensor) check(name string, want ir.DType) error {
	if t.Type != want {
		return fmt.Errorf("input %s: expected %s, found %s", name, want, t.Type)
	}
	if have := len(t.F) + len(t.I); have != t.Len() || t.Type.IsFloat() != (t.I == nil) && have > 0 {
		return fmt.Errorf("input %s: expected %d elements of %s for shape %v, found %d floats and %d integers",
			name, t.Len(), t.Type, t.Shape, len(t.F), len(t.I))
	}
	return nil
}

func count(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}
