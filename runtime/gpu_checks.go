package runtime

import (
	"context"
	"sync"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/cuda"
)

// gpuChecks holds the results of checks of a stream's runs until they are reported. The results
// of each run with checks are copied to pinned memory, after those of the run before, and are
// examined once the stream has passed them. It is safe for concurrent use.
type gpuChecks struct {
	mu      sync.Mutex
	buffer  *cuda.HostBuffer // nil until a run needs it
	used    int              // bytes of buffer
	pending []pendingChecks  // in order
	queued  uint64           // number of all runs; the last of them are pending
	fault   error            // of the first run that has one
}

// pendingChecks are those of one run.
type pendingChecks struct {
	work *gpuWork
	at   int // in the buffer
}

// checkBuffer is the pinned memory of a stream, in bytes. It bounds how many runs with checks
// can be queued before one has to wait.
const checkBuffer = 4096

// queueChecks queues the copy of the results of a run's checks, for which makeRoom has made
// room.
func (s *gpuStream) queueChecks(w *gpuWork, from cuda.DevicePtr) error {
	c, bytes := &s.checks, w.checkBytes()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := s.CopyToPinned(c.buffer, c.used, bytes, from); err != nil {
		return err
	}
	c.pending = append(c.pending, pendingChecks{w, c.used})
	c.used += bytes
	c.queued++
	return nil
}

// makeRoom makes room for the results of a run's checks. If there is none it waits for the
// stream, or the end of ctx. Nothing of the run may be queued yet.
func (s *gpuStream) makeRoom(ctx context.Context, bytes int) error {
	c := &s.checks
	fits, pending := c.room(bytes)
	if fits {
		return nil
	}
	if pending {
		if err := s.waitFor(ctx); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.look(len(c.pending))
	c.used = 0
	if c.buffer != nil && bytes <= len(c.buffer.Bytes()) {
		return nil
	}
	if err := c.free(); err != nil {
		return err
	}
	buffer, err := s.gpu.context.AllocHost(max(bytes, checkBuffer))
	if err != nil {
		return err
	}
	c.buffer = buffer
	c.pending = make([]pendingChecks, 0, len(buffer.Bytes())/ir.CheckBytes)
	return nil
}

// room reports whether there is room for so many bytes, and whether runs still write to the
// buffer.
func (c *gpuChecks) room(bytes int) (fits, pending bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.buffer != nil && c.used+bytes <= len(c.buffer.Bytes()), len(c.pending) > 0
}

// mark stands for the runs queued so far.
func (c *gpuChecks) mark() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.queued
}

// found is the error of the first unreported run that found an index outside, once the stream
// has passed the runs up to mark.
func (c *gpuChecks) found(mark uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if later := c.queued - mark; uint64(len(c.pending)) > later {
		c.look(len(c.pending) - int(later))
	}
	fault := c.fault
	c.fault = nil
	return fault
}

// look examines the results of the first n pending runs.
func (c *gpuChecks) look(n int) {
	for _, p := range c.pending[:n] {
		x := p.work.program.program
		err := ir.FirstOutside(x.Name, x.Checks, p.work.binding.symbols, c.buffer.Bytes()[p.at:])
		if c.fault == nil {
			c.fault = err
		}
	}
	left := copy(c.pending, c.pending[n:])
	clear(c.pending[left:])
	c.pending = c.pending[:left]
	if left == 0 {
		c.used = 0
	}
}

func (c *gpuChecks) free() error {
	buffer := c.buffer
	c.buffer = nil
	if buffer == nil {
		return nil
	}
	return buffer.Close()
}

// close gives the memory back, when the results of all runs have been looked at.
func (c *gpuChecks) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.free()
}
