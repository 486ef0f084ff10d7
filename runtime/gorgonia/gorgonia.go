//go:build gorgonia

package gorgonia

import (
	"gorgonia.org/cu"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/cuda"
	"github.com/fusec/fusec/runtime/internal/gocu"
)

// Open opens the driver that gorgonia.org/cu has linked: for
// runtime.Options.OpenDriver. What cu cannot do (memory pools, CUDA graphs, clusters,
// and launches whose arguments have more than eight bytes, as tensor maps) goes to the
// driver's library directly.
func Open() (*cuda.Driver, error) { return cuda.OpenBackend(gocu.New()) }

// Device opens a device on the caller's context, which may be that of a *cu.Ctx
// (CUDAContext). Closing the device leaves the context alone.
func Device(c cu.CUContext, opts runtime.Options) (*runtime.Device, error) {
	driver, err := Open()
	if err != nil {
		return nil, err
	}
	context, err := driver.BorrowContext(gocu.Handle(c))
	if err != nil {
		return nil, err
	}
	return runtime.OpenContext(context, opts), nil
}

// Stream makes the caller's stream one that functions queue their runs on.
func Stream(d *runtime.Device, s cu.Stream) (*runtime.Stream, error) {
	return d.BorrowStream(gocu.Handle(s))
}

// Buffer makes a tensor of the caller's device memory, which stays the caller's.
func Buffer(d *runtime.Device, p cu.DevicePtr, t ir.DType, shape ...int) (*runtime.Buffer, error) {
	return d.BorrowBuffer(cuda.DevicePtr(p), t, shape...)
}
