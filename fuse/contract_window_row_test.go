package fuse

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

// TestShortSumsAreReadByRow: whatever the channels, taps, stride and dilation of a window, it is read row by row from the
// input as it is where a sum is short and channels are few, in one kernel and one tile of columns.
func TestShortSumsAreReadByRow(t *testing.T) {
	for channels := int64(1); channels <= 5; channels++ {
		for _, window := range []int64{2, 3, 5, 7} {
			for _, stride := range []int64{1, 2} {
				src := fmt.Sprintf(`@bench(N=32, H=128, W=96, K=64)
					graph g(x: f16[N, %d, H, W], w: f16[K, %[1]d, %[2]d, %[2]d], b: f16[K]) -> (y: f16[N, K, (H - %[2]d) / %[3]d + 1, (W - %[2]d) / %[3]d + 1]) {
					y = relu(conv2d(x, w, b, stride=%[3]d)) }`, channels, window, stride)
				plan := planOf(t, src)
				byRow := slices.ContainsFunc(plan.Kernels[len(plan.Kernels)-1].Variants, func(v *ir.Variant) bool {
					return v.Contract != nil && v.Contract.B[0].Window != nil && v.Contract.B[0].Window.ByRow && v.Schedule.Stages == 1
				})
				assert.Equal(t, channels <= 4 && channels*window*window <= 96, len(plan.Kernels) == 1 && byRow, src)
			}
		}
	}
}

// TestBlocksAreOneProduct: a transposed convolution whose window is its stride is a product in one kernel, which stores
// whole vectors, in any number of dimensions and whatever follows it.
func TestBlocksAreOneProduct(t *testing.T) {
	for _, between := range []int{2, 4} {
		for _, src := range []string{
			`graph g(x: f16[16, 128, 4096], w: f16[128, 64, %[1]d], b: f16[64]) -> (y: f16[16, 64, %[1]d * 4096]) { y = conv_transpose1d(x, w, b, stride=%[1]d) }`,
			`graph g(x: bf16[16, 128, 64, 64], w: bf16[128, 64, 3, %[1]d], b: bf16[64]) -> (y: bf16[16, 64, 192, %[1]d * 64]) {
				y = tanh(conv_transpose2d(x, w, b, stride=(3, %[1]d))) }`,
			`graph g(x: f16[8, 64, 16, 16, 16], w: f16[64, 32, 2, 2, %[1]d]) -> (y: f16[8, 32, 32, 32, %[1]d * 16]) {
				y = conv_transpose3d(x, w, stride=(2, 2, %[1]d)) }`,
		} {
			src = fmt.Sprintf(src, between)
			plan := planOf(t, src)
			require.Len(t, plan.Kernels, 1, src)
			v := plan.Kernels[0].Variants[0]
			assert.Equal(t, ir.WarpgroupMapping, v.Schedule.Mapping, src)
			assert.Equal(t, between, v.Sections[1].Stores[0].Between, src)
			assert.Equal(t, 8, v.Schedule.Vector, src)
		}
	}
}

// TestPatchesAreLaidOutOnce: of windows that tile an image the value ahead of the product has as many elements as the image.
func TestPatchesAreLaidOutOnce(t *testing.T) {
	for _, patch := range []int{8, 16, 32} {
		src := fmt.Sprintf(`@bench(N=64, H=14, W=12) graph g(x: bf16[N, 3, %[1]d * H, %[1]d * W], w: bf16[768, 3, %[1]d, %[1]d]) -> (y: bf16[N, 768, H, W]) {
			y = conv2d(x, w, stride=%[1]d) }`, patch)
		plan := planOf(t, src)
		require.Len(t, plan.Kernels, 2, src)
		plain := slices.ContainsFunc(plan.Kernels[1].Variants, func(v *ir.Variant) bool {
			return v.Schedule.Mapping == ir.WarpgroupMapping && v.Contract.A.View != nil && v.Contract.A.WindowTiles == nil
		})
		assert.True(t, plain, "%s: the product is no plain one", src)
	}
}
