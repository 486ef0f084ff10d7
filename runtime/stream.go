package runtime

import (
	"context"
	"fmt"

	"github.com/fusec/fusec/runtime/tensor"
)

// A Stream is a queue of runs and copies on a device. They are carried out in order, while the
// program goes on: Function.Queue, Stream.Upload, Stream.Download. Work of different streams is
// not ordered (but see After). It is safe for concurrent use; work that several goroutines
// queue is in no particular order. The CPU engine carries out everything at once.
type Stream struct {
	device *Device
	queue  queue
	calls  gate
	turn   chan struct{} // holds one thing while somebody queues
}

// A queue is an engine's side of a Stream. One goroutine at a time uses it, except that others
// may wait for it or order another queue after it.
type queue interface {
	upload(dst storage, src []byte) error
	download(dst []byte, src storage) error
	after(other queue) error
	wait(ctx context.Context) error
	close() error
}

// NewStream makes a stream. Close it.
func (d *Device) NewStream() (*Stream, error) {
	if !d.calls.enter() {
		return nil, errClosed
	}
	defer d.calls.leave()
	q, err := d.engine.queue()
	if err != nil {
		return nil, err
	}
	return d.newStream(q), nil
}

// newStream makes a stream of a queue. The caller has entered d.calls.
func (d *Device) newStream(q queue) *Stream {
	s := &Stream{device: d, queue: q, calls: newGate(), turn: make(chan struct{}, 1)}
	d.adopt(streamRank, s)
	return s
}

// enter begins a use of the stream, which s.calls.leave ends.
func (s *Stream) enter() error {
	if !s.calls.enter() {
		return errStreamClosed
	}
	return nil
}

// lock waits for the turn to queue, which unlock ends. The goroutine that has the turn may be
// waiting for the device, so the wait ends with ctx.
func (s *Stream) lock(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Stream) unlock() { <-s.turn }

// Upload queues a copy to a buffer of the same type and shape. From memory of a
// HostBuffer it returns at once, and src must not change until the copy is done; from
// other memory it returns when src may be changed.
func (s *Stream) Upload(dst *Buffer, src *tensor.Tensor) error {
	return s.copy(dst, src, func() error { return s.queue.upload(dst.memory, src.Data) })
}

// Download queues a copy from a buffer to a host tensor of the same type and shape. To
// memory of a HostBuffer it returns at once, and dst is filled when the stream gets
// there (Wait); to other memory it returns when dst is filled.
func (s *Stream) Download(dst *tensor.Tensor, src *Buffer) error {
	return s.copy(src, dst, func() error { return s.queue.download(dst.Data, src.memory) })
}

// copy queues a copy between a buffer and a host tensor.
func (s *Stream) copy(b *Buffer, x *tensor.Tensor, queue func() error) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.calls.leave()
	if err := s.fits(b, x); err != nil {
		return err
	}
	defer b.done()
	if err := s.lock(context.Background()); err != nil {
		return err
	}
	defer s.unlock()
	return queue()
}

// fits checks a buffer and its counterpart, and acquires the buffer.
func (s *Stream) fits(b *Buffer, x *tensor.Tensor) error {
	if b.device == nil {
		return errBufferClosed
	}
	if b.device != s.device {
		return asArgument(fmt.Errorf("the buffer is in the memory of %s: expected that of the stream's device, %s",
			b.device.name, s.device.name))
	}
	return b.fits(x)
}

// After makes work that is queued on s from now on wait for the work queued on other so far.
// Both streams have the same device.
func (s *Stream) After(other *Stream) error {
	if s == other {
		return nil
	}
	if err := other.enter(); err != nil {
		return err
	}
	defer other.calls.leave()
	if err := s.enter(); err != nil {
		return err
	}
	defer s.calls.leave()
	if s.device != other.device {
		return asArgument(fmt.Errorf("the streams are of two devices, %s and %s: expected one", s.device.name, other.device.name))
	}
	if err := s.lock(context.Background()); err != nil {
		return err
	}
	defer s.unlock()
	return s.queue.after(other.queue)
}

// Wait waits until all that was queued is done, or ctx ends: then it returns the error of ctx,
// and the work goes on. Faults of kernels show here. If an index of a @strict graph was outside
// in a run, the error is the *ir.IndexError of the first such run that was not reported before.
// Later runs went on, and the stream can still be used.
func (s *Stream) Wait(ctx context.Context) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.calls.leave()
	return s.queue.wait(ctx) // others may queue meanwhile
}

// Close waits for what is queued and closes the stream; its error may be of a run, as that
// of Wait. A second Close does nothing.
func (s *Stream) Close() error {
	if s.device == nil {
		return nil
	}
	return s.device.closeMember(s)
}

// String names the stream's device.
func (s *Stream) String() string {
	if s.device == nil {
		return "no stream"
	}
	return "a stream of " + s.device.String()
}

func (s *Stream) finish() error {
	if !s.calls.close() {
		return nil
	}
	s.device.disown(streamRank, s)
	return s.queue.close()
}
