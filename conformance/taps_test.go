package conformance

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/simtest"
)

// Sums of which some places have no taps at all: no stage comes for these, and their results are what the sum of nothing is.
var withoutTaps = []row{
	{name: "bounded", src: `@bench(N=16, H=128, W=128)
		graph z(x: bf16[N, 64, H, W], w: bf16[64, 64, 4, 3, 3]) -> (y: bf16[N, 64, 4, H, W]) {
		y[n, o, p, q, r] = sum[k, j, c where k < p] (x[n, c, q + k - 1, r + j - 1] else 0) * w[o, c, p, k, j] }`, sizes: [][]int64{{2, 5, 12}, {1, 6, 9}}},
	{name: "points", src: `@tf32 @bench(N=16, H=128, W=128)
		graph z(x: f32[N, 32, H, W], w: f32[72, 32, 3, 2]) -> (y: f32[N, 72, 3, H, W]) {
		y[n, o, p, q, r] = sum[j, c where j + 1 <= p] (x[n, c, q, r + 2 * j - 1] else 0) * w[o, c, p, j] + 1.0 }`, sizes: [][]int64{{2, 5, 12}}},
}

func TestSumsWithoutTaps(t *testing.T) {
	t.Parallel()
	dev := openSimulated(t, simtest.Config{Arch: "sm_90a", Order: simtest.Order{Races: true}})
	warpgroups := false
	of := func(v *ir.Variant) bool {
		warpgroups = warpgroups || v.Schedule.Mapping == ir.WarpgroupMapping && v.Contract.NoTaps
		return v.Contract != nil
	}
	require.Greater(t, forVariants(t, dev, of, withoutTaps), 5)
	require.True(t, warpgroups, "of those that have stages for taps")
}

// TestSumsWithoutTapsOnGPU has more tiles than blocks, which go on to a tile with taps after one without.
func TestSumsWithoutTapsOnGPU(t *testing.T) {
	mustEnd(t)
	more := withoutTaps[0]
	more.sizes = [][]int64{{16, 17, 32}}
	require.Positive(t, forVariants(t, openGPU(t, runtime.Options{}), func(v *ir.Variant) bool { return v.Contract != nil && v.Contract.NoTaps }, []row{more}))
}
