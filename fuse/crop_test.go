package fuse

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
		{`@bench(B=64, S=2048) graph g(a: bf16[B, S, 512], w: bf16[512, 32000]) -> (y: bf16[B, 32000]) { l = rms_norm(a) @ w
			y = l[:, -1] }`, 3, 64 * 2 * (512 + 32000)}, // there may be no token
		{`graph g(x: bf16[16, 56, 56, 64], w: bf16[128, 3, 3, 64]) -> (y: bf16[16, 56, 56, 32]) { c[n: 16, p: 56, q: 56, o: 128] = sum[i: 3, j: 3, k: 64] w[o, i, j, k] * (x[n, p + i - 1, q + j - 1, k] else 0)
			y = relu(c[..., 32:64]) }`, 2, 1 << 16}, // and a copy of their weights
		{`graph g(a: f32[256, 512], b: f32[256, 512], w: f32[512, 512], v: f32[512, 512]) -> (y: f32[256, 512]) { s = stack(exp(a @ w), exp(b @ w), axis=1)
			y = s[:, -1] @ v }`, 2, 256 * 512 * 4},
	} {
		plan := planOf(t, c.src)
		assert.LessOrEqual(t, len(plan.Kernels), c.kernels, c.src)
		assert.LessOrEqual(t, temporaryBytes(t, plan, map[string]int64{"B": 64, "S": 2048}), c.bytes, c.src)
	}
}

// temporaryBytes is the bytes of a plan's temporaries.
func temporaryBytes(t *testing.T, plan *ir.Plan, sizes map[string]int64) (bytes int64) {
	for _, b := range plan.Buffers {
		if b.Kind == ir.TempBuffer {
			n, ok := ir.EvalSize(b.Elements(), sizes)
			require.True(t, ok, b.Name)
			bytes += n * int64(b.Type.Size())
		}
	}
	return bytes
}

// TestSharedStaysWhole: a value that is read in part stays whole beside others that read the same elements, where a kernel of its own would read
// more than it leaves out.
func TestSharedStaysWhole(t *testing.T) {
	for _, src := range []string{
		`graph g(x: f32[65536, 1024]) -> (y: f32[65536], z: f32[1000]) { y = mean(x, axis=1)
			z = max(x, axis=1)[:1000] }`,
		`graph g(x: f32[4096, 4096]) -> (y: f32[4096, 4096], z: f32[512]) { y = softmax(x)
			z = sum(y * y, axis=1)[:512] }`,
	} {
		reads := 0
		for _, k := range planOf(t, src).Kernels {
			for _, a := range k.Args {
				if a.Buffer != nil && a.Buffer.Name == "x" {
					reads++
				}
			}
		}
		assert.Equal(t, 1, reads, src)
	}
}
