package runtime

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"sync/atomic"

	"github.com/fusec/fusec/internal/hostmem"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/cuda"
)

// gpu is the engine of a CUDA device. Its context is made in the background; calls that need it
// wait (enter).
type gpu struct {
	device   *cuda.Device
	opts     Options
	compiler *Compiler
	ranges   *cuda.Ranges // nil where no tool is in the process
	memory   memory
	streams  freeList[*gpuStream]
	stages   freeList[*stage]
	probe    probe
	cupti    func() (*cuda.CUPTI, error)

	opened  chan struct{} // closed when context and failure are set
	context *cuda.Context
	failure error
	errands sync.WaitGroup // work in the background, for which close waits
	lost    atomic.Bool    // the device has failed for good

	mu     sync.Mutex
	queues map[*gpuStream]struct{} // streams that users have
	// drains is held for reading while queues are waited for, so that none leaves the list.
	drains sync.RWMutex
}

// newGPU begins to open a device.
func newGPU(dev *cuda.Device, opts Options) *gpu {
	g := makeGPU(dev, opts)
	go g.open()
	return g
}

// makeGPU makes the engine without its context.
func makeGPU(dev *cuda.Device, opts Options) *gpu {
	if opts.NVRTC.MaxMajor == 0 {
		opts.NVRTC.MaxMajor, _ = dev.Driver().Version()
	}
	g := &gpu{device: dev, opts: opts, compiler: NewCompiler(opts), opened: make(chan struct{}),
		queues: map[*gpuStream]struct{}{}}
	if tool := os.Getenv("NVTX_INJECTION64_PATH"); tool != "" {
		var err error
		if g.ranges, err = cuda.RangesFor(tool); err != nil {
			opts.warn(err)
		}
	}
	g.memory.gpu = g
	g.cupti = sync.OnceValues(g.openCUPTI)
	g.streams.make = g.newStream
	g.stages.make = func() (*stage, error) { return newStage(g.context) }
	return g
}

// open makes the context, and the stream that the first run will need.
func (g *gpu) open() {
	defer close(g.opened)
	end := g.opts.Trace.Step("context", g.device.Name)
	g.context, g.failure = g.device.Context()
	end()
	if g.failure != nil {
		g.failure = fmt.Errorf("%s: %w", g.device.Name, g.failure)
		return
	}
	if s, err := g.newStream(); err == nil {
		g.streams.put(s)
	}
}

