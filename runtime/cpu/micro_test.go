package cpu

import (
	"context"
	"fmt"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

// The primitives of products with vector instructions do what the plain ones do.
func TestMicroKernels(t *testing.T) {
	t.Run("f32", func(t *testing.T) { checkMicro(t, &opsF32, 1e-5) })
	t.Run("f64", func(t *testing.T) { checkMicro(t, &opsF64, 1e-14) })
}

func checkMicro[T float](t *testing.T, table *opTable[T], tolerance float64) {
	cols := microCols[T]()
	numbers := func(n int) []T {
		out := make([]T, n)
		for i := range out {
			out[i] = T(wave(i))
		}
		return out
	}
	for _, k := range []int{0, 1, 3, 4, 7, 256} {
		stride := cols + 3
		have, want := numbers(microRows*stride), numbers(microRows*stride)
		table.micro(have, stride, numbers(k*microRows), numbers(k*cols), k)
		microKernel(want, stride, numbers(k*microRows), numbers(k*cols), k)
		for i := range want {
			assert.InDelta(t, want[i], have[i], tolerance*10*float64(k+1), "step %d, element %d", k, i)
		}
	}
	for _, n := range []int{0, 1, cols - 1, cols, 3*cols + 5} {
		have, want := make([]T, 4*(cols+2)), make([]T, 4*(cols+2))
		table.spread(have, cols+2, numbers(n))
		spread(want, cols+2, numbers(n))
		assert.Equal(t, want, have, n)
	}
	for _, lines := range []int{1, 2, 3, 4, 5, 6, 7, 16} {
		for _, n := range []int{1, 3, 4, 9, 256} {
			var side [][]T
			for i := range lines {
				side = append(side, numbers(n + i)[i:])
			}
			have, want := make([]T, n*17), make([]T, n*17)
			table.interleave(have, 17, side)
			for i, line := range side {
				for k, v := range line {
					want[k*17+i] = v
				}
			}
			assert.Equal(t, want, have, fmt.Sprint(lines, n))
		}
	}
}

// Products without vector instructions, as other processors compute them.
func TestPlainMicroKernel(t *testing.T) {
	before := opsF32
	defer func() { opsF32 = before }()
	opsF32.micro, opsF32.spread, opsF32.interleave = microKernel[float32], spread[float32], interleave[float32]
	for _, size := range [][3]int{{7, 19, 300}, {6, 16, 1}, {130, 33, 5}} {
		x, w := numbersOf(size[0]*size[2]), numbersOf(size[2]*size[1])
		have := runProduct(t, size[0], size[1], size[2], x, w)
		for i := range size[0] {
			for j := range size[1] {
				want := 0.0
				for k := range size[2] {
					want += float64(x[i*size[2]+k]) * float64(w[k*size[1]+j])
				}
				assert.InDelta(t, want, have[i*size[1]+j], 1e-2, "%v", size)
			}
		}
	}
}

func numbersOf(n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(wave(i))
	}
	return out
}

// runProduct multiplies [m, k] by [k, n].
func runProduct(t *testing.T, m, n, k int, x, w []float32) []float32 {
	y := make([]float32, m*n)
	bytes := func(v []float32) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), 4*len(v)) }
	symbols := map[string]int64{"M": int64(m), "N": int64(n), "K": int64(k)}
	WithProducts(0, func() {
		p := New(productPlan(ir.F32, false, false), Options{Threads: 1})
		require.NoError(t, p.Run(context.Background(), symbols, [][]byte{bytes(x), bytes(w), bytes(y)}))
	})
	return y
}
