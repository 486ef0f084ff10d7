package cuda

import (
	"fmt"
	"math"
	"unsafe"
)

// A DevicePtr is an address on the device. 0 is no address, and stands for empty
// memory: allocating 0 bytes gives it, freeing it does nothing.
type DevicePtr uint64

// Alloc allocates n bytes, aligned to at least 256, with unspecified contents. It
// may wait for the device; Stream.Alloc does not.
func (c *Context) Alloc(n uint64) (DevicePtr, error) {
	if n == 0 {
		return 0, nil
	}
	var p DevicePtr
	err := c.call(symMemAlloc, uintptr(unsafe.Pointer(&p)), uintptr(n))
	return p, c.explainMemory(err, n)
}

// Free frees what Alloc gave, after waiting for the device.
func (c *Context) Free(p DevicePtr) error {
	if p == 0 {
		return nil
	}
	return c.invoke(symMemFree, uintptr(p))
}

// MemInfo is how much of the device's memory is free, for all processes together,
// and how much there is, in bytes.
func (c *Context) MemInfo() (free, total uint64, err error) {
	var freeBytes, totalBytes uint64
	err = c.call(symMemGetInfo, uintptr(unsafe.Pointer(&freeBytes)), uintptr(unsafe.Pointer(&totalBytes)))
	return freeBytes, totalBytes, err
}

// explainMemory adds to an out-of-memory error what was asked and what there is.
func (c *Context) explainMemory(err error, asked uint64) error {
	if !isCode(err, codeOutOfMemory) {
		return err
	}
	free, total, infoErr := c.MemInfo()
	if infoErr != nil {
		return withDetail(err, fmt.Sprintf("%d bytes were asked for", asked))
	}
	return withDetail(err, fmt.Sprintf("%d bytes were asked for; %d of the device's %d are free",
		asked, free, total))
}

// CopyHtoD copies host memory to the device and returns when src may be reused.
func (c *Context) CopyHtoD(dst DevicePtr, src []byte) error {
	if len(src) == 0 {
		return nil
	}
	return c.call(symMemcpyHtoD, uintptr(dst), uintptr(unsafe.Pointer(&src[0])), uintptr(len(src)))
}

// CopyDtoH copies device memory to the host and returns when dst is filled.
func (c *Context) CopyDtoH(dst []byte, src DevicePtr) error {
	if len(dst) == 0 {
		return nil
	}
	return c.call(symMemcpyDtoH, uintptr(unsafe.Pointer(&dst[0])), uintptr(src), uintptr(len(dst)))
}

// CopyDtoD copies n bytes within the device. It may return before they are there,
// in order with other work of the default stream.
func (c *Context) CopyDtoD(dst, src DevicePtr, n uint64) error {
	if n == 0 {
		return nil
	}
	return c.invoke(symMemcpyDtoD, uintptr(dst), uintptr(src), uintptr(n))
}

// A HostBuffer is host memory that the device reaches directly (pinned): copies
// from and to it run beside everything else. It is outside the Go heap.
type HostBuffer struct {
	ctx   *Context
	bytes []byte
}

// AllocHost allocates n bytes of pinned host memory. Pinned memory is scarce and
// slow to get: keep and reuse it.
func (c *Context) AllocHost(n int) (*HostBuffer, error) {
	if n < 0 {
		return nil, fmt.Errorf("%w: pinned memory of %d bytes: the size must not be negative",
			ErrInvalidValue, n)
	}
	if n == 0 {
		return &HostBuffer{ctx: c}, nil
	}
	const portable = 1 // pinned for every context
	var p *byte
	err := c.call(symMemHostAlloc, uintptr(unsafe.Pointer(&p)), uintptr(n), portable)
	if err != nil {
		return nil, withDetail(err, fmt.Sprintf("%d bytes of pinned host memory were asked for", n))
	}
	return &HostBuffer{ctx: c, bytes: unsafe.Slice(p, n)}, nil
}

// Bytes is the memory. It must not be touched after Close.
func (b *HostBuffer) Bytes() []byte { return b.bytes }

// Close frees the memory, which no copy in flight may still use. A second Close
// does nothing.
func (b *HostBuffer) Close() error {
	if b.bytes == nil {
		return nil
	}
	p := unsafe.Pointer(unsafe.SliceData(b.bytes))
	b.bytes = nil
	return b.ctx.invoke(symMemFreeHost, uintptr(p))
}

// KeepAll is a release threshold that no pool reaches.
const KeepAll uint64 = math.MaxUint64

// SetPoolThreshold sets how many freed bytes the device's memory pool keeps for
// Stream.Alloc across synchronisations; the driver's default of 0 gives all back,
// which makes the next allocation slow. It counts for the whole process.
func (c *Context) SetPoolThreshold(bytes uint64) error {
	const releaseThreshold = 4 // CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
	pool, err := c.pool()
	if err != nil {
		return err
	}
	return c.call(symMemPoolSetAttribute, pool, releaseThreshold, uintptr(unsafe.Pointer(&bytes)))
}

// TrimPool gives freed memory of the pool back to the system, all but keep bytes.
func (c *Context) TrimPool(keep uint64) error {
	pool, err := c.pool()
	if err != nil {
		return err
	}
	return c.invoke(symMemPoolTrimTo, pool, uintptr(keep))
}

func (c *Context) pool() (uintptr, error) {
	var pool uintptr
	err := c.call(symGetDefaultMemPool, uintptr(unsafe.Pointer(&pool)), uintptr(c.device.handle))
	return pool, err
}
