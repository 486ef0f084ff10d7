package fuse

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestScaledRows compares plans in which what multiplies an operand's rows multiplies the
// sums with their graphs, at rows of no elements too, and asks that the product reads the
// operand as it lies in memory.
func TestScaledRows(t *testing.T) {
	for name, src := range map[string]string{
		"norm":         `graph g(x: bf16[M, K], w: bf16[K, N]) -> (y: bf16[M, N]) { y = rms_norm(x) @ w }`,
		"on the right": `graph g(x: f16[M, K], w: f16[N, K]) -> (y: f16[M, N]) { y = x @ transpose(rms_norm(w)) }`,
		"batch":        `graph g(x: bf16[3, M, K], w: bf16[3, K, N]) -> (y: bf16[3, M, N]) { y = rms_norm(x) @ w }`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := planOf(t, src)
			require.Len(t, p.Kernels, 2)
			assert.Len(t, p.Kernels[0].Members, 1, "nothing but the statistic is computed ahead")
			compareAtSizes(t, src)
		})
	}
}
