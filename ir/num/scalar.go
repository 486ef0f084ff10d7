package num

import (
	"encoding/binary"
	"math"

	"github.com/fusec/fusec/ir"
)

// Load returns the element of type t at the start of b. i64 values beyond 2^53
// are rounded; LoadInt is exact.
func Load(t ir.DType, b []byte) float64 {
	switch t {
	case ir.F64:
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	case ir.F32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	case ir.BF16:
		return float64(BF16Value(binary.LittleEndian.Uint16(b)))
	case ir.F16:
		return float64(F16Value(binary.LittleEndian.Uint16(b)))
	case ir.F8E4M3:
		return float64(tabE4M3[b[0]])
	case ir.F8E5M2:
		return float64(tabE5M2[b[0]])
	}
	return float64(LoadInt(t, b))
}

// Store writes v as an element of type t at the start of b.
func Store(t ir.DType, b []byte, v float64) {
	switch t {
	case ir.F64:
		binary.LittleEndian.PutUint64(b, math.Float64bits(v))
	case ir.F32:
		binary.LittleEndian.PutUint32(b, math.Float32bits(float32(v)))
	case ir.BF16:
		binary.LittleEndian.PutUint16(b, fmtBF16.encode64(v))
	case ir.F16:
		binary.LittleEndian.PutUint16(b, fmtF16.encode64(v))
	case ir.F8E4M3:
		b[0] = uint8(fmtE4M3.encode64(v))
	case ir.F8E5M2:
		b[0] = uint8(fmtE5M2.encode64(v))
	default:
		StoreInt(t, b, FloatToInt(t, v))
	}
}

// LoadInt returns the element of type t at the start of b as an integer: exact
// for integers and bool, as FloatToInt(ir.I64, v) for floats.
func LoadInt(t ir.DType, b []byte) int64 {
	switch t {
	case ir.Bool:
		return int64(boolByte(b[0] != 0))
	case ir.U8:
		return int64(b[0])
	case ir.I8:
		return int64(int8(b[0]))
	case ir.I16:
		return int64(int16(binary.LittleEndian.Uint16(b)))
	case ir.I32:
		return int64(int32(binary.LittleEndian.Uint32(b)))
	case ir.U32:
		return int64(binary.LittleEndian.Uint32(b))
	case ir.I64, ir.Index:
		return int64(binary.LittleEndian.Uint64(b))
	}
	if !t.IsFloat() {
		panic(badType(t))
	}
	return FloatToInt(ir.I64, Load(t, b))
}

// StoreInt writes v as an element of type t at the start of b: wrapped for
// integers, rounded once for floats.
func StoreInt(t ir.DType, b []byte, v int64) {
	switch t {
	case ir.Bool:
		b[0] = boolByte(v != 0)
	case ir.U8, ir.I8:
		b[0] = uint8(v)
	case ir.I16:
		binary.LittleEndian.PutUint16(b, uint16(v))
	case ir.I32, ir.U32:
		binary.LittleEndian.PutUint32(b, uint32(v))
	case ir.I64, ir.Index:
		binary.LittleEndian.PutUint64(b, uint64(v))
	case ir.F64:
		Store(t, b, float64(v))
	default:
		if !t.IsFloat() {
			panic(badType(t))
		}
		Store(t, b, intToFloat(v))
	}
}
