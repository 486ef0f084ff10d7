package cuda

import (
	"errors"
	"path/filepath"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStructLayouts(t *testing.T) {
	assert.EqualValues(t, 72, unsafe.Sizeof(launchAttribute{}))
	assert.EqualValues(t, 8, unsafe.Offsetof(launchAttribute{}.value))
	var c launchConfig
	assert.EqualValues(t, 56, unsafe.Sizeof(c))
	assert.EqualValues(t, 24, unsafe.Offsetof(c.shared))
	assert.EqualValues(t, 32, unsafe.Offsetof(c.stream))
	assert.EqualValues(t, 40, unsafe.Offsetof(c.attrs))
	assert.EqualValues(t, 48, unsafe.Offsetof(c.numAttrs))
	var u execUpdateResult
	assert.EqualValues(t, 24, unsafe.Sizeof(u))
	assert.EqualValues(t, 8, unsafe.Offsetof(u.errorNode))
	assert.EqualValues(t, 128, unsafe.Sizeof(TensorMap{}))
}

func TestEverySymbolHasAName(t *testing.T) {
	for i, name := range driverSymbols {
		assert.NotEmpty(t, name, "symbol %d", i)
	}
	for i, name := range nvrtcSymbols {
		assert.NotEmpty(t, name, "symbol %d", i)
	}
}

func TestFakeHasEverySymbol(t *testing.T) {
	lib := fakeDriver(t).open().lib
	for i, name := range driverSymbols {
		assert.True(t, lib.has(i), "%s is not in the fake driver, so nothing tests its call", name)
	}
}

func TestOpenPathRefusesWhatIsNoDriver(t *testing.T) {
	_, err := OpenPath("/nowhere/libcuda.so.1")
	assert.ErrorIs(t, err, ErrNoDriver)

	// A library without the driver's symbols: the C library itself.
	if noLoader == "" {
		_, err = OpenPath("libc.so.6")
		assert.ErrorIs(t, err, ErrMissingSymbol)
		assert.ErrorContains(t, err, "cuInit")
	}
}

func TestOpenTakesTheFirstDriverThatOpens(t *testing.T) {
	f := fakeDriver(t)
	text := writeFile(t, filepath.Join(t.TempDir(), "libcuda.so.1"), []byte("this is no library"))
	d, err := openFirst([]string{"/nowhere/libcuda.so.1", text, f.Path})
	require.NoError(t, err)
	assert.Equal(t, f.Path, d.Path())

	_, err = openFirst([]string{"/nowhere/libcuda.so.1", text})
	assert.ErrorIs(t, err, ErrNoDriver)
	assert.ErrorContains(t, err, text+": ", "a file that is there and does not open")
	assert.NotContains(t, err.Error(), "/nowhere")
	assert.ErrorContains(t, err, "install the NVIDIA driver")
}

func TestOpenWithoutDevices(t *testing.T) {
	f := fakeDriver(t)
	f.Fail("cuInit", 100, 0)
	d, err := OpenPath(f.Path)
	assert.Nil(t, d)
	assert.ErrorIs(t, err, ErrNoDevice)
	assert.EqualError(t, err, "cuInit: CUDA_ERROR_NO_DEVICE (100): no CUDA-capable device is detected")
}

func TestErrorsMatchSentinels(t *testing.T) {
	for code, sentinel := range sentinelOf {
		err := error(&Error{Call: "cuX", Code: code})
		assert.ErrorIs(t, err, sentinel, "%d", code)
		assert.NotErrorIs(t, err, ErrNoNVRTC, "%d", code)
	}
	unknown := &Error{Call: "cuX", Code: 4242}
	assert.EqualError(t, unknown, "cuX: error 4242")
	assert.NotErrorIs(t, unknown, ErrDeviceLost)
	plain := errors.New("plain")
	assert.Equal(t, plain, withDetail(plain, "detail"), "an error of another kind passes unchanged")
}

func TestErrorCodesThatTheDriverCannotName(t *testing.T) {
	f := fakeDriver(t)
	f.Fail("cuDriverGetVersion", 4242, 0)
	_, err := OpenPath(f.Path)
	assert.EqualError(t, err, "cuDriverGetVersion: error 4242")
}

func TestMissingSymbolIsAnErrorOnUse(t *testing.T) {
	d := fakeDriverWith(t, "-DOLD_DRIVER").open()
	_, err := d.EncodeTiled(TensorMapConfig{Dims: []uint64{1}, Box: []uint32{1}})
	assert.ErrorIs(t, err, ErrMissingSymbol)
	assert.ErrorContains(t, err, "the driver (CUDA 99.0) has no cuTensorMapEncodeTiled")
}

func TestDevice(t *testing.T) {
	f := fakeDriver(t)
	d := f.open()
	major, minor := d.Version()
	assert.Equal(t, [2]int{99, 0}, [2]int{major, minor})
	assert.Equal(t, 1, must(d.DeviceCount())(t))

	dev := must(d.Device(0))(t)
	assert.Equal(t, "Fake GPU 0", dev.Name)
	assert.Equal(t, [16]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, dev.UUID)
	assert.Equal(t, uint64(139)<<30, dev.TotalMemory)
	assert.Equal(t, "sm_90", dev.Arch())
	// The fake's value of an attribute is ten times its number in the header.
	assert.Equal(t, Limits{
		SMs: 160, WarpSize: 100, MaxThreadsPerBlock: 10, MaxThreadsPerSM: 390, MaxBlocksPerSM: 1060,
		RegistersPerBlock: 120, RegistersPerSM: 820, SharedPerBlock: 80, SharedPerBlockMax: 970,
		SharedPerSM: 810, SharedReserved: 1110, ConstantMemory: 90, L2: 380, L2PersistingMax: 1080,
		ClockKHz: 130, MemoryClockKHz: 360, MemoryBusBits: 370, MaxGrid: [3]int{50, 60, 70},
		MaxBlock: [3]int{20, 30, 40}, AsyncEngines: 400, Integrated: true, ECC: true, Cooperative: true,
		Clusters: true, MemoryPools: true,
		TensorMaps: false, // the fake is too old to know that attribute
	}, dev.Limits)
	assert.InDelta(t, 2*360e3*370/8, dev.Limits.PeakBandwidth(), 1)
}

func TestDeviceErrors(t *testing.T) {
	f := fakeDriver(t)
	d := f.open()
	for _, ordinal := range []int{-1, 1} {
		_, err := d.Device(ordinal)
		assert.ErrorIs(t, err, ErrNoDevice)
	}
	for _, name := range []string{"cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName", "cuDeviceGetUuid_v2",
		"cuDeviceTotalMem_v2", "cuDeviceGetAttribute"} {
		f.Fail(name, 700, 0)
		dev, err := d.Device(0)
		assert.Nil(t, dev)
		assert.ErrorIs(t, err, ErrDeviceLost, name)
		assert.ErrorContains(t, err, name)
	}
}

func TestContextIsCurrentWhereverAMethodRuns(t *testing.T) {
	f := fakeDriver(t)
	c := f.context()
	done := make(chan error)
	for range 32 { // the fake refuses calls on a thread without a current context
		go func() { done <- c.Synchronize() }()
	}
	for range 32 {
		require.NoError(t, <-done)
	}
	require.NoError(t, c.Do(func() error { return c.driver.call(symCtxSynchronize) }))
	want := errors.New("from inside")
	assert.Equal(t, want, c.Do(func() error { return want }))
	f.Fail("cuCtxSetCurrent", 709, 0)
	assert.ErrorIs(t, c.Do(func() error { t.Error("must not run"); return nil }), ErrDeviceLost)
}

func TestContextCloses(t *testing.T) {
	f := fakeDriver(t)
	dev := must(f.open().Device(0))(t)
	c := must(dev.Context())(t)
	assert.Same(t, dev, c.Device())
	require.NoError(t, c.Close())
	require.NoError(t, c.Close())
	assert.Equal(t, 1, f.Calls("cuDevicePrimaryCtxRelease_v2"))
	assert.ErrorIs(t, c.Synchronize(), errClosed)
	f.Fail("cuDevicePrimaryCtxRetain", 2, 0)
	_, err := dev.Context()
	assert.ErrorIs(t, err, ErrOutOfMemory)
}

func TestBorrowedContextIsNotReleased(t *testing.T) {
	f := fakeDriver(t)
	owner := f.context()
	borrowed := must(owner.Driver().BorrowContext(owner.Handle()))(t)
	assert.Equal(t, "Fake GPU 0", borrowed.Device().Name)
	require.NoError(t, borrowed.Synchronize())
	require.NoError(t, borrowed.Close())
	assert.Zero(t, f.Calls("cuDevicePrimaryCtxRelease_v2"))
	require.NoError(t, owner.Synchronize())
}
