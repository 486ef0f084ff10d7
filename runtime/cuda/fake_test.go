package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/runtime/internal/fakecuda"
)

func TestMain(m *testing.M) { fakecuda.Main(m) }

// A fake is the driver without a GPU, and the means to steer it.
type fake struct {
	t testing.TB
	*fakecuda.Driver
}

func fakeDriver(t testing.TB) *fake { return fakeDriverWith(t, "-DFAKE") }

func fakeDriverWith(t testing.TB, flag string) *fake {
	t.Helper()
	return &fake{t, fakecuda.New(t, flag)}
}

// open opens the fake as a driver.
func (f *fake) open() *Driver {
	f.t.Helper()
	d, err := OpenPath(f.Path)
	require.NoError(f.t, err)
	return d
}

// context gives a context on device 0, closed when the test ends; nothing made from
// it may be left then.
func (f *fake) context() *Context {
	f.t.Helper()
	dev, err := f.open().Device(0)
	require.NoError(f.t, err)
	c, err := dev.Context()
	require.NoError(f.t, err)
	f.t.Cleanup(func() {
		require.NoError(f.t, c.Close())
		require.Zero(f.t, f.Live(), "resources that were not given back")
	})
	return c
}

// fakeImage is the least that passes for a cubin.
func fakeImage() []byte { return append([]byte(elfMagic), make([]byte, 60)...) }

// must gives a value that came without an error.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		require.NoError(t, err)
		return v
	}
}
