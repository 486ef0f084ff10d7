package fuse

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

// TestLeaveFirstOfKnownSizes: a tensor whose size the program says, larger than the cache
// and not much larger, leaves it first without a condition.
func TestLeaveFirstOfKnownSizes(t *testing.T) {
	for name, src := range map[string]string{
		"rows": `graph g(x: f32[2048, 8192]) -> (y: f32[2048]) { y = sum(x, axis=1) }`,
		"packed weights": `graph g(x: bf16[M, 8192], q: i8[8192, 8192], s: f32[8192, 64]) -> (y: bf16[M, 8192]) {
			y[m, n] = bf16(sum[k: 8192] f32(x[m, k]) * f32(q[n, k]) * s[n, k / 128]) }`,
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Plan(parse(t, src), Options{})
			require.NoError(t, err)
			found := false
			for _, v := range p.Kernels[0].Variants {
				for _, l := range v.Locals {
					if l.Leaves != nil {
						assert.Equal(t, ir.True, ir.Decide(l.Leaves, ir.Facts{}))
						found = true
					}
				}
			}
			assert.True(t, found)
		})
	}
	small, err := Plan(parse(t, `graph g(x: f32[64, 8192]) -> (y: f32[64]) { y = sum(x, axis=1) }`), Options{})
	require.NoError(t, err)
	for _, v := range small.Kernels[0].Variants {
		for _, l := range v.Locals {
			assert.Nil(t, l.Leaves)
		}
	}
}
