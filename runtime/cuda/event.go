package cuda

import "unsafe"

// An Event marks a place in a stream: to wait for, or to measure time from.
type Event struct {
	ctx    *Context
	handle uintptr
	closed bool
}

// NewEvent makes an event. One without timing is cheaper to record and wait for.
// Close it.
func (c *Context) NewEvent(timing bool) (*Event, error) {
	const disableTiming = 2
	flags := uintptr(disableTiming)
	if timing {
		flags = 0
	}
	e := &Event{ctx: c}
	if err := c.call(symEventCreate, uintptr(unsafe.Pointer(&e.handle)), flags); err != nil {
		return nil, err
	}
	return e, nil
}

// Close destroys the event. A second Close does nothing.
func (e *Event) Close() error {
	if e.closed {
		return nil
	}
	e.closed = true
	return e.ctx.invoke(symEventDestroy, e.handle)
}

// Record puts the mark after the work queued on s so far.
func (e *Event) Record(s *Stream) error { return e.ctx.invoke(symEventRecord, e.handle, s.handle) }

// Synchronize waits until the device has passed the mark.
func (e *Event) Synchronize() error { return e.ctx.invoke(symEventSynchronize, e.handle) }

// Done reports whether the device has passed the mark.
func (e *Event) Done() (bool, error) { return ready(e.ctx.invoke(symEventQuery, e.handle)) }

// Since is the time in milliseconds between start and e, both made with timing and
// both passed; the resolution is about half a microsecond.
func (e *Event) Since(start *Event) (float32, error) {
	var ms float32
	err := e.ctx.call(symEventElapsedTime, uintptr(unsafe.Pointer(&ms)), start.handle, e.handle)
	return ms, err
}
