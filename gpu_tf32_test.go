package fusec

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/tensor"
)

// tf32Products are products in tf32 whose operands lie along the sum, or are laid out
// along it ahead of the product, with what may stand around them.
var tf32Products = map[string]string{
	"bt":      `(a: f32[B, M, K], b: f32[B, N, K]) -> (y: f32[B, M, N]) { y = einsum("bmk,bnk->bmn", a, b) }`,
	"plain":   `(a: f32[B, M, K], b: f32[B, K, N]) -> (y: f32[B, M, N]) { y = a @ b }`,
	"at_bt":   `(a: f32[B, K, M], b: f32[B, N, K]) -> (y: f32[B, M, N]) { y = einsum("bkm,bnk->bmn", a, b) }`,
	"yt":      `(a: f32[B, M, K], b: f32[B, N, K]) -> (y: f32[B, N, M]) { y = einsum("bmk,bnk->bnm", a, b) }`,
	"shared":  `(a: f32[B, M, K], b: f32[N, K]) -> (y: f32[B, M, N]) { y = einsum("bmk,nk->bmn", a, b) }`,
	"heads":   `(a: f32[M, B, K], b: f32[N, B, K]) -> (y: f32[B, M, N]) { y = einsum("mbk,nbk->bmn", a, b) }`,
	"slice":   `(a: f32[B, M, K], b: f32[B, N, K]) -> (y: f32[B, M, N]) { y = einsum("bmk,bnk->bmn", a[:, :, 4:], b[:, :, 4:]) }`,
	"relu_bt": `(a: f32[B, M, K], b: f32[B, N, K], s: f32[K]) -> (y: f32[B, M, N]) { y = einsum("bmk,bnk->bmn", max(a, 0) * s, b) }`,
	"ffn": `(a: f32[B, M, K], b: f32[N, K], bias: f32[N], r: f32[B, M, N]) -> (y: f32[B, M, N], z: f32[B, M, N]) {
		t = einsum("bmk,nk->bmn", a, b) + bias
		y = max(t, 0) + r
		z = t * 2 }`,
}

// tf32Graph is one of them, with defaults for which operands are laid out ahead.
func tf32Graph(name string) string {
	return "@tf32 @bench(B=4, M=2048, N=2048, K=2048) graph product" + tf32Products[name]
}

// tf32Sizes are B, M, N and K: tiles enough for every shape of tile, sums of one step and
// of several rounds of the ring, parts of tiles on either side, sizes that the copy
// engine does not take.
var tf32Sizes = [][4]int64{{100, 33, 36, 68}, {25, 129, 132, 20}, {100, 40, 64, 32}, {20, 33, 35, 66}, {2, 64, 64, 0}}

// TestTF32TilesOnGPU multiplies small integers, which tf32 and the sums hold.
func TestTF32TilesOnGPU(t *testing.T) {
	mustEnd(t)
	dev := openGPU(t, runtime.Options{OnWarning: func(err error) { t.Log("warning:", err) }})
	for name := range tf32Products {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list := tf32Sizes
			if name == "slice" {
				list = slices.DeleteFunc(slices.Clone(list), func(s [4]int64) bool { return s[3] < 16 })
			}
			compareBatches(t, dev, tf32Graph(name), list)
		})
	}
}

// compareBatches compares products of small integers at sizes of B, M, N and K.
func compareBatches(t *testing.T, dev *runtime.Device, src string, list [][4]int64) {
	p, f := loaded(t, dev, src)
	for _, s := range list {
		sizes := map[string]int64{"B": s[0], "M": s[1], "N": s[2], "K": s[3]}
		t.Run(fmt.Sprint(s), func(t *testing.T) { compareProduct(t, p.Graph(), f, sizes, -8, 8) })
	}
}

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
			args, _ := integers(t, p.Graph(), f, sizes, -8, 8)
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
			requireSameBits(t, p.Graph(), f, sizes)
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
