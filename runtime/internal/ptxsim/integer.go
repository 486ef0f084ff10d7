package ptxsim

import (
	"math/bits"
	"strings"
	"unsafe"
)

// integer is the types of integer instructions.
type integer interface {
	uint16 | uint32 | uint64 | int16 | int32 | int64
}

// widthOf is a type's bits.
func widthOf[T integer]() int {
	var t T
	return 8 * int(unsafe.Sizeof(t))
}

// ones is the mask of a type's bits: a register holds nothing above them.
func ones[T integer]() uint64 { return ^uint64(0) >> (64 - widthOf[T]()) }

// integerOperation is what an integer instruction computes; nil where it is none.
func integerOperation(s *statement) operation {
	if len(s.Mods) == 0 {
		return nil
	}
	typ, how := s.last(), s.Mods[:len(s.Mods)-1]
	if typ == "relu" && len(how) == 1 { // max.s32.relu, as CUDA's headers write it
		typ, how = how[0], s.Mods[1:]
	}
	op := strings.Join(append([]string{s.Op}, how...), ".")
	switch typ {
	case "u16":
		return integerOf[uint16](op)
	case "u32":
		return integerOf[uint32](op)
	case "u64":
		return integerOf[uint64](op)
	case "s16":
		return integerOf[int16](op)
	case "s32":
		return saturatingOf(op, integerOf[int32](op))
	case "s64":
		return integerOf[int64](op)
	case "u16x2":
		return inHalves(halfwords[uint16](op), 16)
	case "s16x2":
		return inHalves(halfwords[int16](op), 16)
	}
	return nil
}

// integerOf is the operations of a type.
func integerOf[T integer](op string) operation {
	if f := integerLoop[T](op); f != nil {
		return f
	}
	switch op {
	case "div":
		return single2(func(a, b uint64) uint64 { return quotient(T(a), T(b)) })
	case "rem":
		return single2(func(a, b uint64) uint64 { return remainder(T(a), T(b)) })
	case "mul.hi":
		return single2(func(a, b uint64) uint64 { return high(T(a), T(b)) })
	case "mad.hi":
		return single3(func(a, b, c uint64) uint64 { return uint64(T(high(T(a), T(b)))+T(c)) & ones[T]() })
	case "sad":
		return single3(func(a, b, c uint64) uint64 {
			x, y := T(a), T(b)
			return uint64(max(x, y)-min(x, y)+T(c)) & ones[T]()
		})
	case "mul24.lo":
		return single2(func(a, b uint64) uint64 { return product24[T](a, b) & ones[T]() })
	case "mul24.hi":
		return single2(func(a, b uint64) uint64 { return product24[T](a, b) >> 16 & ones[T]() })
	case "mad24.lo":
		return single3(func(a, b, c uint64) uint64 { return (product24[T](a, b) + c) & ones[T]() })
	case "mad24.hi":
		return single3(func(a, b, c uint64) uint64 { return (product24[T](a, b)>>16 + c) & ones[T]() })
	case "min.relu":
		return single2(func(a, b uint64) uint64 { return uint64(max(min(T(a), T(b)), 0)) & ones[T]() })
	case "max.relu":
		return single2(func(a, b uint64) uint64 { return uint64(max(T(a), T(b), 0)) & ones[T]() })
	}
	return nil
}

