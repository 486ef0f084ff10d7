package fuse

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

// Long sums of f32 are added up in runs, of those products whose tiles are large, where
// shared memory holds totals beside the tiles of two blocks.
func TestLongSumsAreAddedInRuns(t *testing.T) {
	const src = "graph g(a: f32[M, K], b: f32[K, N]) -> (y: f32[M, N]) { y = a @ b }"
	runAt := func(device string, m, k int64) int {
		d, err := ir.DeviceNamed(device)
		require.NoError(t, err)
		plan, err := Plan(parse(t, src), Options{Device: d})
		require.NoError(t, err)
		return variantAt(t, plan, map[string]int64{"M": m, "N": m, "K": k}).Schedule.Run
	}
	assert.Equal(t, sumRun, runAt("sm_90a", 2048, 8192))
	assert.Equal(t, sumRun, runAt("sm_90a", 2047, 8191), "elements of their own")
	assert.Zero(t, runAt("sm_90a", 4096, longSum))
	assert.Zero(t, runAt("sm_90a", 256, 8192), "columns in slices")
	assert.Zero(t, runAt("sm_80", 2048, 8192), "no room")
	for name, shapes := range map[string]sliceShapes{"f32": shapesOf[ir.FMAUnit], "f64": doubleShapes} {
		assert.Zero(t, sumRun%shapes.large.k, name)
	}
	assert.Zero(t, sumRun%looseFMA.k)
}
