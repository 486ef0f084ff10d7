package conformance

import (
	"errors"
	"fmt"
	"os"

	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/cache"
	"github.com/fusec/fusec/runtime/cuda"
	"github.com/fusec/fusec/runtime/simtest"
)

// Engines are the names that Open takes: the CPU engine, an A100 and an H200 that are simulated, and
// the first GPU.
var Engines = []string{"cpu", "sm_80", "sm_90a", "gpu"}

// ErrMissing is that this machine lacks what an engine needs: a GPU; NVRTC or a C compiler for the
// simulated ones.
var ErrMissing = errors.New("this machine does not have what the engine needs")

// Options say how an engine is opened. The zero value is right.
type Options struct {
	Runtime runtime.Options // without a cache: the user's, so that a kernel is compiled once on a machine
	// Sim is how a simulated device runs its kernels; its Arch follows from the engine's name.
	Sim simtest.Config
}

// An Engine is a device that programs run on. It is safe for concurrent use.
type Engine struct {
	Name string // one of Engines
	*runtime.Device
	Sim    *simtest.Simulator // nil for those that are not simulated
	folder string             // of the simulator's driver
}

// Open opens an engine by name. The error is an ErrMissing where the machine lacks what it needs.
func Open(name string, o Options) (*Engine, error) {
	switch name {
	case "cpu":
		return opened(name, "cpu", o)
	case "gpu":
		return opened(name, "cuda", o)
	case "sm_80", "sm_90a":
		return simulate(name, o)
	}
	return nil, fmt.Errorf("there is no engine %q: expected one of %q", name, Engines)
}

func opened(name, device string, o Options) (*Engine, error) {
	d, err := runtime.Open(device, o.Runtime)
	if err != nil && name == "gpu" {
		return nil, fmt.Errorf("%w: %w", ErrMissing, err)
	}
	return &Engine{Name: name, Device: d}, err
}

// simulate opens a simulated device. Its kernels come from the cache where they were compiled before,
// by any test or process of this user.
func simulate(name string, o Options) (e *Engine, err error) {
	if o.Runtime.Kernels == nil {
		if _, err := cuda.Locate(o.Runtime.NVRTC); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrMissing, err)
		}
	}
	e = &Engine{Name: name}
	if e.folder, err = os.MkdirTemp("", "fusec-simulator"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(e.folder))
		}
	}()
	o.Sim.Arch = name
	if e.Sim, err = simtest.Start(o.Sim, e.folder); errors.Is(err, simtest.ErrMissing) {
		return nil, fmt.Errorf("%w: %w", ErrMissing, err)
	} else if err != nil {
		return nil, err
	}
	if o.Runtime.Cache == nil {
		o.Runtime.Cache = cache.Open(cache.Options{OnWarning: o.Runtime.OnWarning})
	}
	e.Device, err = e.Sim.Device(o.Runtime)
	return e, err
}

// Close closes the device.
func (e *Engine) Close() error {
	err := e.Device.Close()
	if e.folder != "" {
		err = errors.Join(err, os.RemoveAll(e.folder))
	}
	return err
}

// Lost says what a kernel did that lost a simulated device: nothing runs on it from then on. It is nil
// while the device is sound.
func (e *Engine) Lost() error {
	if e.Sim == nil {
		return nil
	}
	return e.Sim.Fault()
}
