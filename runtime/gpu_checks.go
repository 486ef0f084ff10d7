package runtime

import (
	"sync"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/cuda"
)

// gpuChecks is what the checks of a stream's runs found, as far as nobody was told: each
// run with checks has its results copied to pinned memory, behind those of the run ahead,
// where they are looked at once the stream has passed them. It is safe for concurrent use.
type gpuChecks struct {
	mu      sync.Mutex
	buffer  *cuda.HostBuffer // nil until a run needs it
	used    int              // bytes of buffer
	pending []pendingChecks  // in order
	queued  uint64           // runs in all; the last of them are pending
	fault   error            // of the first run that has one
}

// pendingChecks are those of one run.
type pendingChecks struct {
	work *gpuWork
	at   int // in the buffer
}

// checkBuffer is the pinned memory of a stream, in bytes: as many runs may be queued, of
// one check each, before one has to wait.
const checkBuffer = 4096

// queueChecks queues the copy of what the checks of a run find.
func (s *gpuStream) queueChecks(w *gpuWork, from cuda.DevicePtr) error {
	c, bytes := &s.checks, w.checkBytes()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.buffer == nil || c.used+bytes > len(c.buffer.Bytes()) {
		if err := s.makeRoom(bytes); err != nil {
			return err
		}
	}
	if err := s.CopyToPinned(c.buffer, c.used, bytes, from); err != nil {
		return err
	}
	c.pending = append(c.pending, pendingChecks{w, c.used})
	c.used += bytes
	c.queued++
	return nil
}

// makeRoom empties the buffer, which may have to wait for the stream, and makes it as
// large as is needed.
func (s *gpuStream) makeRoom(bytes int) error {
	c := &s.checks
	if len(c.pending) > 0 {
		if err := s.Synchronize(); err != nil {
			return err
		}
		c.look(len(c.pending))
	}
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

// mark stands for the runs queued so far.
func (c *gpuChecks) mark() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.queued
}

// found is what the first run found that has not been told and found an index outside,
// once the stream has passed the runs up to mark.
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

// look looks at the first n runs that are pending.
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

// close gives the memory back, when the stream's work is done.
func (c *gpuChecks) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending, c.used = nil, 0
	return c.free()
}
