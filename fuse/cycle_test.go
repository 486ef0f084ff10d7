package fuse

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestNoKernelWaitsForItself: the maxima of columns of v4 and of z would share a kernel, and so
// would out0 and the maxima of rows that v4 needs, which wait for those of z by way of kernels that
// stand later in the graph.
func TestNoKernelWaitsForItself(t *testing.T) {
	const src = `graph g(x: f64[N, M], z: f64[N, M], w: f64[M]) -> (out0: f64[N, M], out1: f64[M]) {
		v3 = max(tanh(z / (1 + abs(w))), axis=1, keep=true)
		v4 = exp(tanh(z / (1 + abs(w))) - v3) / 64
		v7 = max(v4, axis=0)
		out0 = softmax(z, axis=0) + 0.5
		out1 = v7 * 2
	}`
	hasty, err := regionsOf(parse(t, src), Options{}, false)
	require.NoError(t, err)
	assert.True(t, hasty.cyclic(), "the graph is not one of those any more")
	thorough, err := regionsOf(parse(t, src), Options{}, true)
	require.NoError(t, err)
	assert.False(t, thorough.cyclic())
	compareAtSizes(t, src)
}
