package fuse

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestPartsOfAnEpilogue: what is computed alike from all parts of a product, behind a bias or not, is computed where the product is, and the
// parts are read as views. Parts that are computed differently are products of their own, which share a kernel.
func TestPartsOfAnEpilogue(t *testing.T) {
	for y, kernels := range map[string]int{
		"a, b = split(silu(linear(x, w)), 2, axis=1)\ny = linear(a, u)\nz = linear(b, v)":                          3,
		"a, b = split(silu(linear(x, w, c)), 2, axis=1)\ny = linear(a, u)\nz = linear(b, v)":                       3,
		"h = linear(x, w, c)\ny = linear(silu(h[:, :1024]), u)\nz = linear(silu(h[:, 1024:]), v)":                  3,
		"h = linear(x, w, c)\ny = linear(silu(h[:, :1024]), u)\nz = linear(tanh(h[:, 1024:]), v)":                  3,
		"h = linear(x, w, c)\ny = linear(silu(h[:, :1024]), u) + h[:, 512:1024]\nz = linear(silu(h[:, 1024:]), v)": 4,
	} {
		src := "graph g(x: f16[4096, 1024], w: f16[2048, 1024], c: f16[2048], u: f16[512, 1024], v: f16[512, 1024]) -> (y: f16[4096, 512], z: f16[4096, 512]) {\n" + y + "\n}"
		assert.Len(t, planOf(t, src).Kernels, kernels, y)
	}
	compareAtSizes(t, `graph g(x: f32[N, 3], w: f32[2 * K, 3], c: f32[2 * K], u: f32[5, K]) -> (y: f32[N, 5], z: f32[N, K]) {
		z, b = split(silu(linear(x, w, c)), 2, axis=1)
		y = linear(b, u)
	}`)
}
