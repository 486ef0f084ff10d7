package ptxsim

import (
	"encoding/binary"
	"math"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/num"
)

// An element is a type of a matrix's elements, as many in a register as there is room
// for, the first lowest. Every one is an f64 exactly.
type element struct {
	count  int                             // in a register
	decode func(to []float64, word uint64) // takes a register apart
	encode func(from []float64) uint64     // rounds; of types that results have
	plain  bool                            // it is f32
}

// elements are the types of operands and results, by the modifier that names them.
var elements = map[string]element{
	"f16":  {2, decodeF16, encodeF16, false},
	"bf16": {2, decodeBF16, nil, false},
	"tf32": {1, decodeTF32, nil, false},
	"f32":  {1, decodeF32, encodeF32, true},
	"f64":  {1, decodeF64, encodeF64, false},
	"e4m3": {4, decodeE4M3, nil, false},
	"e5m2": {4, decodeE5M2, nil, false},
	"s32":  {1, decodeS32, encodeWrapped, false},
	"s8":   {4, decodeS8, nil, false},
	"u8":   {4, decodeU8, nil, false},
	"s4":   {8, decodeS4, nil, false},
	"u4":   {8, decodeU4, nil, false},
}

func decodeF16(to []float64, word uint64) {
	_ = to[1]
	to[0] = float64(num.F16Value(uint16(word)))
	to[1] = float64(num.F16Value(uint16(word >> 16)))
}

func decodeBF16(to []float64, word uint64) {
	_ = to[1]
	to[0] = float64(math.Float32frombits(uint32(word) << 16))
	to[1] = float64(math.Float32frombits(uint32(word) &^ 0xffff))
}

// decodeTF32 leaves out the low 13 bits of an f32: the tensor cores do not see them.
func decodeTF32(to []float64, word uint64) {
	to[0] = float64(math.Float32frombits(uint32(word) &^ 0x1fff))
}

func decodeF32(to []float64, word uint64) { to[0] = float64(math.Float32frombits(uint32(word))) }

func decodeF64(to []float64, word uint64) { to[0] = math.Float64frombits(word) }

func decodeE4M3(to []float64, word uint64) {
	for i := range to[:4] {
		to[i] = float64(num.F8E4M3Value(uint8(word >> (8 * i))))
	}
}

func decodeE5M2(to []float64, word uint64) {
	for i := range to[:4] {
		to[i] = float64(num.F8E5M2Value(uint8(word >> (8 * i))))
	}
}

func decodeS32(to []float64, word uint64) { to[0] = float64(int32(word)) }

func decodeS8(to []float64, word uint64) {
	for i := range to[:4] {
		to[i] = float64(int8(word >> (8 * i)))
	}
}

func decodeU8(to []float64, word uint64) {
	for i := range to[:4] {
		to[i] = float64(uint8(word >> (8 * i)))
	}
}

func decodeS4(to []float64, word uint64) {
	for i := range to[:8] {
		to[i] = float64(int8(word>>(4*i)<<4) >> 4)
	}
}

func decodeU4(to []float64, word uint64) {
	for i := range to[:8] {
		to[i] = float64(word >> (4 * i) & 15)
	}
}

func encodeF16(from []float64) uint64 { return halfBits(from[0]) | halfBits(from[1])<<16 }

// halfBits rounds once: through f32 it would be twice.
func halfBits(v float64) uint64 {
	if v != v {
		return 0x7fff // the only NaN that tensor cores make
	}
	var b [2]byte
	num.Store(ir.F16, b[:], v)
	return uint64(binary.LittleEndian.Uint16(b[:]))
}

func encodeF32(from []float64) uint64 { return floatBits(from[0]) }

func floatBits(v float64) uint64 {
	if v != v {
		return 0x7fffffff
	}
	return uint64(math.Float32bits(float32(v)))
}

func encodeF64(from []float64) uint64 { return math.Float64bits(from[0]) }

// encodeWrapped keeps the low bits of a sum of integers, which are exact in f64.
func encodeWrapped(from []float64) uint64 { return uint64(uint32(int64(from[0]))) }

// encodeSaturated is what .satfinite makes of it.
func encodeSaturated(from []float64) uint64 {
	return uint64(uint32(int32(max(math.MinInt32, min(math.MaxInt32, from[0])))))
}
