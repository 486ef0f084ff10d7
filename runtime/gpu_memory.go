package runtime

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/cuda"
)

// firstPlain is how many pieces of memory are allocated plainly before the driver's
// pool is asked: setting the pool up takes 5.6 ms (H200, driver 580), a plain
// allocation 0.09 ms, one from the pool 0.001 ms.
const firstPlain = 8

// memory hands out the device's memory. It is safe for concurrent use.
type memory struct {
	gpu    *gpu
	plain  atomic.Int64 // pieces allocated so far
	mu     sync.Mutex   // held to set up the pool
	pooled atomic.Bool  // the pool is in use
	idle   atomic.Int64 // bytes of the arenas of idle streams
}

// block is a piece of device memory.
type block struct {
	at     cuda.DevicePtr
	bytes  int64
	pooled bool
}

// take allocates in the order of s. Before it fails with an *ir.MemoryError, it frees the
// memory that is kept for later runs, unless the device is too small even then.
func (m *memory) take(s *cuda.Stream, bytes int64) (block, error) {
	if uint64(bytes) > m.gpu.device.TotalMemory {
		return block{}, m.refusal(bytes, cuda.ErrOutOfMemory)
	}
	b, err := m.allocate(s, bytes)
	if !errors.Is(err, cuda.ErrOutOfMemory) {
		return b, err
	}
	if err := m.shrink(); err != nil {
		return block{}, err
	}
	if b, err = m.allocate(s, bytes); errors.Is(err, cuda.ErrOutOfMemory) {
		err = m.refusal(bytes, err)
	}
	return b, err
}

// refusal adds to an error how much memory there is.
func (m *memory) refusal(bytes int64, err error) error {
	e := &ir.MemoryError{What: "memory", Bytes: bytes, Total: int64(m.gpu.device.TotalMemory), Place: m.gpu.device.Name, Err: err}
	if free, _, infoErr := m.gpu.context.MemInfo(); infoErr == nil {
		e.Free = int64(free)
	}
	return e
}

func (m *memory) allocate(s *cuda.Stream, bytes int64) (b block, err error) {
	b.bytes = bytes
	if m.plain.Add(1) <= firstPlain || !m.gpu.device.Limits.MemoryPools {
		b.at, err = m.gpu.context.Alloc(uint64(bytes))
		return b, err
	}
	if err := m.openPool(); err != nil {
		return block{}, err
	}
	b.pooled = true
	b.at, err = s.Alloc(uint64(bytes))
	return b, err
}

// openPool sets up the driver's pool, the first time.
func (m *memory) openPool() error {
	if m.pooled.Load() {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.gpu.context.SetPoolThreshold(m.keep()); err != nil {
		return err
	}
	m.pooled.Store(true)
	return nil
}

// keep is how many bytes of freed memory are kept for later.
func (m *memory) keep() uint64 {
	if n := m.gpu.opts.KeepMemory; n > 0 {
		return n
	}
	return m.gpu.device.TotalMemory / 8
}

// keeps reports whether an arena is kept for the next run; idle is the bytes of the arenas of idle streams, this one
// included. Without Options.KeepMemory, the only arena is kept however large it is, because a loop of large runs, as in
// training, would otherwise allocate it in each of them.
func (m *memory) keeps(idle, arena int64) bool {
	return uint64(idle) <= m.keep() || m.gpu.opts.KeepMemory == 0 && idle == arena
}

// give frees a block once the work queued on s so far is finished.
func (m *memory) give(s *cuda.Stream, b block) error {
	switch {
	case b.at == 0:
		return nil
	case b.pooled:
		return s.Free(b.at)
	}
	// A plain block may be handed out again as soon as it is free.
	return errors.Join(s.Synchronize(), m.gpu.context.Free(b.at))
}

// shrink frees the memory that is kept for later runs.
func (m *memory) shrink() error {
	var errs []error
	for _, s := range m.gpu.streams.drain() {
		m.idle.Add(-s.arena.bytes)
		errs = append(errs, m.empty(s))
		m.gpu.streams.put(s)
	}
	return errors.Join(append(errs, m.gpu.context.Synchronize(), m.trim())...)
}

// reserve makes the arena of a stream at least so large. The arena may move, because runs that
// were queued earlier are done before the next one uses it.
func (m *memory) reserve(ctx context.Context, s *gpuStream, bytes int64) error {
	if bytes <= s.arena.bytes {
		return nil
	}
	const unit = 2 << 20 // that the driver deals memory out in
	if rounded := (bytes + unit - 1) &^ (unit - 1); rounded > 0 {
		bytes = rounded
	}
	if err := m.settle(ctx, s, s.arena); err != nil {
		return err
	}
	if err := m.empty(s); err != nil {
		return err
	}
	arena, err := m.take(s.Stream, bytes)
	if err == nil {
		s.arena = arena
	}
	return err
}

// settle waits until a block of a stream can be freed without waiting for the stream's work, or
// until ctx ends.
func (m *memory) settle(ctx context.Context, s *gpuStream, b block) error {
	if b.at == 0 || b.pooled {
		return nil
	}
	return s.waitFor(ctx)
}

// empty frees the arena of a stream.
func (m *memory) empty(s *gpuStream) error {
	arena := s.arena
	s.arena = block{}
	return m.give(s.Stream, arena)
}

// reserveCounters makes the memory for the counters of a stream at least so large. New memory
// is set to zero before the next queued work.
func (m *memory) reserveCounters(ctx context.Context, s *gpuStream, bytes int64) error {
	if bytes <= s.counters.bytes {
		return nil
	}
	const unit = 4096 // so that it rarely has to grow
	bytes = (bytes + unit - 1) &^ (unit - 1)
	if err := m.settle(ctx, s, s.counters); err != nil {
		return err
	}
	if err := m.emptyCounters(s); err != nil {
		return err
	}
	counters, err := m.take(s.Stream, bytes)
	if err != nil {
		return err
	}
	s.counters = counters
	if err := s.Memset8(counters.at, 0, uint64(bytes)); err != nil {
		return errors.Join(err, m.emptyCounters(s))
	}
	return nil
}

func (m *memory) emptyCounters(s *gpuStream) error {
	counters := s.counters
	s.counters = block{}
	return m.give(s.Stream, counters)
}

// trim gives the pool's freed memory back to the system.
func (m *memory) trim() error {
	if !m.pooled.Load() {
		return nil
	}
	return m.gpu.context.TrimPool(0)
}

// close frees what the pool, which belongs to the process, has kept for this device.
func (m *memory) close() error { return m.trim() }
