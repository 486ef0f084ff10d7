//go:build linux && !nocuda

package runtime

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/cuda"
)

func TestOpenNamesAndFigures(t *testing.T) {
	f := fakeDriver(t)
	d := f.open(t, Options{})
	assert.Equal(t, CUDA, d.Kind())
	assert.Equal(t, "Fake GPU 0", d.Name())
	assert.Equal(t, "sm_90a", d.Arch())
	assert.Equal(t, "sm_90a", d.Figures().Arch)
	assert.Equal(t, 160, d.Figures().SMs, "the driver's own figure")
	assert.NoError(t, d.Fallback())
	free, total, err := d.MemInfo()
	require.NoError(t, err)
	assert.Less(t, free, total)
}

// TestUnknownFigures: what a driver does not say stays what is known of the architecture.
func TestUnknownFigures(t *testing.T) {
	of := func(l cuda.Limits) ir.Device {
		return figuresOf(&cuda.Device{Name: "Unknown", Major: 8, Minor: 0, Limits: l})
	}
	known, err := ir.DeviceNamed("sm_80")
	require.NoError(t, err)
	known.Name = "Unknown"
	assert.Equal(t, known, of(cuda.Limits{}))
	said := known
	said.SharedBlock = 1 << 10
	assert.Equal(t, said, of(cuda.Limits{SharedPerBlockMax: 1 << 10}))
	said = known
	said.L2 = 1 << 20
	assert.Equal(t, said, of(cuda.Limits{L2: 1 << 20}))
	said = known
	said.Bandwidth = 0.9 * 2 * 1e9 * 512 / 8
	assert.InEpsilon(t, said.Bandwidth, of(cuda.Limits{MemoryClockKHz: 1e6, MemoryBusBits: 512}).Bandwidth, 1e-9)
	assert.Equal(t, known.Bandwidth, of(cuda.Limits{MemoryClockKHz: 1e6}).Bandwidth)
	half := of(cuda.Limits{SMs: known.SMs / 2})
	assert.Equal(t, known.SMs/2, half.SMs)
	assert.InEpsilon(t, known.F32Rate/2, half.F32Rate, 1e-9)
}

func TestOpenChoosesADevice(t *testing.T) {
	f := fakeDriver(t)
	f.Devices(2)
	second, err := Open("cuda:1", Options{Driver: f.Path})
	require.NoError(t, err)
	assert.Equal(t, "Fake GPU 1", second.Name())
	require.NoError(t, second.Close())
	require.NoError(t, second.Close())
	_, err = Open("cuda:2", Options{Driver: f.Path})
	assert.ErrorIs(t, err, cuda.ErrNoDevice)
	auto, err := Open("auto", Options{Driver: f.Path})
	require.NoError(t, err)
	assert.Equal(t, CUDA, auto.Kind())
	require.NoError(t, auto.Close())
}

func TestAutoFallsBackToTheProcessor(t *testing.T) {
	none := Options{Driver: filepath.Join(t.TempDir(), "libcuda.so.1")}
	d, err := Open("auto", none)
	require.NoError(t, err)
	assert.Equal(t, CPU, d.Kind())
	assert.ErrorIs(t, d.Fallback(), cuda.ErrNoDriver)
	require.NoError(t, d.Close())
	_, err = Open("cuda", none)
	assert.ErrorIs(t, err, cuda.ErrNoDriver)
}

func TestUnknownDevices(t *testing.T) {
	for _, spec := range []string{"gpu", "cuda:", "cuda:-1", "cuda:x", "cpu:0", "cuda:99999999"} {
		_, err := Open(spec, Options{})
		assert.ErrorContains(t, err, "unknown device", spec)
	}
}

func TestNamesOfDevices(t *testing.T) {
	assert.True(t, namesSame("NVIDIA H200", "H200"))
	assert.True(t, namesSame("NVIDIA GeForce RTX 4090", "RTX4090"))
	assert.True(t, namesSame("NVIDIA A100-SXM4-80GB", "A100"))
	assert.False(t, namesSame("NVIDIA H2000", "H200"))
}
