package cpu

import (
	"unsafe"

	"github.com/klauspost/cpuid/v2"
)

//go:noescape
func microF32AVX(c *float32, stride int, a, b *float32, k int)

//go:noescape
func microF64AVX(c *float64, stride int, a, b *float64, k int)

//go:noescape
func spreadAVX(dst unsafe.Pointer, stride int, line unsafe.Pointer, n int)

//go:noescape
func interleave4F32AVX(dst *float32, stride int, a, b, c, d *float32, n int)

//go:noescape
func interleave2F32AVX(dst *float32, stride int, a, b *float32, n int)

// productsAVX replaces what matrix products need.
func productsAVX(t *opTable[float32]) {
	t.micro, t.spread, t.interleave = microAVX(microF32AVX), spreadLine[float32], interleaveAVX
}

// vectorF64 replaces the primitives for which the processor has instructions.
func vectorF64(t opTable[float64]) opTable[float64] {
	if cpuid.CPU.Supports(cpuid.AVX2, cpuid.FMA3) {
		t.micro, t.spread = microAVX(microF64AVX), spreadLine[float64]
	}
	return t
}

func microAVX[T float](f func(c *T, stride int, a, b *T, k int)) func(c []T, stride int, a, b []T, k int) {
	cols := microCols[T]()
	return func(c []T, stride int, a, b []T, k int) {
		if k > 0 {
			_, _, _ = c[(microRows-1)*stride+cols-1], a[k*microRows-1], b[k*cols-1]
			f(&c[0], stride, &a[0], &b[0], k)
		}
	}
}

func spreadLine[T float](dst []T, stride int, line []T) {
	const vectors = 64 // bytes
	if n := len(line) / microCols[T](); n > 0 {
		_ = dst[(n-1)*stride+microCols[T]()-1]
		spreadAVX(unsafe.Pointer(&dst[0]), stride*vectors/microCols[T](), unsafe.Pointer(&line[0]), n)
	}
}

// interleaveAVX takes four lines at a time while there are as many, then two, then one.
func interleaveAVX(dst []float32, width int, lines [][]float32) {
	n := len(lines[0]) &^ 3
	if n == 0 {
		interleave(dst, width, lines)
		return
	}
	for at := 0; at < len(lines); {
		_ = dst[(n-1)*width+at]
		switch l := lines[at:]; {
		case len(l) >= 4:
			_ = dst[(n-1)*width+at+3]
			interleave4F32AVX(&dst[at], width, &l[0][:n][0], &l[1][:n][0], &l[2][:n][0], &l[3][:n][0], n)
			at += 4
		case len(l) >= 2:
			_ = dst[(n-1)*width+at+1]
			interleave2F32AVX(&dst[at], width, &l[0][:n][0], &l[1][:n][0], n)
			at += 2
		default:
			interleave(dst[at:], width, l)
			at++
		}
	}
	for i, l := range lines {
		for k := n; k < len(l); k++ {
			dst[k*width+i] = l[k]
		}
	}
}
