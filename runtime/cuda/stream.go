package cuda

import "unsafe"

// A Stream is a queue of work on the device: in order within the queue, beside
// that of other queues. Its methods may be called from any goroutine; who calls
// from several has no order among them.
type Stream struct {
	ctx    *Context
	handle uintptr
	owned  bool
}

// NewStream makes a stream that does not wait for the default stream. Close it.
func (c *Context) NewStream() (*Stream, error) {
	const nonBlocking = 1
	s := &Stream{ctx: c, owned: true}
	if err := c.call(symStreamCreate, uintptr(unsafe.Pointer(&s.handle)), nonBlocking); err != nil {
		return nil, err
	}
	return s, nil
}

// BorrowStream wraps a stream (CUstream) that other code owns; 0 is the default
// stream. Close leaves the stream itself alone.
func (c *Context) BorrowStream(handle uintptr) *Stream { return &Stream{ctx: c, handle: handle} }

// Context is the context the stream belongs to.
func (s *Stream) Context() *Context { return s.ctx }

// Handle is the CUstream.
func (s *Stream) Handle() uintptr { return s.handle }

// Close destroys the stream; work that is queued still runs. A second Close does
// nothing.
func (s *Stream) Close() error {
	if !s.owned {
		return nil
	}
	s.owned = false
	return s.ctx.invoke(symStreamDestroy, s.handle)
}

// Synchronize waits for the stream's work. Faults of kernels show here.
func (s *Stream) Synchronize() error { return s.ctx.invoke(symStreamSynchronize, s.handle) }

// Done reports whether all queued work is finished.
func (s *Stream) Done() (bool, error) { return ready(s.ctx.invoke(symStreamQuery, s.handle)) }

// ready turns the answer of a query, where "not ready" is an answer, into a bool.
func ready(err error) (bool, error) {
	if isCode(err, codeNotReady) {
		return false, nil
	}
	return err == nil, err
}

// Wait makes later work of the stream wait for the event's last record.
func (s *Stream) Wait(e *Event) error {
	return s.ctx.invoke(symStreamWaitEvent, s.handle, e.handle, 0)
}

// Alloc allocates n bytes in the stream's order: usable by work queued later on
// this stream, or on another that waits for it. It needs Limits.MemoryPools.
func (s *Stream) Alloc(n uint64) (DevicePtr, error) {
	if n == 0 {
		return 0, nil
	}
	var p DevicePtr
	err := s.ctx.call(symMemAllocAsync, uintptr(unsafe.Pointer(&p)), uintptr(n), s.handle)
	return p, s.ctx.explainMemory(err, n)
}

// Free frees memory once the work queued so far is finished.
func (s *Stream) Free(p DevicePtr) error {
	if p == 0 {
		return nil
	}
	return s.ctx.invoke(symMemFreeAsync, uintptr(p), s.handle)
}

// CopyHtoD queues a copy to the device. From a HostBuffer it returns at once, and
// src must stay unchanged until the copy has run; from Go memory it returns when
// src may be reused. Go memory must not be copied from while capturing.
func (s *Stream) CopyHtoD(dst DevicePtr, src []byte) error {
	if len(src) == 0 {
		return nil
	}
	return s.ctx.call(symMemcpyHtoDAsync, uintptr(dst), uintptr(unsafe.Pointer(&src[0])),
		uintptr(len(src)), s.handle)
}

// CopyDtoH queues a copy to the host. To a HostBuffer it returns at once, and dst
// is filled when the stream gets there; to Go memory it returns when dst is filled.
// Go memory must not be copied to while capturing.
func (s *Stream) CopyDtoH(dst []byte, src DevicePtr) error {
	if len(dst) == 0 {
		return nil
	}
	return s.ctx.call(symMemcpyDtoHAsync, uintptr(unsafe.Pointer(&dst[0])), uintptr(src),
		uintptr(len(dst)), s.handle)
}

// CopyToPinned queues a copy of n bytes to pinned memory, from the byte at on: it is
// CopyDtoH, and allocates nothing.
func (s *Stream) CopyToPinned(dst *HostBuffer, at, n int, src DevicePtr) error {
	if n == 0 {
		return nil
	}
	into := dst.bytes[at : at+n] // outside the Go heap: its address stays what it is
	return s.ctx.invoke(symMemcpyDtoHAsync, uintptr(unsafe.Pointer(&into[0])), uintptr(src), uintptr(n), s.handle)
}

// CopyDtoD queues a copy of n bytes within the device.
func (s *Stream) CopyDtoD(dst, src DevicePtr, n uint64) error {
	if n == 0 {
		return nil
	}
	return s.ctx.invoke(symMemcpyDtoDAsync, uintptr(dst), uintptr(src), uintptr(n), s.handle)
}

// Memset8 queues setting n bytes to value.
func (s *Stream) Memset8(p DevicePtr, value uint8, n uint64) error {
	if n == 0 {
		return nil
	}
	return s.ctx.invoke(symMemsetD8Async, uintptr(p), uintptr(value), uintptr(n), s.handle)
}

// Memset32 queues setting n words of 32 bits to value; p is a multiple of 4.
func (s *Stream) Memset32(p DevicePtr, value uint32, n uint64) error {
	if n == 0 {
		return nil
	}
	return s.ctx.invoke(symMemsetD32Async, uintptr(p), uintptr(value), uintptr(n), s.handle)
}
