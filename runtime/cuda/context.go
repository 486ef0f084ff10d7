package cuda

import (
	"errors"
	"runtime"
	"sync/atomic"
	"unsafe"
)

var errClosed = errors.New("the CUDA context is closed")

// A Context is the state of this process on one device. Its methods, and those of
// what is made from it, may be called from any goroutine: each makes the context
// current on the thread it runs on, and leaves it so.
type Context struct {
	driver   *Driver
	device   *Device
	handle   uintptr
	borrowed bool
	closed   atomic.Bool
}

// Context retains the device's primary context: the one that all libraries of a
// process share. The first call in a process takes tens to hundreds of
// milliseconds. Close it.
func (dev *Device) Context() (*Context, error) {
	var handle uintptr
	err := dev.driver.call(symPrimaryCtxRetain, uintptr(unsafe.Pointer(&handle)), uintptr(dev.handle))
	if err != nil {
		return nil, err
	}
	return &Context{driver: dev.driver, device: dev, handle: handle}, nil
}

// BorrowContext wraps a context (CUcontext) that other code owns, so that work of
// both meets on one device. Close leaves the context itself alone.
func (d *Driver) BorrowContext(handle uintptr) (*Context, error) {
	c := &Context{driver: d, handle: handle, borrowed: true}
	var device int32
	if err := c.call(symCtxGetDevice, uintptr(unsafe.Pointer(&device))); err != nil {
		return nil, err
	}
	// A CUdevice is the ordinal: cuDeviceGet maps one to the other unchanged.
	dev, err := d.Device(int(device))
	if err != nil {
		return nil, err
	}
	c.device = dev
	return c, nil
}

// Device is what the context runs on.
func (c *Context) Device() *Device { return c.device }

// Driver is what the context was made by.
func (c *Context) Driver() *Driver { return c.driver }

// Handle is the CUcontext.
func (c *Context) Handle() uintptr { return c.handle }

// Close releases the context. The last release in a process destroys all that was
// made from it. A second Close does nothing.
func (c *Context) Close() error {
	if c.closed.Swap(true) || c.borrowed {
		return nil
	}
	return c.driver.invoke(symPrimaryCtxRelease, uintptr(c.device.handle))
}

// Do runs fn with the calling goroutine locked to its thread and the context
// current there. A group of calls is cheaper inside one Do, and what the driver
// ties to a thread (Launch.RunCurrent) is right only there. fn must not use
// another context.
func (c *Context) Do(fn func() error) error {
	if err := c.enter(); err != nil {
		return err
	}
	defer c.leave()
	return fn()
}

// enter makes the context current on this thread, on which the goroutine stays
// until leave. On an error there is nothing to leave.
func (c *Context) enter() error {
	if c.closed.Load() {
		return errClosed
	}
	runtime.LockOSThread()
	if err := c.driver.invoke(symCtxSetCurrent, c.handle); err != nil {
		runtime.UnlockOSThread()
		return err
	}
	return nil
}

func (c *Context) leave() { runtime.UnlockOSThread() }

// call is Driver.call with the context current.
//
//go:uintptrescapes
func (c *Context) call(symbol int, args ...uintptr) error { return c.invoke(symbol, args...) }

// invoke is Driver.invoke with the context current.
func (c *Context) invoke(symbol int, args ...uintptr) error {
	if err := c.enter(); err != nil {
		return err
	}
	defer c.leave()
	return c.driver.invoke(symbol, args...)
}

// Synchronize waits for all work of the context. Faults of kernels show here.
func (c *Context) Synchronize() error { return c.invoke(symCtxSynchronize) }

// ResetPersistingL2 makes lines of the L2 cache that kernels asked it to keep, as reads with
// evict_last do, ordinary lines. Until then they stay even if the cache is overwritten.
func (c *Context) ResetPersistingL2() error { return c.invoke(symCtxResetPersistingL2) }
