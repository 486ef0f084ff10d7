package runtime

import (
	"errors"
	"fmt"
	"sync"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/cuda"
)

// gpu is the engine of a CUDA device.
type gpu struct {
	context  *cuda.Context
	opts     Options
	compiler *Compiler
	streams  freeList[*cuda.Stream]
	stages   freeList[*stage]
}

func newGPU(c *cuda.Context, opts Options) (*gpu, error) {
	keep := opts.KeepMemory
	if keep == 0 {
		keep = c.Device().TotalMemory / 8
	}
	if err := c.SetPoolThreshold(keep); err != nil {
		return nil, err
	}
	if opts.NVRTC.MaxMajor == 0 {
		opts.NVRTC.MaxMajor, _ = c.Driver().Version()
	}
	g := &gpu{context: c, opts: opts, compiler: NewCompiler(opts)}
	g.streams.make = c.NewStream
	g.stages.make = func() (*stage, error) { return newStage(c) }
	return g, nil
}

func (g *gpu) load(p *ir.Program, _ *ir.Plan, kernels KernelSource) (executable, error) {
	if kernels == nil {
		kernels = g.compiler
	}
	return &gpuProgram{gpu: g, program: p, kernels: kernels, arch: archOf(g.context.Device()),
		units: make([]gpuUnit, len(p.Units)), temps: tempLayout(p)}, nil
}

func (g *gpu) memInfo() (free, total uint64, err error) { return g.context.MemInfo() }

func (g *gpu) close() error {
	var errs []error
	for _, s := range g.streams.drain() {
		errs = append(errs, s.Close())
	}
	for _, s := range g.stages.drain() {
		errs = append(errs, s.close())
	}
	// The pool is the process's; what this device kept there serves nobody now.
	errs = append(errs, g.context.TrimPool(0))
	return errors.Join(append(errs, g.context.Close())...)
}

// allocate allocates in the order of s. Memory that other streams have freed and
// the pool has kept is given back before it gives up.
func (g *gpu) allocate(s *cuda.Stream, bytes int64) (cuda.DevicePtr, error) {
	p, err := s.Alloc(uint64(bytes))
	if !errors.Is(err, cuda.ErrOutOfMemory) {
		return p, err
	}
	if err := g.context.Synchronize(); err != nil {
		return 0, err
	}
	if err := g.context.TrimPool(0); err != nil {
		return 0, err
	}
	return s.Alloc(uint64(bytes))
}

// withStream runs fn with a stream of its own and waits for the stream's work,
// whatever fn says: nothing may use memory that its owner has back.
func (g *gpu) withStream(fn func(*cuda.Stream) error) error {
	s, err := g.streams.take()
	if err != nil {
		return err
	}
	err = fn(s)
	if waited := s.Synchronize(); err == nil {
		err = waited
	}
	g.streams.put(s)
	return err
}

// gpuStorage is the memory of a Buffer.
type gpuStorage struct {
	gpu  *gpu
	at   cuda.DevicePtr
	size int64
}

func (g *gpu) alloc(bytes int64) (storage, error) {
	m := &gpuStorage{gpu: g, size: bytes}
	return m, g.withStream(func(s *cuda.Stream) (err error) {
		m.at, err = g.allocate(s, bytes)
		return err
	})
}

func (m *gpuStorage) upload(src []byte) error {
	return m.gpu.withStream(func(s *cuda.Stream) error { return m.gpu.copyIn(s, m.at, src) })
}

func (m *gpuStorage) download(dst []byte) error {
	return m.gpu.withStream(func(s *cuda.Stream) error { return m.gpu.copyOut(s, dst, m.at) })
}

func (m *gpuStorage) close() error {
	return m.gpu.withStream(func(s *cuda.Stream) error { return s.Free(m.at) })
}

// freeList keeps things that are slow to make for the next who needs one.
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

// arenaAlign is what every tensor in an arena is aligned to, as those that the
// driver allocates are.
const arenaAlign = 256

// place adds bytes to the end of an arena; false where the sum does not fit.
func place(end *int64, bytes int64) (at int64, ok bool) {
	at = (*end + arenaAlign - 1) &^ (arenaAlign - 1)
	*end = at + bytes
	return at, at >= 0 && *end >= at
}

// noMemory explains a run that needs more memory than there is.
func noMemory(total int64, largest string, bytes int64, err error) error {
	return fmt.Errorf("not enough device memory: the run needs %s, most of it for %s (%s): %w",
		sizeName(total), largest, sizeName(bytes), err)
}
