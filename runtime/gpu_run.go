package runtime

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/cuda"
)

// gpuFrame is the memory that one run writes to: kernel arguments and pointers. Frames are kept
// for later runs, with the graph made of them, so that runs on device tensors allocate nothing.
type gpuFrame struct {
	gpu  *gpu
	work *gpuWork

	params   []*cuda.Params   // of each launch
	pointers []cuda.DevicePtr // of each tensor, as params has them
	maps     []encodedMap     // of ir.Program.TensorMaps
	known    bool             // pointers are those of an earlier run
	runs     int
	graph    *gpuGraph  // nil until a second run asks for it
	last     *gpuStream // of the last run

	// The run under way.
	ctx    context.Context
	args   []argument
	m      *measurement
	stream *gpuStream
	probe  *probe // nil where times need not be, or cannot be, those of kernels alone
	hosts  []bool // which arguments are in host memory
	layout *layout
	next   []cuda.DevicePtr // of each tensor
	inside func() error     // runCurrent
}

func newFrame(w *gpuWork) *gpuFrame {
	f := &gpuFrame{gpu: w.program.gpu, work: w, params: make([]*cuda.Params, len(w.launches)),
		pointers: make([]cuda.DevicePtr, w.tensors()), next: make([]cuda.DevicePtr, w.tensors()),
		maps: make([]encodedMap, len(w.maps)), hosts: make([]bool, len(w.binding.bytes))}
	for i, l := range w.launches {
		sizes := make([]int, len(l.args))
		for j, arg := range l.args {
			sizes[j] = bytesOfArg(arg)
		}
		f.params[i] = cuda.NewParams(sizes...)
		for j, arg := range l.args {
			switch arg.Kind {
			case ir.ArgSize:
				f.params[i].SetInt64(j, w.binding.symbols[arg.Index])
			case ir.ArgFactor:
				n, _ := w.program.program.Divisors[arg.Index].Eval(w.binding.symbols) // 0 if it does not fit
				f.params[i].SetInt64(j, int64(ir.Factor(n)))
			}
		}
	}
	f.inside = f.runCurrent
	return f
}

// run runs on a stream of its own and always waits for it, because the caller may use its
// memory again when run returns.
func (x *gpuProgram) run(ctx context.Context, b *binding, args []argument, m *measurement) error {
	g, w := x.gpu, b.work.(*gpuWork)
	s, err := g.takeStream(ctx)
	if err != nil {
		return g.noteLoss(err)
	}
	err = w.run(ctx, s, args, m)
	if waited := s.Synchronize(); err == nil {
		err = waited
	}
	if found := s.checks.found(s.checks.mark()); err == nil {
		err = found
	}
	if err == nil && m != nil {
		m.report.Loaded = w.takeLoaded()
	}
	g.putStream(s)
	return g.noteLoss(err)
}

// enqueue queues a run on a user's stream.
func (x *gpuProgram) enqueue(ctx context.Context, q queue, b *binding, args []argument) error {
	return x.gpu.noteLoss(b.work.(*gpuWork).run(ctx, q.(*gpuStream), args, nil))
}

// retire frees what was made for the sizes of b.
func (x *gpuProgram) retire(b *binding) error { return b.work.(*gpuWork).retire() }

// run queues everything on s.
func (w *gpuWork) run(ctx context.Context, s *gpuStream, args []argument, m *measurement) error {
	f := w.take(s)
	f.ctx, f.args, f.m, f.stream = ctx, args, m, s
	err := w.program.gpu.context.Do(f.inside)
	f.ctx, f.args, f.m, f.stream = nil, nil, nil, nil
	f.last = s
	return errors.Join(err, w.put(f))
}

