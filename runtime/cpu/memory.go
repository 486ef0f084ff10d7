package cpu

import (
	"encoding/binary"
	"math"
	"unsafe"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/num"
)

// The functions below move elements between buffers, which are bytes of any
// dtype, and tiles. An offset outside the buffer reads as outside and is not
// written: a wrong plan gives wrong numbers, never a crash.

// littleEndian says whether tiles can be views of buffers.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// viewF32 returns a view of n floats of src; nil if that is not possible.
func viewF32(src []byte, offset int64, n int) []float32 {
	p := slice(src, offset, n, 4)
	if p == nil || !littleEndian || uintptr(unsafe.Pointer(&p[0]))%4 != 0 {
		return nil
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(&p[0])), n)
}

func viewF64(src []byte, offset int64, n int) []float64 {
	p := slice(src, offset, n, 8)
	if p == nil || !littleEndian || uintptr(unsafe.Pointer(&p[0]))%8 != 0 {
		return nil
	}
	return unsafe.Slice((*float64)(unsafe.Pointer(&p[0])), n)
}

// slice returns the bytes of n elements; nil where they are not all inside.
func slice(b []byte, offset int64, n, size int) []byte {
	if n == 0 || offset < 0 || offset > int64(len(b)/size)-int64(n) {
		return nil
	}
	return b[int(offset)*size : (int(offset)+n)*size]
}

// loadRun reads consecutive elements.
func loadF32(dst []float32, t ir.DType, src []byte) {
	if v := viewF32(src, 0, len(dst)); t == ir.F32 && v != nil {
		copy(dst, v)
		return
	}
	if f, n := opsF32.widen[t], len(dst)&^7; f != nil && n > 0 {
		f(dst[:n], src)
		dst, src = dst[n:], src[n*t.Size():]
	}
	num.ToFloat32s(dst, t, src)
}

func loadF64(dst []float64, t ir.DType, src []byte) { num.ToFloat64s(dst, t, src) }

func loadInt(dst []int64, t ir.DType, src []byte) {
	switch t {
	case ir.I64:
		for i := range dst {
			dst[i] = int64(binary.LittleEndian.Uint64(src[8*i:]))
		}
	case ir.I32:
		for i := range dst {
			dst[i] = int64(int32(binary.LittleEndian.Uint32(src[4*i:])))
		}
	case ir.U8:
		src = src[:len(dst)]
		for i := range dst {
			dst[i] = int64(src[i])
		}
	case ir.Bool:
		src = src[:len(dst)]
		for i := range dst {
			dst[i] = truth(src[i] != 0)
		}
	default:
		num.ToInt64s(dst, t, src)
	}
}

func storeF32(dst []byte, t ir.DType, src []float32) {
	if v := viewF32(dst, 0, len(src)); t == ir.F32 && v != nil {
		copy(v, src)
		return
	}
	if f, n := opsF32.narrow[t], len(src)&^7; f != nil && n > 0 {
		f(dst, src[:n])
		dst, src = dst[n*t.Size():], src[n:]
	}
	num.FromFloat32s(dst, t, src)
}

func storeF64(dst []byte, t ir.DType, src []float64) { num.FromFloat64s(dst, t, src) }

func storeInt(dst []byte, t ir.DType, src []int64) {
	switch t {
	case ir.I64:
		for i, v := range src {
			binary.LittleEndian.PutUint64(dst[8*i:], uint64(v))
		}
	case ir.I32, ir.U32:
		for i, v := range src {
			binary.LittleEndian.PutUint32(dst[4*i:], uint32(v))
		}
	case ir.U8, ir.I8:
		dst = dst[:len(src)]
		for i, v := range src {
			dst[i] = byte(v)
		}
	default:
		num.FromInt64s(dst, t, src)
	}
}

// gatherF32 reads the elements at offsets.
func gatherF32(dst []float32, t ir.DType, src []byte, offsets []int64, outside float32) {
	offsets = offsets[:len(dst)]
	switch t {
	case ir.F32:
		for i, o := range offsets {
			dst[i] = outside
			if uint64(o) < uint64(len(src)/4) {
				dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*o:]))
			}
		}
	case ir.BF16:
		for i, o := range offsets {
			dst[i] = outside
			if uint64(o) < uint64(len(src)/2) {
				dst[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(src[2*o:])) << 16)
			}
		}
	default:
		size := t.Size()
		for i, o := range offsets {
			dst[i] = outside
			if uint64(o) < uint64(len(src)/size) {
				dst[i] = float32(num.Load(t, src[int(o)*size:]))
			}
		}
	}
}

func gatherF64(dst []float64, t ir.DType, src []byte, offsets []int64, outside float64) {
	size := t.Size()
	for i, o := range offsets[:len(dst)] {
		dst[i] = outside
		if uint64(o) < uint64(len(src)/size) {
			dst[i] = num.Load(t, src[int(o)*size:])
		}
	}
}

func gatherInt(dst []int64, t ir.DType, src []byte, offsets []int64, outside int64) {
	size := t.Size()
	for i, o := range offsets[:len(dst)] {
		dst[i] = outside
		if uint64(o) < uint64(len(src)/size) {
			dst[i] = num.LoadInt(t, src[int(o)*size:])
		}
	}
}

// scatter writes the elements at offsets, in order.
func scatterF32(dst []byte, t ir.DType, src []float32, offsets []int64) {
	size := t.Size()
	for i, o := range offsets[:len(src)] {
		if p := slice(dst, o, 1, size); p != nil {
			storeF32(p, t, src[i:i+1])
		}
	}
}

func scatterF64(dst []byte, t ir.DType, src []float64, offsets []int64) {
	size := t.Size()
	for i, o := range offsets[:len(src)] {
		if p := slice(dst, o, 1, size); p != nil {
			num.Store(t, p, src[i])
		}
	}
}

func scatterInt(dst []byte, t ir.DType, src []int64, offsets []int64) {
	size := t.Size()
	for i, o := range offsets[:len(src)] {
		if p := slice(dst, o, 1, size); p != nil {
			num.StoreInt(t, p, src[i])
		}
	}
}
