package conformance

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/tensor"
)

// tf32Transposed is a product whose operands both lie along the sum.
const tf32Transposed = `@tf32 graph g(a: f32[M, K], b: f32[N, K]) -> (y: f32[M, N]) { y = a @ transpose(b) }`

// TestTF32LargeOnGPU takes sizes of many tiles and steps, and compares some of the
// elements; and it asks for the same bits from other numbers, again and again.
func TestTF32LargeOnGPU(t *testing.T) {
	mustEnd(t)
	dev := openGPU(t, runtime.Options{})
	p, f := loaded(t, dev, tf32Transposed)
	for _, s := range [][3]int64{{1300, 1304, 516}, {2048, 2816, 1028}, {4100, 1028, 260}} {
		sizes := map[string]int64{"M": s[0], "N": s[1], "K": s[2]}
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			args := integers(t, p.Graph(), sizes, -8, 8)
			got, err := f.Call(context.Background(), args)
			require.NoError(t, err)
			a, b, y := args["a"].(*tensor.Tensor).Floats(), args["b"].(*tensor.Tensor).Floats(), got["y"].Floats()
			m, n, k := int(s[0]), int(s[1]), int(s[2])
			for at := 0; at < m*n; at += 13 {
				want := 0.0
				for c := range k {
					want += a[at/n*k+c] * b[at%n*k+c]
				}
				if y[at] != want {
					t.Fatalf("y[%d, %d] is %v, not %v", at/n, at%n, y[at], want)
				}
			}
			requireSameBits(t, f, args, got)
		})
	}
}

// TestTF32RoundsToNearestOnGPU: operands that tf32 does not hold are rounded to the
// nearest that it holds, not cut, by whatever multiplies them.
func TestTF32RoundsToNearestOnGPU(t *testing.T) {
	mustEnd(t)
	dev := openGPU(t, runtime.Options{})
	_, f := loaded(t, dev, tf32Transposed)
	const k = 64
	rounded := map[float64]float64{ // steps of tf32 between 1 and 2 are 2^-10
		1 + 0x1p-11 + 0x1p-14: 1 + 0x1p-10, 1 + 0x1p-11 - 0x1p-14: 1, -1 - 0x1p-11 - 0x1p-14: -1 - 0x1p-10,
		-1 - 0x1p-12: -1, 2 - 0x1p-12: 2,
	}
	for _, rows := range []int{128, 1408} { // mma.sync, and the copy engine with wgmma
		for _, left := range []bool{true, false} {
			for x, want := range rounded {
				values, ones := make([]float32, rows*k), make([]float32, rows*k)
				for i := range values {
					values[i], ones[i] = float32(x), 1
				}
				if !left {
					values, ones = ones, values
				}
				a, err := tensor.FromSlice(values, rows, k)
				require.NoError(t, err)
				b, err := tensor.FromSlice(ones, rows, k)
				require.NoError(t, err)
				got, err := f.Call(context.Background(), runtime.Args{"a": a, "b": b})
				require.NoError(t, err)
				y := got["y"].Floats()
				assert.InDelta(t, want*k, y[len(y)-1], 0, "%v of %d rows, left %t", x, rows, left)
			}
		}
	}
}

// TestTF32SpecialValuesOnGPU: infinities and NaN stay what they are.
func TestTF32SpecialValuesOnGPU(t *testing.T) {
	mustEnd(t)
	dev := openGPU(t, runtime.Options{})
	_, f := loaded(t, dev, tf32Transposed)
	const rows, k = 1408, 32
	values, ones := make([]float32, rows*k), make([]float32, rows*k)
	for i := range values {
		values[i], ones[i] = 1, 1
	}
	values[5], values[k+7], values[2*k] = float32(math.Inf(1)), float32(math.NaN()), float32(math.Inf(-1))
	a, err := tensor.FromSlice(values, rows, k)
	require.NoError(t, err)
	b, err := tensor.FromSlice(ones, rows, k)
	require.NoError(t, err)
	got, err := f.Call(context.Background(), runtime.Args{"a": a, "b": b})
	require.NoError(t, err)
	y := got["y"].Floats()
	assert.True(t, math.IsInf(y[0], 1))
	assert.True(t, math.IsNaN(y[rows]))
	assert.True(t, math.IsInf(y[2*rows], -1))
	assert.Equal(t, float64(k), y[3*rows])
}
