package fuse

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fusec/fusec/ir"
)

// pairReaders are reductions over pairs of points, or results that hold what they read in memory, and their types.
var pairReaders = [][2]string{
	{"a[i] = sum[j: M] k[i, j] * (z[j, 1] + 2)", "a: f64[N]"},
	{"b[i] = max[j: M] k[i, j]", "b: f64[N]"},
	{"c[j] = min[i: N] k[i, j]", "c: f64[M]"},
	{"e[i, d: 3] = sum[j: M] k[i, j] * (x[i, d] - z[j, d])", "e: f64[N, 3]"},
	{"f[j, d: 3] = sum[i: N] k[i, j] * k[i, j] * (x[i, d] - z[j, d])", "f: f64[M, 3]"},
	{"at[i] = argmin[j: M] k[i, j]", "at: i64[N]"},
	{"l = sum(k)", "l: f64[]"},
	{"t[i] = max[j: M] (sum[c: 2] k[i, j] * (x[i, c] + z[j, c]))", "t: f64[N]"},
	{"o[i, b: 2] = max[j: M] (prod[c: 2] (sum[a: 2] k[i, j] * x[i, a] * z[j, c] + w[b]))", "o: f64[N, 2]"},
	{"p = k @ z", "p: f64[N, 3]"},
	{"s = cumsum(k, axis=1)", "s: f64[N, M]"},
}

// drawPairs writes a program over all pairs of the points of two tensors: a reduction of the three components of each
// pair, a function of that, and what reads this.
func drawPairs(t *rapid.T) string {
	pick := func(label string, of ...string) string { return rapid.SampledFrom(of).Draw(t, label) }
	var body, out []string
	for _, r := range rapid.SliceOfNDistinct(rapid.SampledFrom(pairReaders), 1, 3, func(r [2]string) string { return r[0] }).Draw(t, "readers") {
		body, out = append(body, r[0]), append(out, r[1])
	}
	return fmt.Sprintf(`%s@bench(N=4096, M=4096) graph g(x: f64[N, 3], z: f64[M, 3], w: f64[3]) -> (%s) {
    d2[i: N, j: M] = %s[d: 3] %s
    k[i: N, j: M] = %s
    %s
}
`, pick("numerics", "", "@strict "), strings.Join(out, ", "), pick("inner", "sum", "max", "min", "prod"),
		pick("term", "(x[i, d] - z[j, d]) ** 2", "abs(x[i, d] - z[j, d])", "x[i, d] * z[j, d]", "max(x[i, d], z[j, d]) - w[d]"),
		pick("single", "d2[i, j] + 0", "exp(-d2[i, j])", "1 / (1 + d2[i, j] * d2[i, j])", "where(i64(i) == i64(j), 0, d2[i, j])"),
		strings.Join(body, "\n    "))
}

// TestPlanIsGraphForPairs compares plans with graphs where reductions of components are computed by their readers.
func TestPlanIsGraphForPairs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := drawPairs(t)
		g := parse(t, src)
		device, err := ir.DeviceNamed(rapid.SampledFrom([]string{"sm_80", "sm_90a"}).Draw(t, "device"))
		require.NoError(t, err)
		p, err := Plan(g, Options{Device: device})
		require.NoError(t, err, src)
		sizes := map[string]int64{"N": rapid.SampledFrom([]int64{0, 1, 5}).Draw(t, "N"), "M": rapid.SampledFrom([]int64{1, 3, 8}).Draw(t, "M")}
		inputs, err := drawInputs(g, sizes, rapid.Uint64().Draw(t, "seed"))
		require.NoError(t, err)
		comparePlan(t, g, p, inputs, sizes, src)
	})
}

// TestPairsAreNotWritten: no tensor with an element for each pair is written where reductions read the distances alone, and
// distances are written where they are a result, or the operand of a product in tiles.
func TestPairsAreNotWritten(t *testing.T) {
	const distances = `@bench(N=16384) graph g(x: f32[N, %d], v: f32[N], u: f32[N, 16]) -> (%s) {
		d2 = sum((x[:, none] - x[none]) ** 2, axis=-1)
		k = exp(-0.5 * d2)
		%s
	}`
	device, err := ir.DeviceNamed("sm_90a")
	require.NoError(t, err)
	for _, row := range []struct {
		components   int
		result, body string
		written      bool
	}{
		{3, "y: f32[N]", "y = sum(k * v, axis=1)", false},
		{8, "y: f32[N]", "y = k @ v", false},
		{16, "y: f32[N]", "y = sum(k * v, axis=1)", false},
		{17, "y: f32[N]", "y = sum(k * v, axis=1)", true},
		{3, "l: f32[]", "l = mean(min(d2, axis=1)) + mean(min(d2, axis=0))", false},
		{3, "y: f32[N], l: f32[N]", "y = sum(k * v, axis=1)\n l = sum(k, axis=1)", false},
		{3, "y: f32[N, 3]", "y[i, c: 3] = sum[j: N] k[i, j] * (x[i, c] - x[j, c])", false},
		{3, "k: f32[N, N], y: f32[N]", "y = sum(k * v, axis=1)", true},
		{3, "y: f32[N, 16]", "y = k @ u", true},
	} {
		src := fmt.Sprintf(distances, row.components, row.result, row.body)
		p, err := Plan(parse(t, src), Options{Device: device})
		require.NoError(t, err, src)
		written := false
		for _, b := range p.Buffers {
			pairs := len(b.Shape) == 2 && ir.SameSize(b.Shape[0], b.Shape[1])
			written = written || b.Kind != ir.InputBuffer && pairs
		}
		assert.Equal(t, row.written, written, src)
	}
}
