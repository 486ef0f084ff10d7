package num

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/fusec/fusec/ir"
)

// ToFloat32s converts len(dst) elements of type t in src. f64 and wide integers
// are rounded.
func ToFloat32s(dst []float32, t ir.DType, src []byte) { toFloats(dst, t, src) }

// ToFloat64s converts len(dst) elements of type t in src.
func ToFloat64s(dst []float64, t ir.DType, src []byte) { toFloats(dst, t, src) }

// ToInt64s converts len(dst) elements of type t in src; integers are exact.
func ToInt64s(dst []int64, t ir.DType, src []byte) {
	n := t.Size()
	checkLen(t, src, len(dst))
	for i := range dst {
		dst[i] = LoadInt(t, src[i*n:])
	}
}

// FromFloat32s stores src as len(src) elements of type t in dst.
func FromFloat32s(dst []byte, t ir.DType, src []float32) {
	checkLen(t, dst, len(src))
	switch t {
	case ir.F32:
		for i, v := range src {
			binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(v))
		}
	case ir.BF16:
		for i, v := range src {
			binary.LittleEndian.PutUint16(dst[2*i:], BF16Bits(v))
		}
	case ir.F16:
		for i, v := range src {
			binary.LittleEndian.PutUint16(dst[2*i:], F16Bits(v))
		}
	case ir.F8E4M3:
		for i, v := range src {
			dst[i] = F8E4M3Bits(v)
		}
	case ir.F8E5M2:
		for i, v := range src {
			dst[i] = F8E5M2Bits(v)
		}
	default:
		for i, n := 0, t.Size(); i < len(src); i++ {
			Store(t, dst[i*n:], float64(src[i]))
		}
	}
}

// FromFloat64s stores src as len(src) elements of type t in dst.
func FromFloat64s(dst []byte, t ir.DType, src []float64) {
	n := t.Size()
	checkLen(t, dst, len(src))
	for i, v := range src {
		Store(t, dst[i*n:], v)
	}
}

// FromInt64s stores src as len(src) elements of type t in dst.
func FromInt64s(dst []byte, t ir.DType, src []int64) {
	n := t.Size()
	checkLen(t, dst, len(src))
	for i, v := range src {
		StoreInt(t, dst[i*n:], v)
	}
}

// Convert stores the elements of type from in src as elements of type to in dst.
// Integers stay integers all the way.
func Convert(dst []byte, to ir.DType, src []byte, from ir.DType) {
	n, m := to.Size(), from.Size()
	if m == 0 || n == 0 {
		panic(badType(from))
	}
	count := len(src) / m
	checkLen(from, src, count)
	checkLen(to, dst, count)
	switch {
	case to == from && to != ir.Bool:
		copy(dst, src)
	case from.IsFloat():
		for i := range count {
			Store(to, dst[i*n:], Load(from, src[i*m:]))
		}
	default:
		for i := range count {
			StoreInt(to, dst[i*n:], LoadInt(from, src[i*m:]))
		}
	}
}

// toFloats has one plain loop a type: the reader of a file spends its time here.
func toFloats[F float32 | float64](dst []F, t ir.DType, src []byte) {
	checkLen(t, src, len(dst))
	switch t {
	case ir.Bool:
		for i := range dst {
			dst[i] = F(boolByte(src[i] != 0))
		}
	case ir.U8:
		for i := range dst {
			dst[i] = F(src[i])
		}
	case ir.I8:
		for i := range dst {
			dst[i] = F(int8(src[i]))
		}
	case ir.F8E4M3:
		for i := range dst {
			dst[i] = F(tabE4M3[src[i]])
		}
	case ir.F8E5M2:
		for i := range dst {
			dst[i] = F(tabE5M2[src[i]])
		}
	default:
		toFloatsWide(dst, t, src)
	}
}

func toFloatsWide[F float32 | float64](dst []F, t ir.DType, src []byte) {
	switch t {
	case ir.BF16:
		for len(dst) >= 4 && len(src) >= 8 {
			u := binary.LittleEndian.Uint64(src)
			dst[0], dst[1] = F(BF16Value(uint16(u))), F(BF16Value(uint16(u>>16)))
			dst[2], dst[3] = F(BF16Value(uint16(u>>32))), F(BF16Value(uint16(u>>48)))
			dst, src = dst[4:], src[8:]
		}
		for i := range dst {
			dst[i] = F(BF16Value(binary.LittleEndian.Uint16(src[2*i:])))
		}
	case ir.F16:
		for len(dst) >= 4 && len(src) >= 8 {
			u := binary.LittleEndian.Uint64(src)
			dst[0], dst[1] = F(F16Value(uint16(u))), F(F16Value(uint16(u>>16)))
			dst[2], dst[3] = F(F16Value(uint16(u>>32))), F(F16Value(uint16(u>>48)))
			dst, src = dst[4:], src[8:]
		}
		for i := range dst {
			dst[i] = F(F16Value(binary.LittleEndian.Uint16(src[2*i:])))
		}
	case ir.F32:
		for i := range dst {
			dst[i] = F(math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:])))
		}
	case ir.F64:
		for i := range dst {
			dst[i] = F(math.Float64frombits(binary.LittleEndian.Uint64(src[8*i:])))
		}
	default:
		for i, n := 0, t.Size(); i < len(dst); i++ {
			dst[i] = F(LoadInt(t, src[i*n:]))
		}
	}
}

func checkLen(t ir.DType, b []byte, n int) {
	if t == ir.Invalid || len(b) != n*t.Size() {
		panic(fmt.Sprintf("BUG: num: %d bytes for %d elements of %v", len(b), n, t))
	}
}
