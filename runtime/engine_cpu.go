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

// openCPU opens the CPU engine. It plans with the figures of a large GPU, less what
// takes an architecture: tensor cores and clusters.
func openCPU(opts Options) *Device {
	figures := ir.Devices()[0]
	figures.Name, figures.Arch = "CPU", ""
	return newDevice(CPU, "CPU ("+goruntime.GOARCH+")", "", figures, opts, processor{opts.Threads})
}

func (e processor) load(_ *ir.Program, plan *ir.Plan, _ KernelSource) (executable, error) {
	x := &cpuProgram{program: cpu.New(plan, cpu.Options{Threads: e.threads})}
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

// hostQueue carries everything out as it is queued. What is wrong with the data of a run
// shows when its caller waits, as on other engines.
type hostQueue struct {
	mu    sync.Mutex
	fault error // the first that nobody was told of
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

// note keeps an error of a run's data for who waits, and returns any other.
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
	symbols []string
}

func (x *cpuProgram) bind(_ context.Context, b *binding) error {
	sizes := map[string]int64{}
	for i, name := range x.symbols {
		sizes[name] = b.symbols[i]
	}
	b.work = sizes
	return nil
}

func (x *cpuProgram) run(ctx context.Context, b *binding, args []argument, m *measurement) error {
	buffers := make([][]byte, len(args))
	for i, a := range args {
		buffers[i] = a.host
		if a.buffer != nil {
			buffers[i] = a.buffer.memory.(*hostStorage).data
		}
	}
	sizes := b.work.(map[string]int64)
	if m == nil {
		return x.program.Run(ctx, sizes, buffers)
	}
	for i := range m.Warmup + m.Repeat {
		start := time.Now()
		if err := x.program.Run(ctx, sizes, buffers); err != nil {
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