// enter waits until there is a context, or ctx ends. If there is one already, ctx does not
// matter.
func (g *gpu) enter(ctx context.Context) error {
	select {
	case <-g.opened:
		return g.failure
	default:
	}
	select {
	case <-g.opened:
		return g.failure
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *gpu) load(p *ir.Program, _ *ir.Plan, kernels KernelSource) (executable, error) {
	return &gpuProgram{gpu: g, program: p, kernels: g.kernelSource(kernels), arch: archOf(g.device),
		units: make([]gpuUnit, len(p.Units))}, nil
}

// kernelSource is where the code of kernels comes from that have a source of their own, or none.
func (g *gpu) kernelSource(own KernelSource) KernelSource {
	switch {
	case own != nil:
		return own
	case g.opts.Kernels != nil:
		return g.opts.Kernels
	}
	return g.compiler
}

// expect opens the compiler in the background, if kernels come from it. If that fails, the
// error is returned when the compiler is needed.
func (g *gpu) expect() {
	if !g.compiler.never && g.opts.Kernels == nil {
		g.errands.Go(func() { _, _ = g.compiler.nvrtc() })
	}
}

func (g *gpu) memInfo() (free, total uint64, err error) {
	if err := g.enter(context.Background()); err != nil {
		return 0, 0, err
	}
	return g.context.MemInfo()
}

func (g *gpu) close() error {
	g.errands.Wait()
	if err := g.enter(context.Background()); err != nil {
		return nil // calls that needed the context have returned the error; there is nothing to close
	}
	errs := []error{g.closing(g.probe.close())}
	for _, s := range g.streams.drain() {
		errs = append(errs, g.closeStream(s))
	}
	for _, s := range g.stages.drain() {
		errs = append(errs, s.close())
	}
	errs = append(errs, g.memory.close())
	return g.closing(errors.Join(append(errs, g.context.Close())...))
}

// noteLoss remembers a device that has failed for good.
func (g *gpu) noteLoss(err error) error {
	if errors.Is(err, cuda.ErrDeviceLost) {
		g.lost.Store(true)
	}
	return err
}

// closing is the error of closing something. On a lost device every call fails, and all its
// resources are gone with the context, so it is nil.
func (g *gpu) closing(err error) error {
	if g.lost.Load() {
		return nil
	}
	return err
}

// withStream runs fn with a stream of its own and waits for the stream's work, even if fn
// fails: nothing may use memory after it was given back to its owner.
func (g *gpu) withStream(fn func(*gpuStream) error) error {
	s, err := g.takeStream(context.Background())
	if err != nil {
		return g.noteLoss(err)
	}
	err = fn(s)
	if waited := s.Synchronize(); err == nil {
		err = waited
	}
	g.putStream(s)
	return g.noteLoss(err)
}

// gpuStorage is the memory of a Buffer.
type gpuStorage struct {
	gpu *gpu
	block
	borrowed bool // other code owns it
}

func (g *gpu) alloc(bytes int64) (storage, error) {
	m := &gpuStorage{gpu: g}
	return m, g.withStream(func(s *gpuStream) (err error) {
		m.block, err = g.memory.take(s.Stream, bytes)
		if errors.Is(err, cuda.ErrOutOfMemory) && s.arena.at != 0 { // no run uses the arena
			if err = g.memory.empty(s); err == nil {
				m.block, err = g.memory.take(s.Stream, bytes)
			}
		}
		return err
	})
}

func (g *gpu) hostMemory(bytes int64) (data []byte, free func() error, err error) {
	if err := g.enter(context.Background()); err != nil {
		return nil, nil, err
	}
	if bytes > math.MaxInt {
		return nil, nil, fmt.Errorf("%s do not fit in memory", sizeName(bytes))
	}
	if err := hostmem.Admit("", bytes); err != nil {
		return nil, nil, err
	}
	pinned, err := g.context.AllocHost(int(bytes))
	if err != nil {
		return nil, nil, g.noteLoss(err)
	}
	free = func() error { return g.closing(errors.Join(g.drainQueues(), pinned.Close())) }
	return pinned.Bytes(), free, nil
}

func (m *gpuStorage) upload(src []byte) error {
	return m.gpu.withStream(func(s *gpuStream) error { return m.gpu.copyIn(s.Stream, m.at, src) })
}

func (m *gpuStorage) download(dst []byte) error {
	return m.gpu.withStream(func(s *gpuStream) error { return m.gpu.copyOut(s.Stream, dst, m.at) })
}

// close frees the memory, once all work that users have queued, which may use it, is done.
func (m *gpuStorage) close() error {
	if err := m.gpu.enter(context.Background()); err != nil {
		return err
	}
	if m.borrowed {
		return m.gpu.closing(m.gpu.drainQueues())
	}
	return m.gpu.closing(errors.Join(m.gpu.drainQueues(), m.gpu.withStream(func(s *gpuStream) error {
		return m.gpu.memory.give(s.Stream, m.block)
	})))
}

// freeList keeps things that are slow to make, for reuse.
type freeList[T any] struct {
	make func() (T, error)
	mu   sync.Mutex
	free []T
}

func (l *freeList[T]) take() (T, error) {
	l.mu.Lock()
	if n := len(l.free); n > 0 {
		x := l.free[n-1]
		l.free = l.free[:n-1]
		l.mu.Unlock()
		return x, nil
	}
	l.mu.Unlock()
	return l.make()
}

func (l *freeList[T]) put(x T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free = append(l.free, x)
}

// drain empties the list.
func (l *freeList[T]) drain() []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.free
	l.free = nil
	return all
}
