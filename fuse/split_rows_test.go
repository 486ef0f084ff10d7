package fuse

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fusec/fusec/ir"
)

// TestTotalsAreReadWithRows: one kernel reads a tensor for reductions of its rows, or its columns, and for those of all of it,
// and gives what the graph says.
func TestTotalsAreReadWithRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pick := func(label string, of ...string) string { return rapid.SampledFrom(of).Draw(t, label) }
		axis := pick("axis", "0", "1", "2", "(1, 2)")
		result := map[string]string{"0": "f64[64, M]", "1": "f64[N, M]", "2": "f64[N, 64]", "(1, 2)": "f64[N]"}[axis]
		total, totalled := pick("total", "sum", "max", "min"), pick("of", "x", "x * x", "abs(x) + z")
		src := fmt.Sprintf(`@bench(N=512, M=2048) graph g(x: f64[N, 64, M], z: f64[M]) -> (r: %s, t: f64[]) {
    r = %s(%s, axis=%s)
    t = %s(%s)
}`, result, pick("row", "sum", "max"), pick("each", "x", "x - z"), axis, total, totalled)
		g := parse(t, src)
		device, err := ir.DeviceNamed(pick("device", "sm_80", "sm_90a"))
		require.NoError(t, err)
		p, err := Plan(g, Options{Device: device})
		require.NoError(t, err, src)
		reads := 0
		for _, k := range p.At(nil).Kernels {
			for _, a := range k.Args {
				if a.Buffer.Name == "x" {
					reads++
				}
			}
		}
		assert.Equal(t, 1, reads, src)
		sizes := map[string]int64{"N": rapid.SampledFrom([]int64{0, 1, 3}).Draw(t, "N"), "M": rapid.SampledFrom([]int64{0, 1, 5}).Draw(t, "M")}
		inputs, err := drawInputs(g, sizes, rapid.Uint64().Draw(t, "seed"))
		require.NoError(t, err)
		comparePlan(t, g, p, inputs, sizes, src)
	})
}
