package runtime

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/fusec/fusec/runtime/cuda"
)

// A gpuStream is a queue of runs with the memory for their intermediate tensors. The runs of a
// stream are in order, so they share one arena, as large as the largest of them needs. They
// also share the counters of kernels, which each kernel leaves at zero. One goroutine at a time
// may use it.
type gpuStream struct {
	gpu *gpu
	*cuda.Stream
	arena    block
	counters block // all zero between runs
	checks   gpuChecks
	borrowed bool // other code owns the stream
}

func (g *gpu) newStream() (*gpuStream, error) {
	s, err := g.context.NewStream()
	if err != nil {
		return nil, err
	}
	return &gpuStream{gpu: g, Stream: s}, nil
}

// takeStream returns an idle stream, or a new one.
func (g *gpu) takeStream(ctx context.Context) (*gpuStream, error) {
	if err := g.enter(ctx); err != nil {
		return nil, err
	}
	s, err := g.streams.take()
	if err == nil {
		g.memory.idle.Add(-s.arena.bytes)
	}
	return s, err
}

// putStream keeps a stream whose work is done for the next run. It also keeps its arena, unless
// that exceeds the memory to be kept.
func (g *gpu) putStream(s *gpuStream) {
	if idle := g.memory.idle.Add(s.arena.bytes); !g.memory.keeps(idle, s.arena.bytes) {
		g.memory.idle.Add(-s.arena.bytes)
		if err := g.memory.empty(s); err != nil {
			g.opts.warn(g.noteLoss(err)) // only a warning, because the run that used it has its results
		}
	}
	g.streams.put(s)
}

// closeStream closes a stream whose work is done, and waits until its memory is freed, so that
// the pool has it.
func (g *gpu) closeStream(s *gpuStream) error {
	return g.closing(errors.Join(g.memory.empty(s), g.memory.emptyCounters(s), s.Synchronize(), s.checks.close(),
		s.Stream.Close()))
}

// queue makes a stream for a user.
func (g *gpu) queue() (queue, error) {
	s, err := g.takeStream(context.Background())
	if err != nil {
		return nil, g.noteLoss(err)
	}
	g.addQueue(s)
	return s, nil
}

func (g *gpu) addQueue(s *gpuStream) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.queues[s] = struct{}{}
}

// removeQueue takes a queue whose work is done off the list.
func (g *gpu) removeQueue(s *gpuStream) {
	g.drains.Lock()
	defer g.drains.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.queues, s)
}

// drainQueues waits for all work that users have queued so far.
func (g *gpu) drainQueues() error {
	g.drains.RLock()
	defer g.drains.RUnlock()
	g.mu.Lock()
	queues := slices.Collect(maps.Keys(g.queues))
	g.mu.Unlock()
	var errs []error
	for _, s := range queues {
		errs = append(errs, s.Synchronize())
	}
	return errors.Join(errs...)
}

func (s *gpuStream) upload(dst storage, src []byte) error {
	return s.gpu.noteLoss(s.CopyHtoD(dst.(*gpuStorage).at, src))
}

func (s *gpuStream) download(dst []byte, src storage) error {
	return s.gpu.noteLoss(s.CopyDtoH(dst, src.(*gpuStorage).at))
}

func (s *gpuStream) after(other queue) error {
	e, err := s.gpu.context.NewEvent(false)
	if err != nil {
		return s.gpu.noteLoss(err)
	}
	return s.gpu.noteLoss(errors.Join(e.Record(other.(*gpuStream).Stream), s.Stream.Wait(e), e.Close()))
}

// wait waits for the stream's work or the end of ctx, and returns what checks found. Queued
// work cannot be cancelled; it goes on.
func (s *gpuStream) wait(ctx context.Context) error {
	mark := s.checks.mark()
	if err := s.waitFor(ctx); err != nil {
		return err
	}
	return s.checks.found(mark)
}

func (s *gpuStream) waitFor(ctx context.Context) error {
	if ctx.Done() == nil {
		return s.gpu.noteLoss(s.Synchronize())
	}
	for start := time.Now(); ; {
		done, err := s.Done()
		if done || err != nil {
			return s.gpu.noteLoss(err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		const share = 16 // polling may add this part of the time waited so far
		if pause := time.Since(start) / share; pause > time.Microsecond {
			time.Sleep(min(pause, time.Millisecond))
		}
	}
}

func (s *gpuStream) close() error {
	err := s.gpu.noteLoss(s.Synchronize())
	s.gpu.removeQueue(s) // only now, because other closers wait for the queues on the list
	found := s.checks.found(s.checks.mark())
	if err != nil {
		found = nil // the copied results are not valid
	}
	if err != nil || s.borrowed {
		return errors.Join(found, s.gpu.closing(err), s.gpu.closeStream(s))
	}
	s.gpu.putStream(s)
	return found
}
