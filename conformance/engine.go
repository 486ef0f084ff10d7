package conformance

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/cache"
	"github.com/fusec/fusec/runtime/cuda"
	"github.com/fusec/fusec/runtime/simtest"
)

// Engines are the names that Open takes: the CPU engine, an A100 and an H200 that are simulated, and
// the first GPU.
var Engines = []string{"cpu", "sm_80", "sm_90a", "gpu"}

// Options say how an engine is opened. The zero value is right.
type Options struct {
	// Runtime is how the device is opened. Without Cache it keeps nothing but kernels, in the user's
	// cache, so that a kernel is compiled once on a machine: plans are made anew, and what was tuned
	// there decides nothing.
	Runtime runtime.Options
	// Sim is how a simulated device runs its kernels; its Arch follows from the engine's name.
	Sim simtest.Config
}

// An Engine is a device that programs run on. It is safe for concurrent use.
type Engine struct {
	Name string // one of Engines
	*runtime.Device
	Sim *simtest.Simulator // nil for those that are not simulated
}

// Open opens an engine by name for as long as a test runs. Where the machine lacks what it needs, the
// test is skipped: a GPU, or NVRTC and a C compiler for the simulated ones. In continuous integration
// (CI=true) NVRTC may not be missing. With FUSEC_TEST_DEVICE=sm_90a, or sm_80, that simulated device
// takes the place of the GPU, for tests whose sizes allow it.
func Open(t testing.TB, name string, o Options) *Engine {
	t.Helper()
	if arch := os.Getenv("FUSEC_TEST_DEVICE"); arch != "" && name == "gpu" {
		name = arch
	}
	switch name {
	case "cpu":
		return open(t, name, "cpu", o)
	case "gpu":
		return open(t, name, "cuda", o)
	case "sm_80", "sm_90a":
		return simulate(t, name, o)
	}
	t.Fatalf("there is no engine %q: expected one of %q", name, Engines)
	return nil
}

func open(t testing.TB, name, device string, o Options) *Engine {
	t.Helper()
	d, err := openDevice(device, o)
	if err != nil && name == "gpu" {
		t.Skipf("no GPU to test on: %v", err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return &Engine{Name: name, Device: d}
}

// openDevice opens a device that compiles by way of the user's cache.
func openDevice(device string, o Options) (*runtime.Device, error) {
	if o.Runtime.Cache == nil {
		if o.Runtime.Kernels == nil {
			o.Runtime.Kernels = runtime.NewCompiler(o.Runtime)
		}
		o.Runtime.Cache = cache.Open(cache.Options{Off: true})
	}
	return runtime.Open(device, o.Runtime)
}

// simulate opens a simulated device.
func simulate(t testing.TB, name string, o Options) *Engine {
	t.Helper()
	if o.Runtime.Kernels == nil {
		RequireNVRTC(t)
		o.Runtime.Kernels = newKernels(o.Runtime)
	}
	if o.Runtime.Cache == nil {
		o.Runtime.Cache = cache.Open(cache.Options{Off: true})
	}
	o.Sim.Arch = name
	s := simtest.New(t, o.Sim)
	return &Engine{Name: name, Device: s.Open(t, o.Runtime), Sim: s}
}

// RequireNVRTC skips a test where there is no NVRTC, except in continuous integration, where that fails.
func RequireNVRTC(t testing.TB) {
	t.Helper()
	_, err := cuda.Locate(cuda.FindOptions{})
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatalf("continuous integration needs NVRTC: run scripts/get-nvrtc: %v", err)
	}
	if err != nil {
		t.Skipf("no NVRTC here: run scripts/get-nvrtc to have these tests run: %v", err)
	}
}

// Lost says what a kernel did that lost a simulated device: nothing runs on it from then on. It is nil
// while the device is sound.
func (e *Engine) Lost() error {
	if e.Sim == nil {
		return nil
	}
	return e.Sim.Fault()
}
