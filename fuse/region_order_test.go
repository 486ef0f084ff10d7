package fuse

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

// TestStoresAcross says where readers of one tensor are kernels of their own because they store along different loops.
func TestStoresAcross(t *testing.T) {
	for _, c := range []struct {
		name, src string
		kernels   int
	}{
		{"in its order and turned", `@bench(M=4096, N=4096) graph g(x: f32[M, N]) -> (y: f32[N, M], z: f32[M, N]) {
			y = transpose(x, 0, 1)
			z = 2 * x }`, 2},
		{"planes to pixels beside planes", `@bench(B=64, C=64, H=4096) graph g(x: bf16[B, C, H]) -> (y: bf16[B, H, C], z: bf16[B, C, H]) {
			y = transpose(x, 1, 2)
			z = tanh(x) }`, 2},
		{"turned and read again", `@bench(M=4096, N=4096) graph g(x: f32[M, N]) -> (y: f32[N, M], z: f32[M, N]) {
			z = exp(x)
			y = transpose(z, 0, 1) }`, 2},
		{"few elements", `@bench(M=64, N=64) graph g(x: f32[M, N]) -> (y: f32[N, M], z: f32[M, N]) {
			y = transpose(x, 0, 1)
			z = 2 * x }`, 1},
		{"both turned", `@bench(M=4096, N=4096) graph g(x: f32[M, N]) -> (y: f32[N, M], z: f32[N, M]) {
			y = transpose(x, 0, 1)
			z = 2 * y }`, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := planOf(t, c.src)
			assert.Equal(t, c.kernels, len(p.Kernels), explained(p))
			compareAtSizes(t, c.src)
		})
	}
}

// TestReversed: the alignment of two regions the other way round pairs the same loops.
func TestReversed(t *testing.T) {
	a, b := &ir.Range{ID: 1, Name: "i", Extent: ir.IntConst(7)}, &ir.Range{ID: 2, Name: "j", Extent: ir.IntConst(7)}
	al := &alignment{to: map[*ir.Range]*ir.Range{}, from: map[*ir.Range]*ir.Range{}}
	require.True(t, al.pair(a, b))
	other := al.reversed()
	require.Equal(t, al.from, other.to)
	require.Equal(t, al.to, other.from)
	require.Equal(t, al, other.reversed())
}