// runCurrent queues everything, with the context current.
func (f *gpuFrame) runCurrent() error {
	if ranges := f.gpu.ranges; ranges != nil {
		ranges.Push(cuda.RangeName("fusec " + f.work.program.program.Name))
		defer ranges.Pop()
	}
	if err := f.place(); err != nil {
		return err
	}
	if err := f.setPointers(); err != nil {
		return err
	}
	if err := f.upload(); err != nil {
		return err
	}
	if err := f.launch(); err != nil {
		return err
	}
	if f.work.checkBytes() > 0 {
		if err := f.stream.queueChecks(f.work, f.next[f.work.firstCheck()]); err != nil {
			return fmt.Errorf("copying what checks of indices found from the device: %w", err)
		}
	}
	return f.download()
}

// place finds the memory of every tensor of the run.
func (f *gpuFrame) place() error {
	again := f.m != nil && (f.m.Warmup+f.m.Repeat > 1 || len(f.m.metrics) > 0)
	same := f.layout != nil && f.layout.again == again
	for i := range f.args {
		if host := f.args[i].buffer == nil; host != f.hosts[i] {
			f.hosts[i], same = host, false
		}
	}
	if !same {
		err := f.dropGraph() // the edges of the graph depend on the layout
		f.layout = f.work.layoutFor(f.hosts, again)
		if err != nil {
			return err
		}
	}
	if !f.layout.fits {
		return f.noMemory(f.gpu.memory.refusal(math.MaxInt64, cuda.ErrOutOfMemory))
	}
	err := f.gpu.memory.reserve(f.ctx, f.stream, f.layout.bytes)
	if errors.Is(err, cuda.ErrOutOfMemory) {
		err = f.noMemory(err)
	}
	if err != nil {
		return err
	}
	for item, at := range f.layout.offsets {
		if at >= 0 {
			f.next[item] = f.stream.arena.at + cuda.DevicePtr(at)
		}
	}
	for i := range f.args {
		if b := f.args[i].buffer; b != nil {
			f.next[i] = b.memory.(*gpuStorage).at
		}
	}
	if err := f.placeCounters(); err != nil || f.work.checkBytes() == 0 {
		return err
	}
	if err := f.stream.makeRoom(f.ctx, f.work.checkBytes()); err != nil {
		return fmt.Errorf("memory for what checks of indices find: %w", err)
	}
	return nil
}

// placeCounters finds the memory of the kernels' counters, which belongs to the stream.
func (f *gpuFrame) placeCounters() error {
	if f.work.counters == 0 {
		return nil
	}
	if err := f.gpu.memory.reserveCounters(f.ctx, f.stream, f.work.counters); err != nil {
		return fmt.Errorf("counters of kernels, %d bytes: %w", f.work.counters, err)
	}
	first := f.work.firstCounters()
	for i, at := range f.work.counterAt {
		if at >= 0 {
			f.next[first+i] = f.stream.counters.at + cuda.DevicePtr(at)
		}
	}
	return nil
}

// noMemory adds to an error the run whose arena does not fit, and the largest tensor in the
// arena.
func (f *gpuFrame) noMemory(err error) error {
	largest, bytes := "", int64(-1)
	list, items := f.work.residents(f.layout.hosts, f.layout.again)
	for i, item := range items {
		if list[i].bytes <= bytes {
			continue
		}
		bytes = list[i].bytes
		switch temporary := item - len(f.args); {
		case item == f.work.firstCheck():
			largest = "what checks of indices find"
		case temporary >= 0:
			largest = fmt.Sprintf("intermediate tensor %d", temporary)
		default:
			p := &f.work.program.program.Params[item]
			largest = describe(p) + " " + typeName(p.DType, f.work.binding.dims[item])
		}
	}
	return noRoom(fmt.Sprintf("the run, most of it for %s (%s),", largest, sizeName(bytes)), err)
}

// setPointers updates the pointers that have changed since the last run, in the arguments and
// in the graph if there is one.
func (f *gpuFrame) setPointers() error {
	changed := !f.known
	for item := range f.next {
		changed = changed || f.next[item] != f.pointers[item]
	}
	if !changed {
		return nil
	}
	for i := range f.work.launches {
		if err := f.setArgs(i); err != nil {
			return errors.Join(err, f.forget())
		}
	}
	copy(f.pointers, f.next)
	f.known = true
	return nil
}

