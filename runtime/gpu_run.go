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

// gpuFrame is what one run writes to: kernel arguments and pointers. Frames are
// kept, so that runs on device tensors allocate nothing.
type gpuFrame struct {
	program *gpuProgram
	binding *binding
	work    *gpuWork
	slots   []int // of temps

	params   []*cuda.Params   // of each launch
	pointers []cuda.DevicePtr // of each parameter of the program
	temps    []cuda.DevicePtr // of each slot
	maps     []encodedMap     // of ir.Program.TensorMaps

	// The run under way.
	ctx    context.Context
	args   []argument
	m      *measurement
	stream *cuda.Stream
	inside func() error // runCurrent
}

func newFrame(x *gpuProgram, b *binding, w *gpuWork) *gpuFrame {
	f := &gpuFrame{program: x, binding: b, work: w, slots: slotOf(x.program),
		params: make([]*cuda.Params, len(w.launches)), pointers: make([]cuda.DevicePtr, len(b.bytes)),
		temps: make([]cuda.DevicePtr, len(w.temps)), maps: make([]encodedMap, len(w.maps))}
	for i, l := range w.launches {
		sizes := make([]int, len(l.args))
		for j, arg := range l.args {
			sizes[j] = bytesOfArg(arg)
		}
		f.params[i] = cuda.NewParams(sizes...)
		for j, arg := range l.args {
			if arg.Kind == ir.ArgSize {
				f.params[i].SetInt64(j, b.symbols[arg.Index])
			}
		}
	}
	f.inside = f.runCurrent
	return f
}

func (x *gpuProgram) run(ctx context.Context, b *binding, args []argument, m *measurement) error {
	w := b.work.(*gpuWork)
	f := w.frames.Get().(*gpuFrame)
	f.ctx, f.args, f.m = ctx, args, m
	err := f.run()
	f.ctx, f.args, f.m, f.stream = nil, nil, nil, nil
	w.frames.Put(f)
	return err
}

// run runs the frame on a stream and waits for it, whatever happens: the caller
// has its memory back when run returns.
func (f *gpuFrame) run() error {
	g := f.program.gpu
	s, err := g.streams.take()
	if err != nil {
		return err
	}
	f.stream = s
	err = g.context.Do(f.inside)
	if waited := s.Synchronize(); err == nil {
		err = waited
	}
	if err == nil && f.m != nil {
		f.m.report.Loaded = f.work.takeLoaded()
	}
	g.streams.put(s)
	return err
}

// runCurrent queues everything, with the context current.
func (f *gpuFrame) runCurrent() (err error) {
	arena, err := f.allocate()
	if err != nil {
		return err
	}
	if arena != 0 {
		defer func() { err = errors.Join(err, f.stream.Free(arena)) }()
	}
	if err := f.upload(); err != nil {
		return err
	}
	if err := f.setPointers(); err != nil {
		return err
	}
	if f.m != nil {
		err = f.measure()
	} else {
		err = f.launchAll(nil)
	}
	if err != nil {
		return err
	}
	return f.download()
}

// allocate places host arguments and temporaries in one piece of device memory.
func (f *gpuFrame) allocate() (cuda.DevicePtr, error) {
	var end int64
	fits := true
	for i := range f.args {
		if f.args[i].buffer != nil {
			continue
		}
		at, ok := place(&end, f.binding.bytes[i])
		f.pointers[i], fits = cuda.DevicePtr(at), fits && ok
	}
	for i, bytes := range f.work.temps {
		at, ok := place(&end, bytes)
		f.temps[i], fits = cuda.DevicePtr(at), fits && ok
	}
	if !fits {
		return 0, f.noMemory(math.MaxInt64, cuda.ErrOutOfMemory)
	}
	arena, err := f.program.gpu.allocate(f.stream, end)
	if errors.Is(err, cuda.ErrOutOfMemory) {
		err = f.noMemory(end, err)
	}
	if err != nil {
		return 0, err
	}
	f.relocate(arena)
	return arena, nil
}

// relocate turns offsets in the arena into addresses.
func (f *gpuFrame) relocate(arena cuda.DevicePtr) {
	for i := range f.args {
		if b := f.args[i].buffer; b != nil {
			f.pointers[i] = b.memory.(*gpuStorage).at
		} else {
			f.pointers[i] += arena
		}
	}
	for i := range f.temps {
		f.temps[i] += arena
	}
}

// noMemory names the largest tensor of the arena.
func (f *gpuFrame) noMemory(total int64, err error) error {
	largest, bytes := "", int64(-1)
	for i := range f.args {
		if n := f.binding.bytes[i]; f.args[i].buffer == nil && n > bytes {
			p := &f.program.program.Params[i]
			largest, bytes = describe(p)+" "+typeName(p.DType, f.binding.dims[i]), n
		}
	}
	for i, n := range f.work.temps {
		if n > bytes {
			largest, bytes = fmt.Sprintf("intermediate tensor %d", i), n
		}
	}
	return noMemory(total, largest, bytes, err)
}

func (f *gpuFrame) upload() error {
	start := time.Now()
	for i, p := range f.program.program.Params {
		if p.Output || f.args[i].buffer != nil {
			continue
		}
		if err := f.program.gpu.copyIn(f.stream, f.pointers[i], f.args[i].host); err != nil {
			return fmt.Errorf("copying input %s to the device: %w", p.Name, err)
		}
	}
	if f.m != nil {
		f.m.report.Upload = time.Since(start)
	}
	return nil
}

func (f *gpuFrame) download() error {
	for i, p := range f.program.program.Params {
		if !p.Output || f.args[i].buffer != nil {
			continue
		}
		if err := f.program.gpu.copyOut(f.stream, f.args[i].host, f.pointers[i]); err != nil {
			return fmt.Errorf("copying output %s from the device: %w", p.Name, err)
		}
	}
	return nil
}

func (f *gpuFrame) setPointers() error {
	for i := range f.work.launches {
		for j, arg := range f.work.launches[i].args {
			switch arg.Kind {
			case ir.ArgParam, ir.ArgTemp:
				f.params[i].SetPointer(j, f.address(arg))
			case ir.ArgTensorMap:
				m, err := f.tensorMap(arg.Index)
				if err != nil {
					return err
				}
				f.params[i].SetTensorMap(j, m)
			}
		}
	}
	return nil
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
			if err := l.RunCurrent(f.stream, f.params[i]); err != nil {
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
	return events[i].Record(f.stream)
}
