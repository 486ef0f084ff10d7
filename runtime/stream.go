package runtime

import (
	"context"
	"fmt"
	"sync"

	"github.com/fusec/fusec/runtime/tensor"
)

// A Stream is a queue of runs and copies on a device, carried out in order and beside
// the program, which goes on at once: Function.Queue, Stream.Upload, Stream.Download.
// Work of different streams has no order (but see After). It is safe for concurrent use;
// who queues from several goroutines has no order among them. The CPU engine carries
// everything out as it is queued.
type Stream struct {
	device *Device
	mu     sync.Mutex
	queue  queue
	closed bool
}

// A queue is an engine's side of a Stream. One goroutine at a time uses it.
type queue interface {
	upload(dst storage, src []byte) error
	download(dst []byte, src storage) error
	after(other queue) error
	wait(ctx context.Context) error
	close() error
}

// NewStream makes a stream. Close it.
func (d *Device) NewStream() (*Stream, error) {
	q, err := d.engine.queue()
	if err != nil {
		return nil, err
	}
	s := &Stream{device: d, queue: q}
	if err := d.adopt(s); err != nil {
		return nil, fmt.Errorf("%w: %w", err, q.close())
	}
	return s, nil
}

// enter begins a use of the stream, which s.mu.Unlock ends.
func (s *Stream) enter() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return errStreamClosed
	}
	return nil
}

// Upload queues a copy to a buffer of the same type and shape. From memory of a
// HostBuffer it returns at once, and src must not change until the copy is done; from
// other memory it returns when src may be changed.
func (s *Stream) Upload(dst *Buffer, src *tensor.Tensor) error {
	if err := s.fits(dst, src); err != nil {
		return err
	}
	defer dst.done()
	if err := s.enter(); err != nil {
		return err
	}
	defer s.mu.Unlock()
	return s.queue.upload(dst.memory, src.Data)
}

// Download queues a copy from a buffer to a host tensor of the same type and shape. To
// memory of a HostBuffer it returns at once, and dst is filled when the stream gets
// there (Wait); to other memory it returns when dst is filled.
func (s *Stream) Download(dst *tensor.Tensor, src *Buffer) error {
	if err := s.fits(src, dst); err != nil {
		return err
	}
	defer src.done()
	if err := s.enter(); err != nil {
		return err
	}
	defer s.mu.Unlock()
	return s.queue.download(dst.Data, src.memory)
}

// fits checks a buffer and its counterpart, and acquires the buffer.
func (s *Stream) fits(b *Buffer, x *tensor.Tensor) error {
	if b.device != s.device {
		return fmt.Errorf("the buffer is in the memory of %s: expected that of the stream's device, %s",
			b.device.name, s.device.name)
	}
	return b.fits(x)
}

// After makes what is queued on s from now on wait for what is queued on other, of the
// same device, so far.
func (s *Stream) After(other *Stream) error {
	if s == other {
		return nil
	}
	if s.device != other.device {
		return fmt.Errorf("the streams are of two devices, %s and %s: expected one", s.device.name, other.device.name)
	}
	// The locks are taken one after the other, so that two streams that wait for each
	// other at one time do not stand still.
	if err := other.enter(); err != nil {
		return err
	}
	q := other.queue
	other.mu.Unlock()
	if err := s.enter(); err != nil {
		return err
	}
	defer s.mu.Unlock()
	return s.queue.after(q)
}

// Wait waits until all that was queued is done, or ctx ends: then it returns the error
// of ctx, and the work goes on. Faults of kernels show here. Where an index of a @strict
// graph was outside in a run, the error is the *ir.IndexError of the first such run that
// was not told of before; the runs behind it went on, and the stream is as good as before.
func (s *Stream) Wait(ctx context.Context) error {
	if err := s.enter(); err != nil {
		return err
	}
	s.mu.Unlock() // others may queue meanwhile
	return s.queue.wait(ctx)
}

// Close waits for what is queued and closes the stream; its error may be of a run, as that
// of Wait. A second Close does nothing.
func (s *Stream) Close() error {
	if s.enter() != nil {
		return nil
	}
	defer s.mu.Unlock()
	s.closed = true
	s.device.disown(s)
	return s.queue.close()
}
