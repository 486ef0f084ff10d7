package fuse

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/parser"
)

// TestGradientsPlan plans gradients over which the planner once fell, for every device and for a processor.
func TestGradientsPlan(t *testing.T) {
	for name, src := range map[string]string{
		"windows of a product, whose phases have predicates that all hold": `graph f(x: f64[2, 3, 2]) -> (l: f64[]) {
			y[b: 2, c: 3, p: 2] = prod[i: 4] x[b, c, p * 2 + i * 3]
			l = sum(y) }
			graph g = grad(f, wrt=[x])`,
		"windows of a product, with taps outside": `graph f(x: f16[1, 3, 8]) -> (l: f32[]) {
			y[b: 1, c: 3, p: 16] = prod[i: 4] (x[b, c, p * 3 + i * 2 - 2] else 0)
			l = sum(f32(y)) }
			graph g = grad(f, wrt=[x])`,
		"accesses that begin at a row, which no size tells": `graph f(w: f64[2, 2], z: f64[1, 2, 3], r: f64[2, N]) -> (l: f64[]) {
			y[i: 2, j: N] = prod[k: 8] ((z[j * 3 + j, i, 1] - (w[2 - i, i] else 1)) * max(w[i, i / 4], w[i + j, 0]))
			l = sum(y * r) }
			graph g = grad(f, wrt=[w, z])`,
	} {
		t.Run(name, func(t *testing.T) {
			for _, device := range append(ir.Devices(), ir.Device{Name: "processor", Bandwidth: 2e10, L2: 1 << 25}) {
				file, err := parser.Parse("g.fuse", []byte(src), parser.Options{})
				require.NoError(t, err)
				g, err := file.Graph("g")
				require.NoError(t, err)
				_, err = Plan(g, Options{Device: device})
				require.NoError(t, err)
			}
		})
	}
}
