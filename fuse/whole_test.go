package fuse

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

// TestWholeRows: a tensor is read once where clusters hold the rows of its reductions and
// keep the device busy, however the rows lie in memory; else the reductions are cut.
func TestWholeRows(t *testing.T) {
	norm := `m, v = moments(x, axis=(0, 2))
		y = (x - m) * rsqrt(v + 1e-5) }`
	for _, c := range []struct {
		name, src, device string
		kernels           int
		run               int // column ranges in the order of memory, of the variants with rows ahead
	}{
		{"channels", `@bench(N=64, C=256, L=3136) graph g(x: f32[N, C, L]) -> (y: f32[N, C, L]) { ` + norm, "H200", 1, 1},
		{"a device without clusters", `@bench(N=64, C=256, L=3136) graph g(x: f32[N, C, L]) -> (y: f32[N, C, L]) { ` + norm, "A100", 3, 0},
		{"few channels", `@bench(N=64, C=8, L=3136) graph g(x: f32[N, C, L]) -> (y: f32[N, C, L]) { ` + norm, "H200", 3, 1},
		{"more than a cluster holds", `@bench(N=128, C=256, L=3136) graph g(x: f32[N, C, L]) -> (y: f32[N, C, L]) { ` + norm, "H200", 3, 1},
		{"no whole vectors", `@bench(N=64, C=256, L=3137) graph g(x: f32[N, C, L]) -> (y: f32[N, C, L]) { ` + norm, "H200", 3, 1},
		{"groups, contiguous", `@bench(N=32, L=3136) graph g(x: f32[N, 256, L], w: f32[256]) -> (y: f32[N, 256, L]) { y = group_norm(x, 32, w) }`, "H200", 1, 2},
		{"the sum of two tensors", `@bench(N=32, C=256, L=3136) graph g(x: f32[N, C, L], z: f32[N, C, L]) -> (y: f32[N, C, L]) {
			y, m, v = batch_norm_train(x + z) }`, "H200", 1, 1},
		{"softmax of what lies around an axis", `@bench(A=32, B=128, C=8, D=512) graph g(x: f32[A, B, C, D]) -> (y: f32[A, B, C, D]) {
			e = exp(x - max(x, axis=(0, 2, 3), keep=true))
			y = e / sum(e, axis=(0, 2, 3), keep=true) }`, "H200", 1, 1},
		{"only the moments are wanted", `@bench(N=64, C=256, L=3136) graph g(x: f32[N, C, L]) -> (v: f32[1, C, 1]) {
			m, v = moments(x, axis=(0, 2)) }`, "H200", 2, 1},
		{"along no axis of memory", `@bench(N=4096, M=4096) graph g(x: f32[N, M]) -> (y: f32[N, M]) { y = x / sum(x, axis=0, keep=true) }`, "H200", 3, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := ir.DeviceNamed(c.device)
			require.NoError(t, err)
			p, err := Plan(parse(t, c.src), Options{Device: d})
			require.NoError(t, err)
			assert.Len(t, p.Kernels, c.kernels, ir.PrintPlan(p))
			runs := 0
			for _, v := range p.Kernels[0].Variants {
				if v.Schedule.Mapping == ir.RowMapping && v.Schedule.Stages > 0 {
					runs = v.Run
				}
			}
			assert.Equal(t, c.run, runs)
		})
	}
}
