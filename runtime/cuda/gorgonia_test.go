//go:build gorgonia

package cuda

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/runtime/internal/gocu"
)

// pairs are eight-byte arguments, which gorgonia.org/cu launches itself.
const pairsSource = `extern "C" __global__ void pairs(float* x, long long n) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2;
}`

func gorgoniaContext(t *testing.T) *Context {
	d, err := OpenBackend(gocu.New()) // without a GPU the program has ended before
	require.NoError(t, err)
	c := must(must(d.Device(0))(t).Context())(t)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// The driver that gorgonia.org/cu links conforms as the one that is loaded does.
func TestGorgoniaConforms(t *testing.T) {
	c := gorgoniaContext(t)
	conform(t, c, compileFor(t, c.Device(), scaleSource).CUBIN)
}

func TestGorgoniaLaunches(t *testing.T) {
	c := gorgoniaContext(t)
	m := must(c.LoadModule(compileFor(t, c.Device(), pairsSource).CUBIN))(t)
	l := must(must(m.Function("pairs"))(t).Launch(oneBlock))(t)
	s, x := newStream(t, c), deviceFloats(t, c, 1, 2, 3)
	params := NewParams(8, 8)
	params.SetPointer(0, x)
	params.SetInt64(1, 2)
	require.NoError(t, c.Do(func() error {
		err, ok := l.launchVia(c.driver.backend, s, params)
		assert.True(t, ok)
		return err
	}))
	assert.Equal(t, floats(2, 4, 3), fetch(t, c, x, 3))
	require.NoError(t, m.Close())
}