// integerLoop is the operations that kernels are made of, as loops.
func integerLoop[T integer](op string) operation {
	keep := ones[T]()
	wide := ^uint64(0) >> max(64-2*widthOf[T](), 0)
	switch op {
	case "add":
		return whole2(func(d, a, b *lanes) {
			for i := range d {
				d[i] = (a[i] + b[i]) & keep
			}
		})
	case "sub":
		return whole2(func(d, a, b *lanes) {
			for i := range d {
				d[i] = (a[i] - b[i]) & keep
			}
		})
	case "mul.lo":
		return whole2(func(d, a, b *lanes) {
			for i := range d {
				d[i] = a[i] * b[i] & keep
			}
		})
	case "mul.wide": // of 16 and 32 bits
		return whole2(func(d, a, b *lanes) {
			for i := range d {
				d[i] = uint64(int64(T(a[i]))*int64(T(b[i]))) & wide
			}
		})
	case "mad.lo":
		return whole3(func(d, a, b, c *lanes) {
			for i := range d {
				d[i] = (a[i]*b[i] + c[i]) & keep
			}
		})
	case "mad.wide":
		return whole3(func(d, a, b, c *lanes) {
			for i := range d {
				d[i] = (uint64(int64(T(a[i]))*int64(T(b[i]))) + c[i]) & wide
			}
		})
	case "min":
		return whole2(func(d, a, b *lanes) {
			for i := range d {
				d[i] = uint64(min(T(a[i]), T(b[i]))) & keep
			}
		})
	case "max":
		return whole2(func(d, a, b *lanes) {
			for i := range d {
				d[i] = uint64(max(T(a[i]), T(b[i]))) & keep
			}
		})
	case "neg":
		return whole1(func(d, a *lanes) {
			for i := range d {
				d[i] = -a[i] & keep
			}
		})
	case "abs":
		return whole1(func(d, a *lanes) {
			for i := range d {
				x := T(a[i])
				d[i] = uint64(max(x, -x)) & keep
			}
		})
	}
	return nil
}

// quotient is a/b towards zero. Of b = 0 the ISA leaves it open; GPUs give all ones. Go
// wraps as they do where the quotient is too large.
func quotient[T integer](a, b T) uint64 {
	if b == 0 {
		return ones[T]()
	}
	return uint64(a/b) & ones[T]()
}

// remainder is of quotient, and all ones for b = 0 too.
func remainder[T integer](a, b T) uint64 {
	if b == 0 {
		return ones[T]()
	}
	return uint64(a%b) & ones[T]()
}

// high is the upper half of a product.
func high[T integer](a, b T) uint64 {
	if n := widthOf[T](); n < 64 {
		return uint64(int64(a)*int64(b)) >> n & ones[T]()
	}
	hi, _ := bits.Mul64(uint64(a), uint64(b))
	if a < 0 {
		hi -= uint64(b)
	}
	if b < 0 {
		hi -= uint64(a)
	}
	return hi
}

// product24 is the 48 bits of a product of 24, sign-extended for signed types.
func product24[T integer](a, b uint64) uint64 {
	const up = 32 - 24
	return uint64((int64(T(a<<up)) >> up) * (int64(T(b<<up)) >> up))
}

// saturatingOf adds the forms that clamp, which only s32 has.
func saturatingOf(op string, f operation) operation {
	switch op {
	case "add.sat":
		return single2(func(a, b uint64) uint64 { return clamp32(int64(int32(a)) + int64(int32(b))) })
	case "sub.sat":
		return single2(func(a, b uint64) uint64 { return clamp32(int64(int32(a)) - int64(int32(b))) })
	case "mad.hi.sat":
		return single3(func(a, b, c uint64) uint64 {
			return clamp32(int64(int32(high(int32(a), int32(b)))) + int64(int32(c)))
		})
	case "mad24.hi.sat":
		return single3(func(a, b, c uint64) uint64 {
			return clamp32(int64(int32(product24[int32](a, b)>>16)) + int64(int32(c)))
		})
	}
	return f
}

func clamp32(v int64) uint64 { return uint64(uint32(max(min(v, 1<<31-1), -1<<31))) }

// halfwords is the operations that have a form with two 16-bit numbers in a register.
func halfwords[T uint16 | int16](op string) operation {
	switch op {
	case "add":
		return single2(func(a, b uint64) uint64 { return (a + b) & 0xffff })
	case "min":
		return single2(func(a, b uint64) uint64 { return uint64(min(T(a), T(b))) & 0xffff })
	case "max":
		return single2(func(a, b uint64) uint64 { return uint64(max(T(a), T(b))) & 0xffff })
	case "min.relu", "max.relu":
		return integerOf[T](op)
	}
	return nil
}
