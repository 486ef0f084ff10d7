package fuse

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

// TestTF32Mappings: by size and order of the operands, which kernels a product in tf32
// becomes, and which of them bring tiles by the copy engine.
func TestTF32Mappings(t *testing.T) {
	const bt = "@tf32 graph g(x: f32[M, K], w: f32[N, K]) -> (y: f32[M, N]) { y = x @ transpose(w) }"
	const plain = "@tf32 @bench(M=2048, N=2048, K=2048) graph g(x: f32[M, K], w: f32[K, N]) -> (y: f32[M, N]) { y = x @ w }"
	for _, test := range []struct {
		src, device string
		m, n, k     int64
		want        string
	}{
		{bt, "H200", 4096, 4096, 4096, "warpgroup"},
		{bt, "H200", 4096, 4096, 20, "warpgroup"},
		{bt, "H200", 4096, 4096, 4095, "split-k"},
		{bt, "H200", 4096, 4095, 4096, "warpgroup"},
		{bt, "H200", 1024, 1024, 4096, "warpgroup"},
		{bt, "H200", 256, 256, 4096, "warpgroup"},
		{"@tf32 @bench(M=16) graph g(x: f32[M, K], w: i8[N, K]) -> (y: f32[M, N]) { y = x @ transpose(f32(w)) }", "H200", 4096, 4096, 4096, "split-k"},
		{bt, "H200", 16, 4096, 4096, "split-k"},
		{bt, "A100", 4096, 4096, 4096, "split-k"},
		{strings.Replace(bt, "@tf32 ", "@onekernel ", 1), "H200", 4096, 4096, 4096, "split-k"},
		{strings.Replace(bt, "@tf32", "@tf32 @strict", 1), "H200", 4096, 4096, 4096, "split-k"},
		{plain, "H200", 4096, 4096, 4096, "tile warpgroup"},
		{plain, "A100", 4096, 4096, 4096, "split-k"},
		{strings.Replace(plain, "M=2048", "M=16", 1), "H200", 4096, 4096, 4096, "split-k"},
		{strings.Replace(plain, "@tf32", "@onekernel @tf32", 1), "H200", 4096, 4096, 4096, "split-k"},
	} {
		device, err := ir.DeviceNamed(test.device)
		require.NoError(t, err)
		p, err := Plan(parse(t, test.src), Options{Device: device})
		require.NoError(t, err)
		var got []string
		for _, k := range p.Kernels {
			v := variantAt(t, &ir.Plan{Kernels: []*ir.Kernel{k}}, map[string]int64{"M": test.m, "N": test.n, "K": test.k})
			got = append(got, v.Schedule.Mapping.String())
		}
		assert.Equal(t, test.want, strings.Join(got, " "), "%+v", test)
	}
}

// TestOperandsInOrder: the operands that get values of their own are those that the sum
// does not run along, and computed ones, where both then can come through views.
func TestOperandsInOrder(t *testing.T) {
	for src, kernels := range map[string]int{
		"(x: f32[M, K], w: f32[N, K]) -> (y: f32[M, N]) { y = x @ transpose(w) }":                                1,
		"(x: f32[M, K], w: f32[K, N]) -> (y: f32[M, N]) { y = x @ w }":                                           2,
		"(x: f32[K, M], w: f32[K, N]) -> (y: f32[M, N]) { y = transpose(x) @ w }":                                3,
		"(x: f32[M, K], s: f32[K], w: f32[N, K]) -> (y: f32[M, N]) { y = (max(x, 0) * s) @ transpose(w) }":       2,
		"(x: f32[M, K], w: f32[K, N]) -> (y: f32[M, N], z: f32[M, N]) { y = x @ w\nz = exp(x) @ w }":             4,
		"(x: f32[M, K], w: i8[N, K], s: f32[N]) -> (y: f32[M, N]) { y = x @ transpose(f32(w) * s[:, none]) }":    2,
		"(x: f32[M, 4095], w: f32[4095, N]) -> (y: f32[M, N]) { y = x @ w }":                                     1,
		"(x: f32[M, K], w: f32[3, N]) -> (y: f32[M, K, N]) { y[m, k, n] = sum[i: 3] x[m, k + i - 1] * w[i, n] }": 1,
	} {
		p := planOf(t, "@tf32 graph g"+src)
		assert.Len(t, p.Kernels, kernels, src)
		compareAtSizes(t, "@tf32 graph g"+src)
	}
}
