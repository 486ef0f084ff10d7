package cpu

import (
	"math"

	"github.com/klauspost/cpuid/v2"

	"github.com/fusec/fusec/ir"
)

//go:noescape
func expAVX(dst, a *float32, n int)

//go:noescape
func exp2AVX(dst, a *float32, n int)

//go:noescape
func logAVX(dst, a *float32, n int)

//go:noescape
func log2AVX(dst, a *float32, n int)

//go:noescape
func powAVX(dst, a, b *float32, n int)

//go:noescape
func tanhAVX(dst, a *float32, n int)

//go:noescape
func erfAVX(dst, a *float32, n int)

//go:noescape
func sinAVX(dst, a *float32, n int)

//go:noescape
func cosAVX(dst, a *float32, n int)

//go:noescape
func sqrtAVX(dst, a *float32, n int)

//go:noescape
func rsqrtAVX(dst, a *float32, n int)

//go:noescape
func recipAVX(dst, a *float32, n int)

//go:noescape
func negAVX(dst, a *float32, n int)

//go:noescape
func absAVX(dst, a *float32, n int)

//go:noescape
func addAVX(dst, a, b *float32, n int)

//go:noescape
func subAVX(dst, a, b *float32, n int)

//go:noescape
func mulAVX(dst, a, b *float32, n int)

//go:noescape
func divAVX(dst, a, b *float32, n int)

//go:noescape
func maxAVX(dst, a, b *float32, n int)

//go:noescape
func minAVX(dst, a, b *float32, n int)

//go:noescape
func addScalarAVX(dst, a *float32, b float32, n int)

//go:noescape
func subScalarAVX(dst, a *float32, b float32, n int)

//go:noescape
func mulScalarAVX(dst, a *float32, b float32, n int)

//go:noescape
func divScalarAVX(dst, a *float32, b float32, n int)

//go:noescape
func maxScalarAVX(dst, a *float32, b float32, n int)

//go:noescape
func minScalarAVX(dst, a *float32, b float32, n int)

//go:noescape
func axpyAVX(dst, x *float32, a float32, n int)

//go:noescape
func mulAddAVX(dst, a, b *float32, n int)

//go:noescape
func sumAVX(a *float32, n int) float32

//go:noescape
func dotAVX(a, b *float32, n int) float32

//go:noescape
func largestAVX(a *float32, n int, identity float32) float32

//go:noescape
func smallestAVX(a *float32, n int, identity float32) float32

//go:noescape
func widenBF16AVX(dst *float32, src *byte, n int)

//go:noescape
func narrowBF16AVX(dst *byte, src *float32, n int)

//go:noescape
func widenF16AVX(dst *float32, src *byte, n int)

//go:noescape
func narrowF16AVX(dst *byte, src *float32, n int)

// vectorF32 replaces the primitives for which the processor has instructions.
func vectorF32(t opTable[float32]) opTable[float32] {
	if !cpuid.CPU.Supports(cpuid.AVX2, cpuid.FMA3, cpuid.F16C) {
		return t
	}
	for op, f := range map[ir.Op]func(dst, a *float32, n int){
		ir.OpExp: expAVX, ir.OpExp2: exp2AVX, ir.OpLog: logAVX, ir.OpLog2: log2AVX, ir.OpTanh: tanhAVX, ir.OpErf: erfAVX, ir.OpSqrt: sqrtAVX, ir.OpRsqrt: rsqrtAVX,
		ir.OpRecip: recipAVX, ir.OpNeg: negAVX, ir.OpAbs: absAVX,
	} {
		t.unary[op] = unaryAVX(f)
	}
	for op, f := range map[ir.Op]func(dst, a, b *float32, n int){
		ir.OpAdd: addAVX, ir.OpSub: subAVX, ir.OpMul: mulAVX, ir.OpDiv: divAVX, ir.OpMax: maxAVX, ir.OpMin: minAVX,
	} {
		t.vv[op] = binaryAVX(f)
	}
	for op, f := range map[ir.Op]func(dst, a *float32, b float32, n int){
		ir.OpAdd: addScalarAVX, ir.OpSub: subScalarAVX, ir.OpMul: mulScalarAVX, ir.OpDiv: divScalarAVX,
		ir.OpMax: maxScalarAVX, ir.OpMin: minScalarAVX,
	} {
		t.vs[op] = scaledAVX(f)
	}
	t.axpy, t.mulAdd, t.dot = scaledAdd, binaryAVX(mulAddAVX), dotProduct
	productsAVX(&t)
	t.sum = func(a []float32) float32 {
		if len(a) == 0 {
			return 0
		}
		return sumAVX(&a[0], len(a))
	}
	t.largest, t.smallest = extremeAVX(largestAVX), extremeAVX(smallestAVX)
	t.widen[ir.BF16], t.widen[ir.F16] = widenAVX(widenBF16AVX), widenAVX(widenF16AVX)
	t.narrow[ir.BF16], t.narrow[ir.F16] = narrowAVX(narrowBF16AVX), narrowAVX(narrowF16AVX)
	t.vv[ir.OpPow] = power
	t.unary[ir.OpSin], t.unary[ir.OpCos] = angleAVX(sinAVX, ir.OpSin), angleAVX(cosAVX, ir.OpCos)
	return t
}

