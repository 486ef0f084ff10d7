package cpu_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp"
	"github.com/fusec/fusec/parser"
)

// The error of a sum of f32 does not grow with its length, whichever way lanes run: runs
// are short, and what they lose is as often too much as too little.
func TestLongSumsStayAccurate(t *testing.T) {
	for name, src := range map[string]string{
		"lanes along rows":    `graph g(x: f32[2, K], w: f32[K, 33]) -> (y: f32[2, 33]) { y = x @ w }`,
		"lanes along the sum": `graph g(x: f32[2, K], w: f32[3, K]) -> (y: f32[2, 3]) { y = x @ transpose(w) }`,
		"product":             `graph g(x: f32[M, K], w: f32[K, N]) -> (y: f32[M, N]) { y = x @ w }`,
		"columns":             `graph g(x: f32[K, 33]) -> (y: f32[33]) { y = sum(x, axis=0) }`,
		"one row":             `graph g(x: f32[K]) -> (y: f32[]) { y = sum(x) }`,
	} {
		t.Run(name, func(t *testing.T) {
			g := parseGraph(t, src)
			in := scatterInputs(g, map[string]int64{"K": 40_001, "M": 5, "N": 33}, func(i int) float64 { return 0.5 + math.Mod(float64(i)*0.6180339887, 1) })
			want, err := interp.Run(g, in, interp.Options{})
			require.NoError(t, err)
			have := execute(t, planForCPU(t, g), bind(t, g, in), in, 2)
			for i, w := range want[0].F {
				const rounding = 0x1p-24 // to nearest: of the result, of sums of chunks, and of sums in these
				assert.LessOrEqual(t, math.Abs(have[0].F[i]-w)/w, 4*rounding, "element %d", i)
			}
		})
	}
}

// TestSumsBeyondTheRange: what an f32 does not hold is infinite before anything else is computed from it, also where a sum of one row is
// kept in 64 bits.
func TestSumsBeyondTheRange(t *testing.T) {
	for _, numerics := range []string{"", "@strict\n"} {
		file, err := parser.Parse("case.fuse", []byte(numerics+`graph g(z: f32[], d: f32[3, 5]) -> (y: f32[3], s: f32[]) {
			y[i] = z * (sum[l: 5, k: 3] d[i, l])
			s = z * prod(d) }`), parser.Options{})
		require.NoError(t, err)
		g, err := file.Graph("")
		require.NoError(t, err)
		z, d := interp.New(ir.F32), interp.New(ir.F32, 3, 5)
		copy(d.F, []float64{1, 2, 3, 4, 5, 1, 1, 3e38, 1, 7, -1.5, -3e38, 1, 0.5, 2})
		have := execute(t, planForCPU(t, g), nil, []*interp.Tensor{z, d}, 1)
		require.Equal(t, 0.0, have[0].F[0])
		for _, beyond := range []float64{have[0].F[1], have[0].F[2], have[1].F[0]} {
			require.True(t, math.IsNaN(beyond), "%v is 0 times infinity", beyond)
		}
	}
}
