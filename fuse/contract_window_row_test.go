package fuse

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

// TestShortSumsAreReadOnce: whatever the channels, taps, stride and dilation of a window, where channels are few it is
// read from the input as it is, in one kernel: row by row into one tile of columns where a sum is short, else from what
// the windows of a block cover.
func TestShortSumsAreReadOnce(t *testing.T) {
	for channels := int64(1); channels <= 9; channels += 4 {
		for _, window := range []int64{2, 3, 5} {
			for _, stride := range []int64{1, 2} {
				src := fmt.Sprintf(`@bench(N=32, H=128, W=96, K=64)
					graph g(x: f16[N, %d, H, W], w: f16[K, %[1]d, %[2]d, %[2]d], b: f16[K]) -> (y: f16[N, K, (H - %[2]d) / %[3]d + 1, (W - %[2]d) / %[3]d + 1]) {
					y = relu(conv2d(x, w, b, stride=%[3]d)) }`, channels, window, stride)
				plan := planOf(t, src)
				require.Len(t, plan.Kernels, 1, src)
				at := slices.IndexFunc(plan.Kernels[0].Variants, func(v *ir.Variant) bool { return v.Contract != nil && v.Schedule.Stages == 1 })
				require.GreaterOrEqual(t, at, 0, src)
				columns, w := channels*window*window, plan.Kernels[0].Variants[at].Contract.B[0].Window
				assert.True(t, w.ByRow != (w.Halo != nil), src)
				assert.True(t, columns > 32 || w.ByRow, src)
				assert.True(t, columns <= 96 || !w.ByRow, src)
			}
		}
	}
}

// TestHalosFit: what the windows of a tile cover fits shared memory beside the weights, holds all of its places, and is read by
// the threads of a warp from different banks, whatever the taps, strides and dilations.
func TestHalosFit(t *testing.T) {
	for _, src := range []string{
		`graph g(x: bf16[32, 256, 28, 28], w: bf16[256, 8, 3, 3]) -> (y: bf16[32, 256, 28, 28]) { y = conv2d(x, w, padding=1, groups=32) }`,
		`graph g(x: bf16[32, 1024, 7, 7], w: bf16[1024, 32, 3, 3]) -> (y: bf16[32, 1024, 7, 7]) { y = conv2d(x, w, padding=1, groups=32) }`,
		`graph g(x: f16[32, 20, 56, 56], w: f16[36, 20, 3, 5]) -> (y: f16[32, 36, 28, 28]) { y = conv2d(x, w, padding=(1, 2), stride=2) }`,
		`@tf32 graph g(x: f32[4, 12, 32, 60, 64], w: f32[24, 12, 3, 3, 3]) -> (y: f32[4, 24, 16, 30, 32]) { y = conv3d(x, w, padding=1, stride=2) }`,
		`@tf32 graph g(x: f32[32, 9, 32768], w: f32[24, 9, 7]) -> (y: f32[32, 24, 32768]) { y = conv1d(x, w, padding=9, dilation=3) }`,
		`@tf32 graph g(x: f32[16, 32, 128, 128], w: f32[32, 32, 5, 5]) -> (y: f32[16, 32, 132, 132]) { y = conv_transpose2d(x, w) }`,
	} {
		plan := planOf(t, src)
		require.Len(t, plan.Kernels, 1, src)
		v := plan.Kernels[0].Variants[0]
		require.NotNil(t, v.Contract, src)
		h := v.Contract.B[0].Window.Halo
		require.NotNil(t, h, src)
		assert.Equal(t, v.Schedule.TileN, h.Places(), src)
		assert.LessOrEqual(t, h.Columns(), int64(v.Schedule.TileK), src)
		assert.LessOrEqual(t, haloBytes(h, v.Schedule.TileM, v.Contract.Type), int64(haloShared), src)
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