func unaryAVX(f func(dst, a *float32, n int)) func(dst, a []float32) {
	return func(dst, a []float32) {
		if len(dst) > 0 {
			f(&dst[0], &a[:len(dst)][0], len(dst))
		}
	}
}

// angleAVX is a function of an angle: beyond what three parts of pi/2 reduce, and
// for infinities, the exact and slow form.
func angleAVX(f func(dst, a *float32, n int), op ir.Op) func(dst, a []float32) {
	const most = 1 << 13
	exact := op.Info().Float
	return func(dst, a []float32) {
		if len(dst) == 0 {
			return
		}
		a = a[:len(dst)]
		if largestAVX(&a[0], len(a), 0) <= most && smallestAVX(&a[0], len(a), 0) >= -most {
			f(&dst[0], &a[0], len(a))
			return
		}
		for i, v := range a {
			dst[i] = float32(exact(float64(v), 0, 0))
		}
	}
}

// power is a power: of numbers that are not positive, and for infinities, the exact and slow form.
func power(dst, a, b []float32) {
	if len(dst) == 0 {
		return
	}
	a, b = a[:len(dst)], b[:len(dst)]
	const most = math.MaxFloat32
	if smallestAVX(&a[0], len(a), 1) > 0 && largestAVX(&a[0], len(a), 1) <= most &&
		smallestAVX(&b[0], len(b), 0) >= -most && largestAVX(&b[0], len(b), 0) <= most {
		powAVX(&dst[0], &a[0], &b[0], len(dst))
		return
	}
	for i, v := range a {
		dst[i] = float32(math.Pow(float64(v), float64(b[i])))
	}
}

func binaryAVX(f func(dst, a, b *float32, n int)) func(dst, a, b []float32) {
	return func(dst, a, b []float32) {
		if len(dst) > 0 {
			f(&dst[0], &a[:len(dst)][0], &b[:len(dst)][0], len(dst))
		}
	}
}

func scaledAVX(f func(dst, a *float32, b float32, n int)) func(dst, a []float32, b float32) {
	return func(dst, a []float32, b float32) {
		if len(dst) > 0 {
			f(&dst[0], &a[:len(dst)][0], b, len(dst))
		}
	}
}

func scaledAdd(dst, x []float32, a float32) {
	if len(dst) > 0 {
		axpyAVX(&dst[0], &x[:len(dst)][0], a, len(dst))
	}
}

func dotProduct(a, b []float32) float32 {
	if len(a) == 0 {
		return 0
	}
	return dotAVX(&a[0], &b[:len(a)][0], len(a))
}

func extremeAVX(
	f func(a *float32, n int, identity float32) float32,
) func(a []float32, identity float32) float32 {
	return func(a []float32, identity float32) float32 {
		if len(a) == 0 {
			return identity
		}
		return f(&a[0], len(a), identity)
	}
}

// widenAVX converts the multiple of 8 that is at the front; the caller does the rest.
func widenAVX(f func(dst *float32, src *byte, n int)) func(dst []float32, src []byte) {
	return func(dst []float32, src []byte) { f(&dst[0], &src[:2*len(dst)][0], len(dst)) }
}

func narrowAVX(f func(dst *byte, src *float32, n int)) func(dst []byte, src []float32) {
	return func(dst []byte, src []float32) { f(&dst[:2*len(src)][0], &src[0], len(src)) }
}
