package tensor

import "github.com/fusec/fusec/ir/num"

// The narrow floats, which Go does not have: their bits, as memory holds them. The types keep
// them apart from integers and from each other.
type (
	BF16   uint16 // bfloat16
	F16    uint16 // IEEE half precision
	F8E4M3 uint8  // 8 bits, 4 of them exponent
	F8E5M2 uint8  // 8 bits, 5 of them exponent
)

// ToBF16 returns the bf16 nearest to v.
func ToBF16(v float32) BF16 { return BF16(num.BF16Bits(v)) }

// ToF16 returns the f16 nearest to v.
func ToF16(v float32) F16 { return F16(num.F16Bits(v)) }

// ToF8E4M3 returns the f8e4m3 nearest to v; what is too large becomes the largest number.
func ToF8E4M3(v float32) F8E4M3 { return F8E4M3(num.F8E4M3Bits(v)) }

// ToF8E5M2 returns the f8e5m2 nearest to v; what is too large becomes the largest number.
func ToF8E5M2(v float32) F8E5M2 { return F8E5M2(num.F8E5M2Bits(v)) }

// Float32 is the number, exactly.
func (b BF16) Float32() float32 { return num.BF16Value(uint16(b)) }

// Float32 is the number, exactly.
func (b F16) Float32() float32 { return num.F16Value(uint16(b)) }

// Float32 is the number, exactly.
func (b F8E4M3) Float32() float32 { return num.F8E4M3Value(uint8(b)) }

// Float32 is the number, exactly.
func (b F8E5M2) Float32() float32 { return num.F8E5M2Value(uint8(b)) }
