package runtime

import (
	"context"
	"errors"
	goruntime "runtime"
	"sync"
	"time"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/cpu"
)

// processor is the engine without a GPU.
type processor struct{ threads int }

// openCPU opens the CPU engine. It plans with the figures of a large GPU, without the features
// that need an architecture: tensor cores and clusters.
func openCPU(opts Options) *Device {
	figures := ir.Devices()[0]
	figures.Name, figures.Arch = "CPU", ""
	return newDevice(CPU, "CPU ("+goruntime.GOARCH+")", "", figures, opts, processor{opts.Threads})
}

func (e processor) load(_ *ir.Program, plan *ir.Plan, _ KernelSource) (executable, error) {
	x := &cpuProgram{program: cpu.New(plan, cpu.Options{Threads: e.threads}), kernels: plan.Kernels}
	for _, s := range plan.Graph.Symbols {
		x.symbols = append(x.symbols, s.Name)
	}
	return x, nil
}

func (processor) memInfo() (free, total uint64, err error) { return 0, 0, nil }

func (processor) close() error { return nil }

// hostStorage is the memory of a Buffer of the CPU engine.
type hostStorage struct{ data []byte }

func (processor) alloc(bytes int64) (storage, error) {
	x, err := hostBytes(bytes)
	return &hostStorage{x}, err
}

func (processor) hostMemory(bytes int64) (data []byte, free func() error, err error) {
	data, err = hostBytes(bytes)
	return data, func() error { return nil }, err
}

// hostQueue runs everything at once. Errors in the data of a run are returned when its caller
// waits, as on other engines.
type hostQueue struct {
	mu    sync.Mutex
	fault error // the first error that was not returned yet
}

func (processor) expect() {}

func (processor) queue() (queue, error) { return &hostQueue{}, nil }

func (*hostQueue) upload(dst storage, src []byte) error   { return dst.upload(src) }
func (*hostQueue) download(dst []byte, src storage) error { return src.download(dst) }
func (*hostQueue) after(queue) error                      { return nil }
func (q *hostQueue) wait(context.Context) error           { return q.found() }
func (q *hostQueue) close() error                         { return q.found() }

func (q *hostQueue) found() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	fault := q.fault
	q.fault = nil
	return fault
}

// note keeps an error in a run's data until somebody waits, and returns any other error.
func (q *hostQueue) note(err error) error {
	var outside *ir.IndexError
	if !errors.As(err, &outside) {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fault == nil {
		q.fault = err
	}
	return nil
}

func (m *hostStorage) upload(src []byte) error {
	copy(m.data, src)
	return nil
}

func (m *hostStorage) download(dst []byte) error {
	copy(dst, m.data)
	return nil
}

func (m *hostStorage) close() error {
	m.data = nil
	return nil
}

// cpuProgram is a plan on the CPU engine.
type cpuProgram struct {
	program *cpu.Program
	kernels []*ir.Kernel
	symbols []string
}

func (x *cpuProgram) bind(_ context.Context, b *binding) error {
	sizes := map[string]int64{}
	for i, name := range x.symbols {
		sizes[name] = b.symbols[i]
	}
	work := &cpuWork{sizes: sizes}
	b.work = work
	traffic, err := x.program.Traffic(sizes)
	if err != nil {
		return nil // the run reports it
	}
	for i, k := range x.kernels {
		t := traffic[i]
		if t.Idle {
			work.reports = append(work.reports, KernelReport{Name: k.Name, Unit: i, Skipped: k.When != nil})
			continue
		}
		work.reports = append(work.reports, KernelReport{Name: k.Name, Unit: i, Grid: [3]uint32{1, 1, 1}, Reads: t.Reads,
			Writes: t.Writes})
		b.kernels, b.moved = b.kernels+1, b.moved+t.Reads+t.Writes
	}
	return nil
}

// cpuWork is a program at known sizes.
type cpuWork struct {
	sizes   map[string]int64
	reports []KernelReport // of its kernels, without times
}

func (x *cpuProgram) run(ctx context.Context, b *binding, args []argument, m *measurement) error {
	buffers := make([][]byte, len(args))
	for i, a := range args {
		buffers[i] = a.host
		if a.buffer != nil {
			buffers[i] = a.buffer.memory.(*hostStorage).data
		}
	}
	work := b.work.(*cpuWork)
	if m == nil {
		return x.program.Run(ctx, work.sizes, buffers)
	}
	m.report.Kernels = append([]KernelReport(nil), work.reports...)
	for i := range m.Warmup + m.Repeat {
		start := time.Now()
		err := x.program.RunTimed(ctx, work.sizes, buffers, func(kernel int, d time.Duration) {
			if k := &m.report.Kernels[kernel]; i >= m.Warmup {
				k.Times = append(k.Times, d)
			}
		})
		if err != nil {
			return err
		}
		if i >= m.Warmup {
			m.report.Total = append(m.report.Total, time.Since(start))
		}
	}
	return nil
}

func (x *cpuProgram) enqueue(ctx context.Context, q queue, b *binding, args []argument) error {
	return q.(*hostQueue).note(x.run(ctx, b, args, nil))
}

func (*cpuProgram) footprint(*binding) (Footprint, error) { return Footprint{}, nil }

func (*cpuProgram) retire(*binding) error { return nil }

func (*cpuProgram) close() error { return nil }
