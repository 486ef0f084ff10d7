package ptxsim

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// A TensorMap is the contents of a tensor map (CUtensorMap): the layout of a tensor in global
// memory, and the box of it that one copy moves. Dimension 0 is the innermost. The layout of
// the 128 bytes that kernels take is NVIDIA's secret; this is the simulator's own.
type TensorMap struct {
	Type    TensorMapType
	Rank    int       // 1 to 5; what is beyond it in the arrays is 0
	Address uint64    // of element 0
	Dims    [5]uint64 // elements
	Strides [5]uint64 // bytes; that of dimension 0 is the element's size
	Box     [5]uint32 // elements that a copy moves, before Steps leave some out
	Steps   [5]uint32 // every how many-th element it takes; that of dimension 0 is 1
	// Swizzle is the span in bytes within which 16-byte pieces change places in shared
	// memory: 0 (none), 32, 64 or 128.
	Swizzle int
	NaNFill bool // elements outside of the tensor read as NaN, not as 0
}

// A TensorMapType is an element type (CUtensorMapDataType).
type TensorMapType uint8

// tensorMapTypes are the element types by their number.
var tensorMapTypes = []struct {
	name  string
	size  int // bytes
	float bool
}{
	{"u8", 1, false}, {"u16", 2, false}, {"u32", 4, false}, {"s32", 4, false}, {"u64", 8, false}, {"s64", 8, false},
	{"f16", 2, true}, {"f32", 4, true}, {"f64", 8, true}, {"bf16", 2, true}, {"f32 ftz", 4, true},
	{"tf32", 4, true}, {"tf32 ftz", 4, true},
}

// Size is the bytes of an element.
func (t TensorMapType) Size() int { return tensorMapTypes[t].size }

// String is the type's name.
func (t TensorMapType) String() string { return tensorMapTypes[t].name }

// RoundsToTF32 reports whether copies round elements of f32 to tf32.
func (t TensorMapType) RoundsToTF32() bool { return t == 11 || t == 12 }

// TensorMapBytes is the size of an encoded tensor map, at a multiple of 64.
const TensorMapBytes = 128

// tensorMapMark begins an encoded map, so that other bytes are not taken for one.
const tensorMapMark = 0x70614d54

// Encode checks the rules of cuTensorMapEncodeTiled (CUDA Driver API, Tensor Map Object
// Management) and lays the map out for kernels.
func (m *TensorMap) Encode() (out [TensorMapBytes]byte, err error) {
	if err := m.check(); err != nil {
		return out, err
	}
	le := binary.LittleEndian
	le.PutUint32(out[0:], tensorMapMark)
	out[4], out[5], out[6] = byte(m.Type), byte(m.Rank), byte(m.Swizzle)
	if m.NaNFill {
		out[7] = 1
	}
	le.PutUint64(out[8:], m.Address)
	for i := range m.Rank {
		le.PutUint64(out[16+8*i:], m.Dims[i])
		le.PutUint64(out[56+8*i:], m.Strides[i])
		le.PutUint16(out[96+2*i:], uint16(m.Box[i]))
		out[106+i] = byte(m.Steps[i])
	}
	return out, nil
}

// DecodeTensorMap reads what Encode has laid out.
func DecodeTensorMap(in []byte) (m TensorMap, err error) {
	le := binary.LittleEndian
	if len(in) < TensorMapBytes || le.Uint32(in) != tensorMapMark {
		return m, errors.New("there is no tensor map where one was expected")
	}
	m.Type, m.Rank, m.Swizzle, m.NaNFill = TensorMapType(in[4]), int(in[5]), int(in[6]), in[7] == 1
	m.Address = le.Uint64(in[8:])
	for i := range m.Rank {
		m.Dims[i] = le.Uint64(in[16+8*i:])
		m.Strides[i] = le.Uint64(in[56+8*i:])
		m.Box[i] = uint32(le.Uint16(in[96+2*i:]))
		m.Steps[i] = uint32(in[106+i])
	}
	return m, m.check()
}

func (m *TensorMap) check() error {
	switch {
	case int(m.Type) >= len(tensorMapTypes):
		return fmt.Errorf("a tensor map of elements of type %d, 12 at most", m.Type)
	case m.Rank < 1 || m.Rank > 5:
		return fmt.Errorf("a tensor map of %d dimensions: expected 1 to 5", m.Rank)
	case m.Address%16 != 0:
		return fmt.Errorf("a tensor map of a tensor at %#x, which is no multiple of 16", m.Address)
	case m.NaNFill && !tensorMapTypes[m.Type].float:
		return fmt.Errorf("a tensor map of %v that fills with NaN", m.Type)
	case m.Strides[0] != uint64(m.Type.Size()):
		return fmt.Errorf("a tensor map of %v whose elements are %d bytes apart", m.Type, m.Strides[0])
	}
	for i := range m.Rank {
		if err := m.checkDimension(i); err != nil {
			return fmt.Errorf("dimension %d of a tensor map: %w", i, err)
		}
	}
	return m.checkInner()
}

func (m *TensorMap) checkDimension(i int) error {
	switch {
	case m.Dims[i] == 0 || m.Dims[i] > 1<<32:
		return fmt.Errorf("%d elements: expected 1 to 2^32", m.Dims[i])
	case m.Box[i] == 0 || m.Box[i] > 256:
		return fmt.Errorf("a box of %d: expected 1 to 256", m.Box[i])
	case m.Steps[i] == 0 || m.Steps[i] > 8:
		return fmt.Errorf("every %d-th element: expected 1 to 8", m.Steps[i])
	case i > 0 && (m.Strides[i]%16 != 0 || m.Strides[i] >= 1<<40):
		return fmt.Errorf("%d bytes apart: expected a multiple of 16 below 2^40", m.Strides[i])
	}
	return nil
}

// checkInner is about the bytes that lie together in shared memory.
func (m *TensorMap) checkInner() error {
	inner := int(m.Box[0]) * m.Type.Size()
	switch {
	case m.Steps[0] != 1:
		return fmt.Errorf("a tensor map with every %d-th element of dimension 0: expected all", m.Steps[0])
	case inner%16 != 0:
		return fmt.Errorf("a box of %d bytes in dimension 0: expected a multiple of 16", inner)
	case m.Swizzle != 0 && m.Swizzle != 32 && m.Swizzle != 64 && m.Swizzle != 128:
		return fmt.Errorf("a swizzle of %d bytes: expected 0, 32, 64 or 128", m.Swizzle)
	case m.Swizzle != 0 && inner > m.Swizzle:
		return fmt.Errorf("a box of %d bytes in dimension 0, which do not fit a swizzle of %d", inner, m.Swizzle)
	}
	return nil
}
