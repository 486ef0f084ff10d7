package fuse

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestGatesShareAKernel: a value that reads two parts of one product is computed where both are, if nothing else reads the product, and the parts
// do not overlap.
func TestGatesShareAKernel(t *testing.T) {
	for body, kernels := range map[string]int{
		"y = glu(linear(x, w, b))":                                                                  1,
		"a, b2 = split(linear(x, w), 2, axis=-1)\ny = silu(a) * b2 + a":                             1,
		"y = glu(linear(relu(x), w, b))":                                                            2,
		"z = linear(x, w)\ny = z[:, ::2] * silu(z[:, 1::2])":                                        1,
		"z = min(linear(x, w, b), 7)\na = z[:, ::2]\ny = a * sigmoid(1.702 * a) * (z[:, 1::2] + 1)": 1,
		"z = linear(x, w)\ny = z[:, ::2] * silu(z[:, 512:])":                                        2,
		"z = linear(x, w)\ny = z[:, 64:576] * silu(z[:, :512])":                                     2,
		"z = linear(x, w)\ny = z[:, 512:] * silu(z[:, :512]) * max(z)":                              4,
	} {
		src := "graph g(x: bf16[M, 256], w: bf16[1024, 256], b: bf16[1024]) -> (y: bf16[M, 512]) {\n" + body + "\n}"
		assert.Len(t, planOf(t, src).Kernels, kernels, body)
	}
	compareAtSizes(t, "graph g(x: f16[M, K], w: f16[K, 2 * N], b: f16[2 * N]) -> (y: f16[M, N]) {\nz = x @ w + b\ny = relu(z[:, 1::2]) - z[:, ::2]\n}")
	compareAtSizes(t, "graph g(x: f16[M, K], w: f16[K, 2 * N], b: f16[2 * N]) -> (y: f16[M, N]) { y = glu(x @ w + b) }")
	compareAtSizes(t, "graph g(x: f16[M, K], w: f16[48, K]) -> (y: f16[M, 16]) {\nz = linear(x, w)\ny = tanh(z[:, 3:19]) - z[:, 32:]\n}")
}

// TestPartsOfAProduct: parts of a product, or of what follows products, that have readers of their own are products of their own, in the
// kernels of their readers, unless the common operand is long.
func TestPartsOfAProduct(t *testing.T) {
	for body, kernels := range map[string]int{
		"z = linear(x, w)\na = tanh(z[:, :512])\nb = z[:, 512:] + 1":                             1,
		"z = linear(x, w) * sigmoid(linear(x, v))\na = z[:, :512]\nb = relu(z[:, 512:])":         2,
		"z = linear(x, w) * sigmoid(linear(x, v))\na = transpose(z[:, ::2]) @ z[:, 1::2]\nb = a": 4, // with the copy of a
		"z = linear(x, w)\na = tanh(z[:, :512])\nb = z[:, 500:1012] + 1":                         2,
	} {
		shape := "[M, 512]"
		if strings.Contains(body, "@") {
			shape = "[512, 512]"
		}
		src := "@bench(M=65536) graph g(x: bf16[M, 256], w: bf16[1024, 256], v: bf16[1024, 256]) -> (a: bf16" + shape + ", b: bf16" + shape + ") {\n" + body + "\n}"
		assert.Len(t, planOf(t, src).Kernels, kernels, body)
	}
	compareAtSizes(t, "graph g(x: f16[M, K], w: f16[2 * N, K], v: f16[2 * N, K]) -> (y: f16[N, N]) {\nz = linear(x, w) * sigmoid(linear(x, v))\ny = transpose(z[:, :N]) @ z[:, N:]\n}")
	compareAtSizes(t, "graph g(x: f16[M, K], w: f16[3 * N, K]) -> (a: f16[M, N], b: f16[N, M], c: f16[M, N]) {\np, q, r = split(linear(x, w), 3)\na = tanh(p)\nb = transpose(q) + 1\nc = r - r * r\n}")
}
