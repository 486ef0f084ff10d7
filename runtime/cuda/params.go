package cuda

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"
)

// Params are the argument values of one launch, in memory that C may read. The
// driver copies them when the launch is queued, so that one Params serves many
// launches, one at a time: it is not safe for concurrent use.
//
// Each setter panics where the argument has another size, as indexing out of
// range does: the caller knows the kernel's signature.
type Params struct {
	block    []byte    // the values, each aligned to its size
	offsets  []int     // of the values in block
	sizes    []int     // bytes
	pointers []uintptr // to the values: the void** that the driver takes
}

// NewParams lays out arguments of the given sizes in bytes.
func NewParams(sizes ...int) *Params {
	p := &Params{sizes: sizes, offsets: make([]int, len(sizes))}
	total := 0
	for i, size := range sizes {
		if size <= 0 {
			panic(fmt.Sprintf("BUG: kernel argument %d has %d bytes", i, size))
		}
		align := argumentAlignment(size)
		p.offsets[i] = (total + align - 1) &^ (align - 1)
		total = p.offsets[i] + size
	}
	p.fix(total)
	return p
}

// argumentAlignment is the power of two, at most that of a tensor map, that an
// argument of so many bytes may ask for.
func argumentAlignment(size int) int {
	align := 1
	for align < size && align < tensorMapAlign {
		align *= 2
	}
	return align
}

// fix allocates the block and the pointers into it, and pins both: addresses of
// both are stored where the collector does not look.
func (p *Params) fix(total int) {
	if total == 0 {
		return
	}
	p.block = aligned(total, tensorMapAlign)
	p.pointers = make([]uintptr, len(p.sizes))
	pin(p, unsafe.Pointer(&p.block[0]), unsafe.Pointer(&p.pointers[0]))
	for i, offset := range p.offsets {
		p.pointers[i] = uintptr(unsafe.Pointer(&p.block[offset]))
	}
}

// Len is the number of arguments.
func (p *Params) Len() int { return len(p.sizes) }

// slot is the memory of argument i, which must have size bytes.
func (p *Params) slot(i, size int) []byte {
	if p.sizes[i] != size {
		panic(fmt.Sprintf("BUG: kernel argument %d has %d bytes and is set to a value of %d",
			i, p.sizes[i], size))
	}
	return p.block[p.offsets[i]:][:size]
}

// SetPointer sets an argument of 8 bytes.
func (p *Params) SetPointer(i int, value DevicePtr) { p.SetUint64(i, uint64(value)) }

// SetUint64 sets an argument of 8 bytes.
func (p *Params) SetUint64(i int, value uint64) { binary.NativeEndian.PutUint64(p.slot(i, 8), value) }

// SetInt64 sets an argument of 8 bytes.
func (p *Params) SetInt64(i int, value int64) { p.SetUint64(i, uint64(value)) }

// SetFloat64 sets an argument of 8 bytes.
func (p *Params) SetFloat64(i int, value float64) { p.SetUint64(i, math.Float64bits(value)) }

// SetUint32 sets an argument of 4 bytes.
func (p *Params) SetUint32(i int, value uint32) { binary.NativeEndian.PutUint32(p.slot(i, 4), value) }

// SetInt32 sets an argument of 4 bytes.
func (p *Params) SetInt32(i int, value int32) { p.SetUint32(i, uint32(value)) }

// SetFloat32 sets an argument of 4 bytes.
func (p *Params) SetFloat32(i int, value float32) { p.SetUint32(i, math.Float32bits(value)) }

// SetTensorMap sets an argument that the kernel takes by value as
// const __grid_constant__, 128 bytes aligned to 64.
func (p *Params) SetTensorMap(i int, value *TensorMap) { p.SetBytes(i, value[:]) }

// SetBytes sets an argument of any type from its bytes in memory.
func (p *Params) SetBytes(i int, value []byte) { copy(p.slot(i, len(value)), value) }
