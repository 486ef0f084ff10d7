package cpu

import (
	"math"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/num"
)

// The vector primitives: plain loops over tiles, written so that the compiler
// drops the bounds checks. All slices of one call have one length; dst may be
// one of the arguments.

type float interface{ float32 | float64 }

type element interface{ float32 | float64 | int64 }

func addVV[T element](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] + b[i]
	}
}

func subVV[T element](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] - b[i]
	}
}

func mulVV[T element](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] * b[i]
	}
}

func divVV[T float](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] / b[i]
	}
}

func maxVV[T element](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = max(a[i], b[i])
	}
}

func minVV[T element](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = min(a[i], b[i])
	}
}

func addVS[T element](dst, a []T, b T) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = a[i] + b
	}
}

func subVS[T element](dst, a []T, b T) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = a[i] - b
	}
}

func mulVS[T element](dst, a []T, b T) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = a[i] * b
	}
}

func divVS[T float](dst, a []T, b T) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = a[i] / b
	}
}

func maxVS[T element](dst, a []T, b T) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = max(a[i], b)
	}
}

func minVS[T element](dst, a []T, b T) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = min(a[i], b)
	}
}

// axpy is dst += a*x.
func axpy[T element](dst, x []T, a T) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] += a * x[i]
	}
}

// mulAdd is dst += a*b.
func mulAdd[T element](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] += a[i] * b[i]
	}
}

func fill[T any](dst []T, v T) {
	for i := range dst {
		dst[i] = v
	}
}

// sum adds in eight lanes, which are then added in a fixed tree.
func sum[T element](a []T) T {
	var s0, s1, s2, s3, s4, s5, s6, s7 T
	for len(a) >= 8 {
		s0, s1, s2, s3 = s0+a[0], s1+a[1], s2+a[2], s3+a[3]
		s4, s5, s6, s7 = s4+a[4], s5+a[5], s6+a[6], s7+a[7]
		a = a[8:]
	}
	for i, v := range a {
		if i&1 == 0 {
			s0 += v
		} else {
			s1 += v
		}
	}
	return ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))
}

// dot is sum(a*b), in the order of sum.
func dot[T element](a, b []T) T {
	var s0, s1, s2, s3, s4, s5, s6, s7 T
	b = b[:len(a)]
	for len(a) >= 8 && len(b) >= 8 {
		s0, s1, s2, s3 = s0+a[0]*b[0], s1+a[1]*b[1], s2+a[2]*b[2], s3+a[3]*b[3]
		s4, s5, s6, s7 = s4+a[4]*b[4], s5+a[5]*b[5], s6+a[6]*b[6], s7+a[7]*b[7]
		a, b = a[8:], b[8:]
	}
	for i, v := range a {
		if i&1 == 0 {
			s0 += v * b[i]
		} else {
			s1 += v * b[i]
		}
	}
	return ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))
}

// largest is the maximum with identity for nothing, NaN if any is.
func largest[T element](a []T, identity T) T {
	m0, m1, m2, m3 := identity, identity, identity, identity
	for len(a) >= 4 {
		m0, m1, m2, m3 = max(m0, a[0]), max(m1, a[1]), max(m2, a[2]), max(m3, a[3])
		a = a[4:]
	}
	for _, v := range a {
		m0 = max(m0, v)
	}
	return max(max(m0, m1), max(m2, m3))
}

func smallest[T element](a []T, identity T) T {
	m := identity
	for _, v := range a {
		m = min(m, v)
	}
	return m
}

// selectV is dst = c ? a : b without a branch; c holds 0 and 1.
func selectF32(dst []float32, c []int64, a, b []float32) {
	c, a, b = c[:len(dst)], a[:len(dst)], b[:len(dst)]
	for i := range dst {
		m := uint32(-c[i])
		dst[i] = math.Float32frombits(math.Float32bits(a[i])&m | math.Float32bits(b[i])&^m)
	}
}

func selectAny[T element](dst []T, c []int64, a, b []T) {
	c, a, b = c[:len(dst)], a[:len(dst)], b[:len(dst)]
	for i := range dst {
		if c[i] != 0 {
			dst[i] = a[i]
		} else {
			dst[i] = b[i]
		}
	}
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func ltVV[T element](dst []int64, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = truth(a[i] < b[i])
	}
}

func leVV[T element](dst []int64, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = truth(a[i] <= b[i])
	}
}

func eqVV[T element](dst []int64, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = truth(a[i] == b[i])
	}
}

func neVV[T element](dst []int64, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = truth(a[i] != b[i])
	}
}

func andVV(dst, a, b []int64) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] & b[i]
	}
}

func orVV(dst, a, b []int64) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] | b[i]
	}
}

// convert changes the element type of a tile; to integers only from integers.
func convert[D, S element](dst []D, a []S) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = D(a[i])
	}
}

// truncate converts floats to the integer type t as casts do.
func truncate[S float](dst []int64, a []S, t ir.DType) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = num.FloatToInt(t, float64(a[i]))
	}
}

// wrap brings integers to the width of t.
func wrap(dst, a []int64, t ir.DType) {
	a = a[:len(dst)]
	switch t {
	case ir.I32:
		for i := range dst {
			dst[i] = int64(int32(a[i]))
		}
	case ir.U32:
		for i := range dst {
			dst[i] = int64(uint32(a[i]))
		}
	default:
		for i := range dst {
			dst[i] = num.RoundInt(t, a[i])
		}
	}
}

// roundTo rounds floats to what t stores.
func roundTo[T float](dst, a []T, t ir.DType) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = T(num.Round(t, float64(a[i])))
	}
}

// iota is start, start+step, ...
func iota64(dst []int64, start, step int64) {
	for i := range dst {
		dst[i] = start
		start += step
	}
}
