//go:build gorgonia

package cuda

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/runtime/internal/gocu"
)

// twiceSource takes eight-byte arguments, which gorgonia.org/cu launches itself. The
// fake driver has this kernel too.
const twiceSource = `extern "C" __global__ void twice(const float* x, float* y, long long n) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
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
	m := must(c.LoadModule(compileFor(t, c.Device(), twiceSource).CUBIN))(t)
	l := must(must(m.Function("twice"))(t).Launch(oneBlock))(t)
	s, x, y := newStream(t, c), deviceFloats(t, c, 1, 2, 3), deviceFloats(t, c, 0, 0, 7)
	params := NewParams(8, 8, 8)
	params.SetPointer(0, x)
	params.SetPointer(1, y)
	params.SetInt64(2, 2)
	require.NoError(t, c.Do(func() error {
		err, ok := l.launchVia(c.driver.backend, s, params)
		assert.True(t, ok)
		return err
	}))
	assert.Equal(t, floats(2, 4, 7), fetch(t, c, y, 3))
	require.NoError(t, m.Close())
}