// setArgs is setPointers for one launch.
func (f *gpuFrame) setArgs(i int) error {
	l, moved := &f.work.launches[i], false
	if l.launch == nil {
		return nil
	}
	for j, arg := range l.args {
		item, ok := f.work.tensor(arg)
		if !ok || f.known && f.next[item] == f.pointers[item] {
			continue
		}
		moved = true
		if arg.Kind != ir.ArgTensorMap {
			f.params[i].SetPointer(j, f.next[item])
			continue
		}
		m, err := f.tensorMap(arg.Index)
		if err != nil {
			return err
		}
		f.params[i].SetTensorMap(j, m)
	}
	if !moved || f.graph == nil {
		return nil
	}
	return f.graph.exec.SetParams(f.graph.nodes[i], f.params[i])
}

// forget makes the next run set every pointer, and make a new graph.
func (f *gpuFrame) forget() error {
	f.known = false
	return f.dropGraph()
}

func (f *gpuFrame) dropGraph() error {
	g := f.graph
	f.graph = nil
	return g.close()
}

func (f *gpuFrame) close() error { return f.dropGraph() }

func (f *gpuFrame) upload() error {
	if f.m == nil {
		return f.uploadAll()
	}
	start := time.Now()
	err := f.uploadAll()
	f.m.report.Upload = time.Since(start)
	return err
}

func (f *gpuFrame) uploadAll() error {
	for i, p := range f.work.program.program.Params {
		if p.Output || f.args[i].buffer != nil {
			continue
		}
		if err := f.gpu.copyIn(f.stream.Stream, f.next[i], f.args[i].host); err != nil {
			return fmt.Errorf("copying input %s to the device: %w", p.Name, err)
		}
	}
	return nil
}

func (f *gpuFrame) download() error {
	for i, p := range f.work.program.program.Params {
		if !p.Output || f.args[i].buffer != nil {
			continue
		}
		if err := f.ctx.Err(); err != nil {
			return err
		}
		if err := f.gpu.copyOut(f.stream.Stream, f.args[i].host, f.next[i]); err != nil {
			return fmt.Errorf("copying output %s from the device: %w", p.Name, err)
		}
	}
	return nil
}

// launch queues the kernels. The first run of a frame queues them one by one; later runs use a
// graph, if there are several. Making the graph takes as long as a few runs, so a program that
// runs once does not make it.
func (f *gpuFrame) launch() error {
	if f.m != nil {
		return f.measure()
	}
	f.runs++
	if f.runs == 1 {
		return f.launchAll(nil)
	}
	return f.replay()
}

// replay queues the kernels as a graph, if that pays and the driver supports it.
func (f *gpuFrame) replay() error {
	if len(f.work.launches) < graphFrom || f.work.program.graphless.Load() {
		return f.launchAll(nil)
	}
	if err := f.ctx.Err(); err != nil {
		return err
	}
	if f.graph == nil {
		graph, err := f.buildGraph()
		if errors.Is(err, cuda.ErrMissingSymbol) || errors.Is(err, cuda.ErrNotSupported) {
			f.work.program.graphless.Store(true) // an older driver
			return f.launchAll(nil)
		}
		if err != nil {
			return err
		}
		f.graph = graph
	}
	return f.graph.exec.Launch(f.stream.Stream)
}

// launchAll queues the kernels; events, where given, mark the time before the
// first and after each.
func (f *gpuFrame) launchAll(events []*cuda.Event) error {
	if err := f.mark(events, 0); err != nil {
		return err
	}
	for i := range f.work.launches {
		if err := f.ctx.Err(); err != nil {
			return err
		}
		if l := f.work.launches[i].launch; l != nil {
			if err := l.RunCurrent(f.stream.Stream, f.params[i]); err != nil {
				return err
			}
		}
		if err := f.mark(events, i+1); err != nil {
			return err
		}
	}
	return nil
}

func (f *gpuFrame) mark(events []*cuda.Event, i int) error {
	if events == nil {
		return nil
	}
	return events[i].Record(f.stream.Stream)
}
