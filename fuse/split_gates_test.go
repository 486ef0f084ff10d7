package fuse

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestGatesShareAKernel: a value that reads two parts of one product is computed where both are, if nothing else reads the product, and the parts
// do not overlap.
func TestGatesShareAKernel(t *testing.T) {
	for body, kernels := range map[string]int{
		"y = glu(linear(x, w, b))":                                      1,
		"a, b2 = split(linear(x, w), 2, axis=-1)\ny = silu(a) * b2 + a": 1,
		"y = glu(linear(relu(x), w, b))":                                2,
		"z = linear(x, w)\ny = z[:, 64:576] * silu(z[:, :512])":         2,
		"z = linear(x, w)\ny = z[:, 512:] * silu(z[:, :512]) * max(z)":  4,
	} {
		src := "graph g(x: bf16[M, 256], w: bf16[1024, 256], b: bf16[1024]) -> (y: bf16[M, 512]) {\n" + body + "\n}"
		assert.Len(t, planOf(t, src).Kernels, kernels, body)
	}
	compareAtSizes(t, "graph g(x: f16[M, K], w: f16[K, 2 * N], b: f16[2 * N]) -> (y: f16[M, N]) { y = glu(x @ w + b) }")
	compareAtSizes(t, "graph g(x: f16[M, K], w: f16[48, K]) -> (y: f16[M, 16]) {\nz = linear(x, w)\ny = tanh(z[:, 3:19]) - z[:, 32:]\n}")
}
