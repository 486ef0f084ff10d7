package cpu

import (
	"math"

	"github.com/fusec/fusec/ir"
)

// opTable holds the vector primitives of one element type. What is not in it runs
// element by element through the op table's own function.
type opTable[T element] struct {
	unary map[ir.Op]func(dst, a []T)
	vv    map[ir.Op]func(dst, a, b []T)
	vs    map[ir.Op]func(dst, a []T, b T)

	axpy     func(dst, x []T, a T)
	mulAdd   func(dst, a, b []T)
	sum      func(a []T) T
	dot      func(a, b []T) T
	largest  func(a []T, identity T) T
	smallest func(a []T, identity T) T

	// micro is the micro-kernel of matrix products: it adds the product of two packed panels, of k steps each, to
	// microRows rows of c, which are stride elements apart.
	micro func(c []T, stride int, a, b []T, k int)
	// spread copies a line in parts of microCols elements, which are stride elements apart; what is left of it stays.
	spread func(dst []T, stride int, line []T)
	// interleave puts lines side by side: element k of line i is at k*width+i.
	interleave func(dst []T, width int, lines [][]T)

	// widen and narrow convert multiples of eight elements of a narrow float.
	widen  [ir.Index]func(dst []T, src []byte)
	narrow [ir.Index]func(dst []byte, src []T)
}

// withFolds adds the plain forms of what reductions use.
func withFolds[T element](t opTable[T]) opTable[T] {
	t.axpy, t.mulAdd, t.sum, t.dot = axpy[T], mulAdd[T], sum[T], dot[T]
	t.largest, t.smallest = largest[T], smallest[T]
	return t
}

var opsF32 = vectorF32(plainF32())

func plainF32() opTable[float32] {
	return withFolds(opTable[float32]{
		micro: microKernel[float32], spread: spread[float32], interleave: interleave[float32],
		unary: map[ir.Op]func(dst, a []float32){
			ir.OpExp: expF32, ir.OpExp2: exp2F32, ir.OpLog: logF32, ir.OpLog2: log2F32,
			ir.OpTanh: tanhF32, ir.OpErf: erfF32, ir.OpSqrt: sqrtV[float32], ir.OpRsqrt: rsqrtV[float32],
			ir.OpRecip: recipV[float32], ir.OpNeg: negV[float32], ir.OpAbs: absV[float32],
		},
		vv: map[ir.Op]func(dst, a, b []float32){
			ir.OpAdd: addVV[float32], ir.OpSub: subVV[float32], ir.OpMul: mulVV[float32], ir.OpDiv: divVV[float32],
			ir.OpMax: maxVV[float32], ir.OpMin: minVV[float32],
		},
		vs: map[ir.Op]func(dst, a []float32, b float32){
			ir.OpAdd: addVS[float32], ir.OpSub: subVS[float32], ir.OpMul: mulVS[float32], ir.OpDiv: divVS[float32],
			ir.OpMax: maxVS[float32], ir.OpMin: minVS[float32],
		},
	})
}

var opsF64 = vectorF64(withFolds(opTable[float64]{
	micro: microKernel[float64], spread: spread[float64], interleave: interleave[float64],
	unary: map[ir.Op]func(dst, a []float64){
		ir.OpSqrt: sqrtV[float64], ir.OpRsqrt: rsqrtV[float64], ir.OpRecip: recipV[float64],
		ir.OpNeg: negV[float64], ir.OpAbs: absV[float64],
	},
	vv: map[ir.Op]func(dst, a, b []float64){
		ir.OpAdd: addVV[float64], ir.OpSub: subVV[float64], ir.OpMul: mulVV[float64], ir.OpDiv: divVV[float64],
		ir.OpMax: maxVV[float64], ir.OpMin: minVV[float64],
	},
	vs: map[ir.Op]func(dst, a []float64, b float64){
		ir.OpAdd: addVS[float64], ir.OpSub: subVS[float64], ir.OpMul: mulVS[float64], ir.OpDiv: divVS[float64],
		ir.OpMax: maxVS[float64], ir.OpMin: minVS[float64],
	},
}))

var opsI64 = withFolds(opTable[int64]{vv: opsInt})

var opsInt = map[ir.Op]func(dst, a, b []int64){
	ir.OpAdd: addVV[int64], ir.OpSub: subVV[int64], ir.OpMul: mulVV[int64],
	ir.OpMax: maxVV[int64], ir.OpMin: minVV[int64],
	ir.OpAnd: andVV, ir.OpOr: orVV, ir.OpBitAnd: andVV, ir.OpBitOr: orVV,
	ir.OpLt: ltVV[int64], ir.OpLe: leVV[int64], ir.OpEq: eqVV[int64], ir.OpNe: neVV[int64],
	ir.OpGt: func(dst, a, b []int64) { ltVV(dst, b, a) }, ir.OpGe: func(dst, a, b []int64) { leVV(dst, b, a) },
}

// compare returns the primitive of a comparison of floats, nil where op is none.
func compare[T float](op ir.Op) func(dst []int64, a, b []T) {
	switch op {
	case ir.OpLt:
		return ltVV[T]
	case ir.OpLe:
		return leVV[T]
	case ir.OpGt:
		return func(dst []int64, a, b []T) { ltVV(dst, b, a) }
	case ir.OpGe:
		return func(dst []int64, a, b []T) { leVV(dst, b, a) }
	case ir.OpEq:
		return eqVV[T]
	case ir.OpNe:
		return neVV[T]
	}
	return nil
}

// unaryOp returns the primitive of a function of one float.
func unaryOp[T float](t *opTable[T], op ir.Op) func(dst, a []T) {
	if f := t.unary[op]; f != nil {
		return f
	}
	f := op.Info().Float
	return func(dst, a []T) {
		a = a[:len(dst)]
		for i, v := range a {
			dst[i] = T(f(float64(v), 0, 0))
		}
	}
}

// binaryOp returns the primitive of a function of two floats.
func binaryOp[T float](t *opTable[T], op ir.Op) func(dst, a, b []T) {
	if f := t.vv[op]; f != nil {
		return f
	}
	f := op.Info().Float
	return func(dst, a, b []T) {
		a, b = a[:len(dst)], b[:len(dst)]
		for i, v := range a {
			dst[i] = T(f(float64(v), float64(b[i]), 0))
		}
	}
}

// testOp returns the primitive of a predicate of one float.
func testOp[T float](op ir.Op) func(dst []int64, a []T) {
	f := op.Info().Float
	return func(dst []int64, a []T) {
		a = a[:len(dst)]
		for i, v := range a {
			dst[i] = int64(f(float64(v), 0, 0))
		}
	}
}

// intOp returns the primitive of a function of one or two integers; with one,
// b is ignored.
func intOp(op ir.Op) func(dst, a, b []int64) {
	if f := opsInt[op]; f != nil {
		return f
	}
	f := op.Info().Int
	return func(dst, a, b []int64) {
		a, b = a[:len(dst)], b[:len(dst)]
		for i, v := range a {
			dst[i] = f(v, b[i], 0)
		}
	}
}

// narrow32 gives scalars of f32 kernels the precision of their tiles.
func narrow32(f func(a, b, c float64) float64) func(a, b, c float64) float64 {
	return func(a, b, c float64) float64 { return float64(float32(f(a, b, c))) }
}

// sameFloat is equality with NaN equal to itself.
func sameFloat(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }
