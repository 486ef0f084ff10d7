// Package num holds the element encodings: how a value of each ir.DType lies in
// memory, and what every conversion between two of them gives.
//
// Elements are little-endian, as on the devices. The package must not know
// tensors, shapes, files or devices: it sees bytes, numbers and a dtype.
//
// # Conversions
//
//   - To a float: round to nearest, ties to even, once, straight from the source
//     value. Subnormals are kept. f16, bf16 and f32 overflow to infinity. f8e4m3
//     (no infinity) and f8e5m2 saturate to the largest finite value, infinities
//     included: that is satfinite, the only form the devices convert to f8 with.
//     An f8e5m2 infinity that is already in memory still loads as infinity.
//   - NaN stays NaN. f16 and bf16 keep its sign and upper payload bits (made
//     quiet); the 8-bit floats store the canonical 0x7f.
//   - Float to integer: truncate towards zero, saturate, NaN gives 0.
//   - Integer to narrower integer: wrap (two's complement).
//   - To bool: anything but zero is true, NaN included.
//
// i64 does not survive a trip through float64; LoadInt, StoreInt, ToInt64s,
// FromInt64s and Convert are the exact paths for integers.
//
// Every function is pure and safe for concurrent use on distinct destinations.
// Slice lengths that do not match are broken invariants of the caller and panic.
package num

import (
	"fmt"

	"github.com/fusec/fusec/ir"
)

// Round returns the value that v has after it was stored as t.
func Round(t ir.DType, v float64) float64 {
	switch t {
	case ir.F64:
		return v
	case ir.F32:
		return float64(float32(v))
	case ir.F16:
		return float64(F16Value(fmtF16.encode64(v)))
	case ir.BF16:
		return float64(BF16Value(fmtBF16.encode64(v)))
	}
	var b [8]byte
	Store(t, b[:], v)
	return Load(t, b[:])
}

// RoundInt returns the value that v has after it was stored as t, an integer
// type or bool: wrapped to its width.
func RoundInt(t ir.DType, v int64) int64 {
	switch t {
	case ir.Bool:
		return int64(boolByte(v != 0))
	case ir.U8:
		return int64(uint8(v))
	case ir.I8:
		return int64(int8(v))
	case ir.I16:
		return int64(int16(v))
	case ir.I32:
		return int64(int32(v))
	case ir.U32:
		return int64(uint32(v))
	case ir.I64, ir.Index:
		return v
	}
	panic(badType(t))
}

// FloatToInt truncates v towards zero into the integer type t, saturating; NaN
// gives 0.
func FloatToInt(t ir.DType, v float64) int64 {
	switch t {
	case ir.Bool:
		return int64(boolByte(v != 0))
	case ir.U8:
		return saturate(v, 0, 1<<8-1)
	case ir.I8:
		return saturate(v, -1<<7, 1<<7-1)
	case ir.I16:
		return saturate(v, -1<<15, 1<<15-1)
	case ir.I32:
		return saturate(v, -1<<31, 1<<31-1)
	case ir.U32:
		return saturate(v, 0, 1<<32-1)
	case ir.I64, ir.Index:
		return saturate(v, -1<<63, 1<<63-1)
	}
	panic(badType(t))
}

func saturate(v float64, lo, hi int64) int64 {
	switch {
	case v != v:
		return 0
	case v <= float64(lo):
		return lo
	case v >= float64(hi):
		return hi
	}
	return int64(v)
}

// FromInt returns the value that v has after it was stored as the float type t: rounded
// once, straight from the integer.
func FromInt(t ir.DType, v int64) float64 {
	if t == ir.F64 {
		return float64(v)
	}
	return Round(t, intToFloat(v))
}

// intToFloat converts so that a later rounding to a narrower float is the only
// one: what float64 cannot hold is kept as a sticky last bit (round to odd).
func intToFloat(v int64) float64 {
	if v > -1<<53 && v < 1<<53 {
		return float64(v)
	}
	const low = 1<<11 - 1
	if v&low != 0 {
		v = v&^low | 1<<11
	}
	return float64(v)
}

func boolByte(v bool) byte {
	if v {
		return 1
	}
	return 0
}

func badType(t ir.DType) string {
	return fmt.Sprintf("BUG: num: no conversion for element type %v", t)
}
