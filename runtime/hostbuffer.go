package runtime

import (
	"errors"
	"sync"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/tensor"
)

// A HostBuffer is a tensor in host memory that a device reaches directly (pinned):
// copies from and to it run beside everything else (Stream.Upload, Stream.Download).
// Pinned memory is scarce and slow to get: keep it. It is outside the Go heap. The
// tensor must not be used after Close, which waits for what is queued on streams.
type HostBuffer struct {
	device *Device
	tensor *tensor.Tensor
	free   func() error
	once   sync.Once
}

// NewHostBuffer allocates a tensor of unspecified contents in pinned memory. Close it.
func (d *Device) NewHostBuffer(t ir.DType, shape ...int) (*HostBuffer, error) {
	bytes, err := byteSize(t, shape)
	if err != nil {
		return nil, err
	}
	if !d.calls.enter() {
		return nil, errClosed
	}
	defer d.calls.leave()
	data, free, err := d.engine.hostMemory(bytes)
	if err != nil {
		return nil, noRoom("tensor "+typeName(t, shape)+" in host memory", err)
	}
	b := &HostBuffer{device: d, free: free}
	if b.tensor, err = tensor.FromBytes(t, data, shape...); err != nil {
		return nil, errors.Join(err, free())
	}
	d.adopt(memoryRank, b)
	return b, nil
}

// Tensor is the memory as a tensor: an argument of runs and copies like any other.
func (b *HostBuffer) Tensor() *tensor.Tensor { return b.tensor }

// Close frees the memory, once what is queued on streams is done. A second Close does nothing.
func (b *HostBuffer) Close() error {
	if b.device == nil {
		return nil
	}
	return b.device.closeMember(b)
}

func (b *HostBuffer) finish() (err error) {
	b.once.Do(func() {
		b.device.disown(memoryRank, b)
		err = b.free()
	})
	return err
}
