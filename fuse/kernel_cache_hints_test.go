package fuse

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/fuse/algebra"
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
					if l.EvictFirst != nil {
						assert.Equal(t, ir.True, ir.Decide(l.EvictFirst, ir.Facts{}))
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
			assert.Nil(t, l.EvictFirst)
		}
	}
}

// TestLeaveLast: rows that a kernel reads once and writes again leave the cache last where they
// are more than it holds; what many rows share, what is small, what the kernel ahead has just
// written, and what is folded, scanned or pointwise does not.
func TestLeaveLast(t *testing.T) {
	for _, c := range []struct {
		name, src string
		want      []string // names of the inputs that do, in the last kernel
	}{
		{"a pointwise kernel", `graph g(x: f32[N, M], z: f32[N, M], w: f32[M]) -> (y: f32[N, M]) { y = x * z + w }`, nil},
		{"two of them", `graph g(x: f32[N, M], z: f32[N, M]) -> (y: f32[N, M]) { y = softmax(x * z) }`, []string{"x", "z"}},
		{"persistent rows", `graph g(x: bf16[N, M], w: bf16[M]) -> (y: bf16[N, M]) { y = rms_norm(x, w) }`, []string{"x"}},
		{"known to be small", `graph g(x: f32[64, 8192]) -> (y: f32[64, 8192]) { y = softmax(x) }`, nil},
		{"known to be large", `graph g(x: f32[8192, 8192]) -> (y: f32[8192, 8192]) { y = softmax(x) }`, []string{"x"}},
		{"written before", `graph g(x: f32[N, M]) -> (y: f32[N, M]) { y = softmax(cumsum(x, axis=0)) }`, nil},
		{"folded", `graph g(x: f32[N, M]) -> (y: f32[N]) { y = sum(x, axis=1) }`, nil},
		{"scanned", `graph g(x: f32[N, M]) -> (y: f32[N, M]) { y = cumsum(x, axis=1) }`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := Plan(parse(t, c.src), Options{})
			require.NoError(t, err)
			for _, v := range p.Kernels[len(p.Kernels)-1].Variants {
				var names []string
				for _, l := range v.Locals {
					if l.EvictLast != nil {
						assert.Nil(t, l.EvictFirst)
						assert.NotEqual(t, ir.False, ir.Decide(l.EvictLast, ir.Facts{}))
						names = append(names, algebra.ReadIn(l.Def).Arg.Name)
					}
				}
				switch s := v.Schedule; {
				case len(v.Early) > 0: // few rows
					assert.Empty(t, names)
				case s.Vector > 1 && (s.Mapping == ir.FlatMapping || s.Items > 0): // rows that stream are read again
					assert.ElementsMatch(t, c.want, names)
				}
			}
		})
	}
}
