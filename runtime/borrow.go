package runtime

import (
	"context"
	"errors"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/cuda"
)

// OpenContext opens a device on a CUDA context that other code owns (Driver.
// BorrowContext), so that functions run on that code's memory and streams: see
// BorrowStream and BorrowBuffer. Closing the device leaves the context alone.
func OpenContext(c *cuda.Context, opts Options) *Device {
	opts.Cache = opts.cache()
	dev := c.Device()
	g := makeGPU(dev, opts)
	g.context = c
	close(g.opened)
	return newDevice(CUDA, dev.Name, archOf(dev), figuresOf(dev), opts, g)
}

var errNoGPU = errors.New("the CPU engine has no streams or memory to borrow: open a GPU")

// BorrowStream makes a Stream of a CUDA stream (CUstream) that other code owns, in the device's
// context: runs that are queued on it are in order with that code's work. Closing it waits for
// the work and leaves the stream itself alone.
func (d *Device) BorrowStream(handle uintptr) (*Stream, error) {
	g, ok := d.engine.(*gpu)
	if !ok {
		return nil, errNoGPU
	}
	if !d.calls.enter() {
		return nil, errClosed
	}
	defer d.calls.leave()
	if err := g.enter(context.Background()); err != nil {
		return nil, err
	}
	q := &gpuStream{gpu: g, Stream: g.context.BorrowStream(handle), borrowed: true}
	g.addQueue(q)
	return d.newStream(q), nil
}

// BorrowBuffer makes a Buffer of device memory that other code owns: a tensor at p,
// which must be aligned to 16 bytes, contiguous and row-major. Nothing is copied. The
// memory must stay until the buffer is closed, which waits for what uses it and frees
// nothing.
func (d *Device) BorrowBuffer(p cuda.DevicePtr, t ir.DType, shape ...int) (*Buffer, error) {
	g, ok := d.engine.(*gpu)
	if !ok {
		return nil, errNoGPU
	}
	bytes, err := byteSize(t, shape)
	if err != nil {
		return nil, err
	}
	const align = 16 // of the widest access
	if p%align != 0 || p == 0 && bytes > 0 {
		return nil, errors.New("borrowed memory must have an address that is a multiple of 16")
	}
	if !d.calls.enter() {
		return nil, errClosed
	}
	defer d.calls.leave()
	return d.newBuffer(t, shape, bytes, &gpuStorage{gpu: g, block: block{at: p, bytes: bytes}, borrowed: true}), nil
}
