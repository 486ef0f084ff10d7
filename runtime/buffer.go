package runtime

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/tensor"
)

// A Buffer is a tensor in a device's memory, contiguous and row-major. Any number of runs may
// read it at the same time; a run that writes it must be the only one that uses it. It must not
// be used after Close; runs and copies under way keep its memory until they are done.
type Buffer struct {
	device *Device
	dtype  ir.DType
	shape  []int
	bytes  int64
	memory storage
	closed atomic.Bool
	users  atomic.Int64 // the owner until Close, and runs and copies under way
}

// acquire holds the memory for a run or copy; done gives it back.
func (b *Buffer) acquire() error {
	for {
		n := b.users.Load()
		if b.closed.Load() || n == 0 {
			return errBufferClosed
		}
		if b.users.CompareAndSwap(n, n+1) {
			return nil
		}
	}
}

// done ends what acquire began. If the owner has closed the buffer meanwhile, its memory is
// freed in the background, because freeing waits for everything that is queued, and the caller
// should not.
func (b *Buffer) done() {
	if b.users.Add(-1) > 0 {
		return
	}
	free := func() {
		if err := b.free(); err != nil { // nobody is waiting for the error
			b.device.opts.warn(fmt.Errorf("freeing the buffer %v: %w", b, err))
		}
	}
	if !b.device.calls.enter() {
		free()
		return
	}
	go func() {
		defer b.device.calls.leave()
		free()
	}()
}

// free frees the memory when its last user has gone.
func (b *Buffer) free() error {
	b.device.disown(memoryRank, b)
	return b.memory.close()
}

// NewBuffer allocates a tensor of unspecified contents. Close it. Where the device's memory
// has no room for it, the error is an *ir.MemoryError.
func (d *Device) NewBuffer(t ir.DType, shape ...int) (*Buffer, error) {
	bytes, err := byteSize(t, shape)
	if err != nil {
		return nil, err
	}
	if !d.calls.enter() {
		return nil, errClosed
	}
	defer d.calls.leave()
	memory, err := d.engine.alloc(bytes)
	if err != nil {
		return nil, noRoom("tensor "+typeName(t, shape), err)
	}
	return d.newBuffer(t, shape, bytes, memory), nil
}

// newBuffer makes a buffer of memory. The caller has entered d.calls.
func (d *Device) newBuffer(t ir.DType, shape []int, bytes int64, m storage) *Buffer {
	b := &Buffer{device: d, dtype: t, shape: append([]int(nil), shape...), bytes: bytes, memory: m}
	b.users.Store(1)
	d.adopt(memoryRank, b)
	return b
}

// noRoom adds to a refusal of memory what it was for; other errors stay as they are.
func noRoom(what string, err error) error {
	var e *ir.MemoryError
	if errors.As(err, &e) {
		e.What = what
	}
	return err
}

// byteSize is the bytes of a tensor.
func byteSize(t ir.DType, shape []int) (int64, error) {
	n := int64(t.Size())
	if n == 0 || t == ir.Index {
		return 0, fmt.Errorf("a tensor cannot hold %v", t)
	}
	for _, d := range shape {
		if d < 0 {
			return 0, fmt.Errorf("tensor %s: dimensions must not be negative", typeName(t, shape))
		}
	}
	for _, d := range shape {
		if d == 0 {
			return 0, nil
		}
	}
	for _, d := range shape {
		if n > math.MaxInt64/int64(d) {
			return 0, fmt.Errorf("tensor %s: its size in bytes does not fit in 64 bits", typeName(t, shape))
		}
		n *= int64(d)
	}
	return n, nil
}

func typeName(t ir.DType, shape []int) string {
	return (&tensor.Tensor{DType: t, Shape: shape}).String()
}

// sizeName spells a number of bytes for people.
func sizeName(bytes int64) string {
	const unit = 1024
	if bytes < unit {
		return fmt.Sprintf("%d bytes", bytes)
	}
	size, prefixes := float64(bytes)/unit, "KMGTPE"
	for size >= unit {
		size, prefixes = size/unit, prefixes[1:]
	}
	return fmt.Sprintf("%.1f %ciB", size, prefixes[0])
}

// DType is the type of the elements.
func (b *Buffer) DType() ir.DType { return b.dtype }

// Shape is the extents, outermost first. The caller must not change it.
func (b *Buffer) Shape() []int { return b.shape }

// Bytes is the size of the elements together.
func (b *Buffer) Bytes() int64 { return b.bytes }

// String names type and shape as programs write them: f32[3, 4].
func (b *Buffer) String() string {
	if b.device == nil {
		return "no buffer"
	}
	return typeName(b.dtype, b.shape)
}

// Upload copies a host tensor of the same type and shape to the buffer. It returns
// when src may be changed again.
func (b *Buffer) Upload(src *tensor.Tensor) error {
	if err := b.enter(); err != nil {
		return err
	}
	defer b.device.calls.leave()
	if err := b.fits(src); err != nil {
		return err
	}
	defer b.done()
	return b.memory.upload(src.Data)
}

// enter begins a call on the buffer's device, which its calls.leave ends.
func (b *Buffer) enter() error {
	switch {
	case b.device == nil:
		return errBufferClosed
	case !b.device.calls.enter():
		return errClosed
	}
	return nil
}

// Download copies the buffer to a host tensor of the same type and shape.
func (b *Buffer) Download(dst *tensor.Tensor) error {
	if err := b.enter(); err != nil {
		return err
	}
	defer b.device.calls.leave()
	if err := b.fits(dst); err != nil {
		return err
	}
	defer b.done()
	return b.memory.download(dst.Data)
}

// Tensor returns a copy of the buffer in host memory.
func (b *Buffer) Tensor() (*tensor.Tensor, error) {
	if b.device == nil {
		return nil, errBufferClosed
	}
	x, err := tensor.New(b.dtype, b.shape...)
	if err != nil {
		return nil, err
	}
	return x, b.Download(x)
}

// fits checks the host side of a copy and acquires the buffer.
func (b *Buffer) fits(x *tensor.Tensor) error {
	if err := x.Check(); err != nil {
		return err
	}
	if err := b.acquire(); err != nil {
		return err
	}
	if x.DType != b.dtype || !sameShape(x.Shape, b.shape) {
		b.done()
		return asArgument(fmt.Errorf("the buffer is %v, the host tensor %v: both must be the same", b, x))
	}
	return nil
}

func sameShape(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// Close frees the memory, once the runs and copies under way, those queued on streams
// included, are done with it. A second Close does nothing.
func (b *Buffer) Close() error {
	if b.device == nil {
		return nil
	}
	return b.device.closeMember(b)
}

func (b *Buffer) finish() error {
	if b.closed.Swap(true) {
		return nil
	}
	if b.users.Add(-1) > 0 {
		return nil
	}
	return b.free()
}

// hostBytes allocates host memory; sizes that no machine has are errors.
func hostBytes(n int64) ([]byte, error) {
	if n > math.MaxInt {
		return nil, fmt.Errorf("%s do not fit in memory", sizeName(n))
	}
	x, err := tensor.New(ir.U8, int(n))
	if err != nil {
		return nil, err
	}
	return x.Data, nil
}
