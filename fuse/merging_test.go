package fuse

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestResultsInAnotherOrder: what reads memory along its results is stored so, and laid out in another order by a kernel that
// does both in tiles; small results, and products, are stored in the other order at once.
func TestResultsInAnotherOrder(t *testing.T) {
	for _, c := range []struct {
		src     string
		kernels int
	}{
		{`graph g(x: f32[64, 256, 126, 126]) -> (y: f32[64, 62, 62, 256]) { y = permute(max_pool2d(x, 3, stride=2), (0, 2, 3, 1)) }`, 2},
		{`graph g(x: f32[64, 256, 4096]) -> (y: f32[4096, 64, 128]) { y = permute(x[:, ::2] + x[:, 1::2], (2, 0, 1)) }`, 1},
		{`graph g(x: f32[64, 256, 128, 4096]) -> (y: f32[4096, 64, 256]) { y = permute(sum(x, axis=2), (2, 0, 1)) }`, 2},
		{`graph g(x: f32[4, 256, 128]) -> (y: f32[128, 4]) { y = transpose(sum(x, axis=1), 0, 1) }`, 1},
		{`graph g(x: f32[4096, 256, 128]) -> (y: f32[256, 4096]) { y = transpose(sum(x, axis=2), 0, 1) }`, 1},
		{`graph g(x: bf16[4096, 256], w: bf16[256, 1024]) -> (y: bf16[1024, 4096]) { y = transpose(x @ w) }`, 1},
	} {
		assert.Len(t, planOf(t, c.src).Kernels, c.kernels, c.src)
	}
}
