package cuda

import (
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// forwarding is a backend that has some calls: it makes them through a library.
type forwarding struct {
	lib      *library
	has      func(name string) bool
	calls    map[string]int
	launches int
}

func (f *forwarding) Call(name string, args []uintptr) (uint32, bool) {
	if !f.has(name) {
		return 0, false
	}
	f.calls[name]++
	return f.lib.invoke(slices.Index(driverSymbols[:], name), args...), true
}

func (f *forwarding) Launch(
	function uintptr, grid, block [3]uint32, shared uint32, stream uintptr, args []uintptr,
) uint32 {
	f.launches++
	return f.lib.invoke(symLaunchKernel, function, uintptr(grid[0]), uintptr(grid[1]), uintptr(grid[2]),
		uintptr(block[0]), uintptr(block[1]), uintptr(block[2]), uintptr(shared), stream, address(args), 0)
}

// backed is a context on the fake whose calls a backend makes.
func backed(t *testing.T, has func(name string) bool) (*Context, *forwarding) {
	f := fakeDriver(t)
	d := f.open()
	b := &forwarding{lib: d.lib, has: has, calls: map[string]int{}}
	d.backend = b
	c := must(must(d.Device(0))(t).Context())(t)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c, b
}

// A driver conforms whichever calls its backend has.
func TestBackendConforms(t *testing.T) {
	for name, has := range map[string]func(string) bool{
		"all":  func(string) bool { return true },
		"none": func(string) bool { return false },
		"some": func(name string) bool { return len(name)%2 == 0 },
	} {
		t.Run(name, func(t *testing.T) {
			c, b := backed(t, has)
			conform(t, c, fakeImage())
			assert.Equal(t, name != "none", len(b.calls) > 0)
			for _, call := range []string{"cuMemcpyDtoH_v2", "cuCtxSynchronize", "cuMemAlloc_v2"} {
				assert.Equal(t, has(call), b.calls[call] > 0, call)
			}
		})
	}
}

// A backend that copies eight bytes an argument is given no others.
func TestBackendLaunchesWhatItCan(t *testing.T) {
	c, b := backed(t, func(string) bool { return false })
	f := loadScale(t, c, fakeImage())
	s, x := newStream(t, c), deviceFloats(t, c, 1)
	l := must(f.Launch(oneBlock))(t)
	require.NoError(t, l.Run(s, scaleParams(x, 2, 1)))
	assert.Zero(t, b.launches, "an argument of four bytes")
	require.NoError(t, s.Synchronize())
	assert.Equal(t, floats(2), fetch(t, c, x, 1))
	wide := NewParams(8, 8)
	_, ok := l.launchVia(b, s, NewParams(8, int(unsafe.Sizeof(TensorMap{}))))
	assert.False(t, ok, "a tensor map")
	config := oneBlock
	config.Cluster = [3]uint32{1, 1, 1}
	clustered := must(f.Launch(config))(t)
	_, ok = clustered.launchVia(b, s, wide)
	assert.False(t, ok, "a cluster")
}
