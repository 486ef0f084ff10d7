package ir

import "fmt"

// DType is the element type of a tensor or scalar.
type DType uint8

// The element types. Index is the type of index expressions: an integer wide
// enough for any offset, never stored.
const (
	Invalid DType = iota
	Bool
	U8
	I8
	I16
	I32
	U32
	I64
	F8E4M3
	F8E5M2
	F16
	BF16
	F32
	F64
	Index
	numDTypes
)

// Kind groups dtypes by their arithmetic.
type Kind uint8

// The kinds, in promotion order.
const (
	KindBool Kind = iota
	KindInt
	KindFloat
)

// DTypeInfo is one row of the dtype table.
type DTypeInfo struct {
	Name     string
	Size     int // bytes in memory
	Kind     Kind
	Signed   bool
	Mantissa int     // explicit fraction bits of a float
	Max      float64 // largest finite value
	Epsilon  float64 // distance from 1 to the next float; 0 for integers
	Compute  DType   // type a fast kernel holds it in between load and store
}

var dtypes = [numDTypes]DTypeInfo{
	Invalid: {Name: "invalid", Compute: Invalid},
	Bool:    {Name: "bool", Size: 1, Kind: KindBool, Max: 1, Compute: Bool},
	U8:      {Name: "u8", Size: 1, Kind: KindInt, Max: 1<<8 - 1, Compute: U8},
	I8:      {Name: "i8", Size: 1, Kind: KindInt, Signed: true, Max: 1<<7 - 1, Compute: I8},
	I16:     {Name: "i16", Size: 2, Kind: KindInt, Signed: true, Max: 1<<15 - 1, Compute: I16},
	I32:     {Name: "i32", Size: 4, Kind: KindInt, Signed: true, Max: 1<<31 - 1, Compute: I32},
	U32:     {Name: "u32", Size: 4, Kind: KindInt, Max: 1<<32 - 1, Compute: U32},
	I64:     {Name: "i64", Size: 8, Kind: KindInt, Signed: true, Max: 1<<63 - 1, Compute: I64},
	F8E4M3:  {Name: "f8e4m3", Size: 1, Kind: KindFloat, Signed: true, Mantissa: 3, Max: 448, Epsilon: 0x1p-3, Compute: F32},
	F8E5M2:  {Name: "f8e5m2", Size: 1, Kind: KindFloat, Signed: true, Mantissa: 2, Max: 57344, Epsilon: 0x1p-2, Compute: F32},
	F16:     {Name: "f16", Size: 2, Kind: KindFloat, Signed: true, Mantissa: 10, Max: 65504, Epsilon: 0x1p-10, Compute: F32},
	BF16:    {Name: "bf16", Size: 2, Kind: KindFloat, Signed: true, Mantissa: 7, Max: 0x1.fep127, Epsilon: 0x1p-7, Compute: F32},
	F32:     {Name: "f32", Size: 4, Kind: KindFloat, Signed: true, Mantissa: 23, Max: 0x1.fffffep127, Epsilon: 0x1p-23, Compute: F32},
	F64:     {Name: "f64", Size: 8, Kind: KindFloat, Signed: true, Mantissa: 52, Max: 0x1.fffffffffffffp1023, Epsilon: 0x1p-52, Compute: F64},
	Index:   {Name: "index", Size: 8, Kind: KindInt, Signed: true, Max: 1<<63 - 1, Compute: Index},
}

// Info returns the dtype's row.
func (t DType) Info() DTypeInfo { return dtypes[t] }

// String returns the name used in .fuse programs.
func (t DType) String() string {
	if t >= numDTypes {
		return fmt.Sprintf("DType(%d)", uint8(t))
	}
	return dtypes[t].Name
}

// Size returns the bytes of one stored element.
func (t DType) Size() int { return dtypes[t].Size }

// IsFloat reports whether t is a floating-point type.
func (t DType) IsFloat() bool { return dtypes[t].Kind == KindFloat }

// IsInt reports whether t is an integer type; bool is not.
func (t DType) IsInt() bool { return dtypes[t].Kind == KindInt }

// Holds reports whether the float type wide has every value of the float type t: converting from t and back changes
// nothing.
func Holds(wide, t DType) bool {
	w, n := dtypes[wide], dtypes[t]
	return wide.IsFloat() && t.IsFloat() && w.Mantissa >= n.Mantissa && w.Max >= n.Max
}

// DTypes returns the types a tensor can have, in promotion order.
func DTypes() []DType {
	return []DType{Bool, U8, I8, I16, I32, U32, I64, F8E4M3, F8E5M2, F16, BF16, F32, F64}
}

// DTypeNamed returns the tensor dtype with the given name.
func DTypeNamed(name string) (DType, bool) {
	for _, t := range DTypes() {
		if dtypes[t].Name == name {
			return t, true
		}
	}
	return Invalid, false
}

// Promote returns the type of an arithmetic result of a and b: the wider of one
// kind; a float over an integer; f32 for two different floats of one size (f16
// with bf16); the next signed type that holds both for mixed signs.
func Promote(a, b DType) DType {
	if dtypes[a].Kind > dtypes[b].Kind {
		a, b = b, a
	}
	ia, ib := dtypes[a], dtypes[b]
	switch {
	case a == b || ia.Kind < ib.Kind:
		return b
	case ib.Kind == KindFloat && ia.Size == ib.Size:
		return F32
	case ib.Kind == KindFloat || ia.Signed == ib.Signed:
		return wider(a, b)
	}
	return promoteMixedSign(a, b)
}

func wider(a, b DType) DType {
	if dtypes[a].Size >= dtypes[b].Size {
		return a
	}
	return b
}

func promoteMixedSign(unsigned, signed DType) DType {
	if !dtypes[signed].Signed {
		unsigned, signed = signed, unsigned
	}
	for _, t := range []DType{signed, I16, I32} {
		if dtypes[t].Size > dtypes[unsigned].Size {
			return t
		}
	}
	return I64
}
