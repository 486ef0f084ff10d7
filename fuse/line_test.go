package fuse

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// TestReductionsAlongMemory says which reductions are cut at any place, whatever the sizes of
// their axes: in chunks that a block reads at once, in vectors.
func TestReductionsAlongMemory(t *testing.T) {
	for _, c := range []struct {
		name, src string
		columns   float64 // of a chunk; 0 for one that follows the sizes
	}{
		{"all of a tensor", `@bench(N=4096, M=4096) graph g(x: f32[N, M]) -> (y: f32[]) { y = sum(x * x) }`, 4096},
		{"in bf16", `@bench(N=4096, M=4096) graph g(x: bf16[N, M]) -> (y: bf16[]) { y = max(abs(x)) }`, 8192},
		{"of three axes and two tensors", `@bench(A=64, N=512, M=512) graph g(x: f32[A, N, M], z: f16[A, N, M]) -> (y: f32[]) {
			y = sum(x * z) }`, 8192},
		{"the last two axes", `@bench(B=2, N=2048, M=4096) graph g(x: f32[B, N, M], b: f32[B]) -> (y: f32[B]) {
			y[i] = sum[j: N, k: M] x[i, j, k] - b[i] }`, 4096},
		{"one long row", `@bench(N=16777216) graph g(x: f64[N]) -> (y: f64[]) { y = prod(x) }`, 2048},
		{"of bytes", `@bench(N=4096, M=8192) graph g(x: i8[N, M]) -> (y: i64[]) { y = sum(x) }`, 8192},
		{"beside what lies otherwise", `@bench(N=4096, M=4096) graph g(x: f32[N, M], w: f32[M]) -> (y: f32[]) { y = sum(x * w) }`, 0},
		{"a part of each row", `@bench(N=4096, M=4096) graph g(x: f32[N, M]) -> (y: f32[]) { y = sum(x[:, 1:]) }`, 0},
		{"with the place of an element", `@bench(N=4096, M=4096) graph g(x: f32[N, M]) -> (y: f32[]) {
			y = sum[i: N, j: M] x[i, j] * f32(j) }`, 0},
		{"only some of the elements", `@bench(N=4096, M=4096) graph g(x: f32[N, M]) -> (y: f32[]) { y = sum[i: N, j: M where i < j] x[i, j] }`, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := planOf(t, c.src)
			k := p.Kernels[0]
			require.Greater(t, len(p.Kernels), 1, ir.PrintPlan(p))
			require.Len(t, k.Rows, 1+len(p.Graph.Outputs[0].Value.Axes))
			if c.columns == 0 {
				assert.NotEmpty(t, symbolsOf(algebra.Product(k.Cols)), ir.PrintPlan(p))
			} else {
				require.Len(t, k.Cols, 1)
				assert.True(t, k.Cols[0].Extent.IsConst(c.columns), ir.PrintPlan(p))
				assert.Greater(t, k.Variants[0].Schedule.Vector, 1)
			}
			compareAtSizes(t, c.src)
		})
	}
}

// symbolsOf lists the symbols of a size.
func symbolsOf(e *ir.Expr) (out []string) {
	ir.Walk(e, func(e *ir.Expr) bool {
		if e.Op == ir.OpSym {
			out = append(out, e.Name)
		}
		return true
	})
	return out
}

// TestLongTensorsHaveLongerChunks: one block may have to add all of them up.
func TestLongTensorsHaveLongerChunks(t *testing.T) {
	p := planOf(t, `@bench(N=1048576, M=4096) graph g(x: f32[N, M]) -> (y: f32[]) { y = sum(x) }`)
	assert.True(t, p.Kernels[0].Cols[0].Extent.IsConst(65536), ir.PrintPlan(p))
}
