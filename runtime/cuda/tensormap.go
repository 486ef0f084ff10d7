package cuda

import (
	"fmt"
	"unsafe"
)

// tensorMapAlign is the alignment in bytes at which a tensor map is encoded.
const tensorMapAlign = 64

// A TensorMap (CUtensorMap) tells the tensor copy engine how a tensor lies in
// device memory. Its contents are the driver's business; kernels take it by value.
type TensorMap [128]byte

// A TensorMapConfig describes a tensor and the box that one copy moves. Dimension 0
// is the innermost, whose elements lie side by side.
type TensorMapConfig struct {
	Type    TensorMapType
	Address DevicePtr // a multiple of 16
	Dims    []uint64  // elements; 1 to 5 dimensions
	Strides []uint64  // bytes, of dimensions 1 and up: one fewer than Dims, multiples of 16
	Box     []uint32  // elements of each dimension, at most 256
	Steps   []uint32  // element stride of each dimension; nil for 1 everywhere

	Interleave TensorMapInterleave
	Swizzle    TensorMapSwizzle
	L2         TensorMapL2
	NaNFill    bool // elements outside read as NaN, not 0; float types only
}

// TensorMapType is the element type (CUtensorMapDataType).
type TensorMapType uint32

// Element types of tensor maps.
const (
	TensorMapUint8 TensorMapType = iota
	TensorMapUint16
	TensorMapUint32
	TensorMapInt32
	TensorMapUint64
	TensorMapInt64
	TensorMapFloat16
	TensorMapFloat32
	TensorMapFloat64
	TensorMapBFloat16
	TensorMapFloat32FTZ
	TensorMapTFloat32
	TensorMapTFloat32FTZ
)

// TensorMapInterleave is CUtensorMapInterleave.
type TensorMapInterleave uint32

// Interleaved layouts.
const (
	InterleaveNone TensorMapInterleave = iota
	Interleave16B
	Interleave32B
)

// TensorMapSwizzle is how a box is permuted in shared memory, against bank
// conflicts (CUtensorMapSwizzle).
type TensorMapSwizzle uint32

// Swizzles by their span in bytes, which the innermost box dimension must not exceed.
const (
	SwizzleNone TensorMapSwizzle = iota
	Swizzle32B
	Swizzle64B
	Swizzle128B
)

// TensorMapL2 is how much of memory a copy brings into L2 (CUtensorMapL2promotion).
type TensorMapL2 uint32

// Granularities of L2 promotion.
const (
	L2PromotionNone TensorMapL2 = iota
	L2Promotion64B
	L2Promotion128B
	L2Promotion256B
)

// EncodeTiled encodes a tensor map. The driver checks the rules of alignment and
// size; what it refuses matches ErrInvalidValue. It needs no device memory and
// runs on the host alone.
func (d *Driver) EncodeTiled(config TensorMapConfig) (*TensorMap, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	steps := config.Steps
	if steps == nil {
		steps = ones(len(config.Dims))
	}
	strides := append(config.Strides[:len(config.Strides):len(config.Strides)], 0) // never empty
	fill := uintptr(0)
	if config.NaNFill {
		fill = 1
	}
	encoded := aligned(len(TensorMap{}), tensorMapAlign)
	err := d.call(symTensorMapEncodeTiled, uintptr(unsafe.Pointer(&encoded[0])), uintptr(config.Type),
		uintptr(len(config.Dims)), uintptr(config.Address), uintptr(unsafe.Pointer(&config.Dims[0])),
		uintptr(unsafe.Pointer(&strides[0])), uintptr(unsafe.Pointer(&config.Box[0])),
		uintptr(unsafe.Pointer(&steps[0])), uintptr(config.Interleave), uintptr(config.Swizzle),
		uintptr(config.L2), fill)
	if err != nil {
		return nil, withDetail(err, fmt.Sprintf("encoding a tensor map from %+v", config))
	}
	return (*TensorMap)(encoded), nil
}

// check refuses lists whose lengths disagree: the driver would read past them.
func (c *TensorMapConfig) check() error {
	rank := len(c.Dims)
	if rank < 1 || rank > 5 || len(c.Strides) != rank-1 || len(c.Box) != rank ||
		(c.Steps != nil && len(c.Steps) != rank) {
		return fmt.Errorf("%w: a tensor map of %d dims, %d strides, box of %d, steps of %d: expected 1 to 5 "+
			"dims, one stride fewer, and a box and steps of as many", ErrInvalidValue,
			rank, len(c.Strides), len(c.Box), len(c.Steps))
	}
	return nil
}

func ones(n int) []uint32 {
	list := make([]uint32, n)
	for i := range list {
		list[i] = 1
	}
	return list
}
