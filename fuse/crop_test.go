package fuse

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/fusec/fusec/ir"
)

// TestPartsOfValues: of a value that is read in part no more than that is computed, if it is half of an axis at most, or a point.
func TestPartsOfValues(t *testing.T) {
	for _, c := range []struct {
		src     string
		kernels int
		bytes   int64 // of temporaries at most
	}{
		{`graph g(a: bf16[64, 2048, 512], w: bf16[512, 32000]) -> (y: bf16[64, 32000]) { l = rms_norm(a) @ w
			y = l[:, -1] }`, 2, 1 << 20},
		{`graph g(x: bf16[16, 56, 56, 64], w: bf16[128, 3, 3, 64]) -> (y: bf16[16, 56, 56, 32]) { c[n: 16, p: 56, q: 56, o: 128] = sum[i: 3, j: 3, k: 64] w[o, i, j, k] * (x[n, p + i - 1, q + j - 1, k] else 0)
			y = relu(c[..., 32:64]) }`, 2, 1 << 16}, // and a copy of their weights
		{`graph g(a: f32[256, 512], b: f32[256, 512], w: f32[512, 512], v: f32[512, 512]) -> (y: f32[256, 512]) { s = stack(exp(a @ w), exp(b @ w), axis=1)
			y = s[:, -1] @ v }`, 2, 256 * 512 * 4},
	} {
		plan := planOf(t, c.src)
		assert.LessOrEqual(t, len(plan.Kernels), c.kernels, c.src)
		bytes := int64(0)
		for _, b := range plan.Buffers {
			if b.Kind == ir.TempBuffer {
				n := int64(b.Type.Size())
				for _, extent := range b.Shape {
					n *= extent.Int
				}
				bytes += n
			}
		}
		assert.LessOrEqual(t, bytes, c.bytes, c.src)
	}
}
