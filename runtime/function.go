package runtime

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/cuda"
	"github.com/fusec/fusec/runtime/tensor"
)

// A Function is a graph loaded on a device. It is safe for concurrent use: runs go
// on side by side, each on a stream of its own; Close waits for those under way.
type Function struct {
	device     *Device
	signature  signature
	executable executable
	scratch    sync.Pool // of *callScratch

	count atomic.Uint64 // of runs, where one in Options.SampleKernels is timed

	calls gate

	mu     sync.Mutex
	recent []*recentBinding // the most recently used first
}

// callScratch is what checking a call writes to.
type callScratch struct {
	args    []argument
	extents []extent
}

func newFunction(d *Device, s signature, x executable) *Function {
	f := &Function{device: d, signature: s, executable: x, calls: newGate()}
	f.scratch.New = func() any { return &callScratch{make([]argument, len(s.params)), make([]extent, len(s.params))} }
	return f
}

// Name is the graph's name.
func (f *Function) Name() string { return f.signature.name }

// Device is where the function runs.
func (f *Function) Device() *Device { return f.device }

// Symbols are the names of the sizes that the inputs determine.
func (f *Function) Symbols() []string { return append([]string(nil), f.signature.symbols...) }

// Defaults are the sizes that the source names to try the graph with (@bench); a
// symbol without one is not there.
func (f *Function) Defaults() map[string]int64 {
	out := map[string]int64{}
	for i, v := range f.signature.defaults {
		if v > 0 {
			out[f.signature.symbols[i]] = v
		}
	}
	return out
}

// A Param is an input or output of a function. It prints as the program declares it.
type Param struct {
	ir.Param
	Type string // bf16[N, M]
}

// String is x: bf16[N, M].
func (p Param) String() string { return p.Name + ": " + p.Type }

// Params are the inputs, then the outputs.
func (f *Function) Params() []Param {
	var out []Param
	for _, p := range f.signature.params {
		out = append(out, Param{p, f.signature.typeText(&p)})
	}
	return out
}

// String is the function's signature: softmax(x: f32[N, M]) -> (y: f32[N, M]).
func (f *Function) String() string {
	var in, out []string
	for i, p := range f.Params() {
		if i < f.signature.inputs {
			in = append(in, p.String())
		} else {
			out = append(out, p.String())
		}
	}
	return fmt.Sprintf("%s(%s) -> (%s)", f.Name(), strings.Join(in, ", "), strings.Join(out, ", "))
}

// Run runs the graph. args holds a tensor for every input and every output, in
// host memory or the device's; it returns when the outputs are filled. Sizes follow
// from the inputs. Where arguments do not fit, the error names the one, what was
// expected and what was found, and no output is touched; an output that the device
// has failed on has unspecified contents. Where an index of a @strict graph is outside,
// the error is an *ir.IndexError. When ctx ends, Run returns its error
// after the kernels under way: all those of a graph, which cannot be called back.
func (f *Function) Run(ctx context.Context, args Args) error {
	if f.device == nil {
		return errNotLoaded
	}
	if n := f.device.opts.SampleKernels; n > 0 && f.count.Add(1)%n == 0 {
		return f.run(ctx, args, &measurement{Measure: Measure{Repeat: 1}})
	}
	return f.run(ctx, args, nil)
}

// Call runs the graph on the inputs and returns its outputs in new host tensors.
func (f *Function) Call(ctx context.Context, inputs Args) (map[string]*tensor.Tensor, error) {
	args, outputs := Args{}, map[string]*tensor.Tensor{}
	for name, value := range inputs {
		args[name] = value
	}
	b, err := f.bindArgs(ctx, args)
	if err != nil {
		return nil, err
	}
	for i := f.signature.inputs; i < len(f.signature.params); i++ {
		p := f.signature.params[i]
		x, err := tensor.New(p.DType, b.dims[i]...)
		if err != nil {
			return nil, fmt.Errorf("graph %s: output %s: %w", f.Name(), p.Name, err)
		}
		args[p.Name], outputs[p.Name] = x, x
	}
	if err := f.Run(ctx, args); err != nil {
		return nil, err
	}
	return outputs, nil
}

// Shapes returns the shapes of all inputs and outputs, by name, for given sizes.
func (f *Function) Shapes(sizes map[string]int64) (map[string][]int, error) {
	if f.device == nil {
		return nil, errNotLoaded
	}
	b, err := f.bindSizes(sizes)
	if err != nil {
		return nil, err
	}
	out := map[string][]int{}
	for i, p := range f.signature.params {
		out[p.Name] = b.dims[i]
	}
	return out, nil
}

// Prepare compiles and loads, side by side, the kernels that the given sizes need,
// so that no later run of these sizes has to.
func (f *Function) Prepare(ctx context.Context, sizes map[string]int64) error {
	if err := f.enter(); err != nil {
		return err
	}
	defer f.calls.leave()
	b, err := f.bindSizes(sizes)
	if err != nil {
		return err
	}
	inputs := make([]argument, f.signature.inputs)
	for i := range inputs {
		inputs[i].shape = b.dims[i]
	}
	if f.recall(inputs) == nil {
		_, err = f.remember(ctx, b.dims[:f.signature.inputs], b)
	}
	return err
}

// enter begins a use of the function, which f.calls.leave ends.
func (f *Function) enter() error {
	if f.device == nil {
		return errNotLoaded
	}
	if !f.calls.enter() {
		return fmt.Errorf("graph %s: the function is %w", f.Name(), ErrClosed)
	}
	return nil
}

// bindArgs checks the inputs among args and binds the sizes to their shapes.
func (f *Function) bindArgs(ctx context.Context, args Args) (*binding, error) {
	if err := f.enter(); err != nil {
		return nil, err
	}
	defer f.calls.leave()
	scratch := f.take()
	defer f.put(scratch)
	return f.bindInputs(ctx, args, scratch.args)
}

func (f *Function) take() *callScratch { return f.scratch.Get().(*callScratch) }

// put keeps scratch, without what it refers to; buffers are released.
func (f *Function) put(scratch *callScratch) {
	for i := range scratch.args {
		if b := scratch.args[i].buffer; b != nil {
			b.done()
		}
	}
	clear(scratch.args)
	f.scratch.Put(scratch)
}

// Queue queues a run on a stream and returns at once. args holds a *Buffer for every
// input and output: what is queued before on the stream has written the inputs, and the
// outputs are filled when the stream gets there. Faults of kernels show in Stream.Wait, and
// so do indices of a @strict graph that are outside.
func (f *Function) Queue(ctx context.Context, s *Stream, args Args) (err error) {
	if f.device == nil {
		return errNotLoaded
	}
	var b *binding
	if o := f.device.opts.Observer; o != nil {
		start := time.Now()
		defer func() {
			e := f.event(ctx, start, b, err)
			e.Queued = true
			f.tell(o, e)
		}()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := f.enter(); err != nil {
		return err
	}
	defer f.calls.leave()
	if err := s.enter(); err != nil {
		return err
	}
	defer s.calls.leave()
	if s.device != f.device {
		return asArgument(fmt.Errorf("graph %s: the stream is of another device, %s: expected %s", f.Name(), s.device.name,
			f.device.name))
	}
	scratch := f.take()
	defer f.put(scratch)
	if b, err = f.resolve(ctx, args, scratch); err != nil {
		return err
	}
	for i := range scratch.args {
		if scratch.args[i].buffer == nil {
			return asArgument(fmt.Errorf("graph %s: %s is in host memory: expected a *runtime.Buffer", f.Name(),
				describe(&f.signature.params[i])))
		}
	}
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.unlock()
	return f.explain(f.executable.enqueue(ctx, s.queue, b, scratch.args))
}

// resolve checks all arguments into scratch and binds the sizes.
func (f *Function) resolve(ctx context.Context, args Args, scratch *callScratch) (*binding, error) {
	b, err := f.bindInputs(ctx, args, scratch.args)
	if err == nil {
		err = asArgument(f.signature.resolveOutputs(f.device, args, b, scratch))
	}
	return b, err
}

func (f *Function) run(ctx context.Context, args Args, m *measurement) (err error) {
	if f.device == nil {
		return errNotLoaded
	}
	var b *binding
	if o := f.device.opts.Observer; o != nil {
		start := time.Now()
		defer func() {
			e := f.event(ctx, start, b, err)
			e.Timed = f.times(m)
			f.tell(o, e)
		}()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := f.enter(); err != nil {
		return err
	}
	defer f.calls.leave()
	scratch := f.take()
	defer f.put(scratch)
	if b, err = f.resolve(ctx, args, scratch); err != nil {
		return err
	}
	return f.explain(f.executable.run(ctx, b, scratch.args, m))
}

// event is a run that ends now; b is nil where it did not get that far.
func (f *Function) event(ctx context.Context, start time.Time, b *binding, err error) RunEvent {
	e := RunEvent{Context: ctx, Graph: f.Name(), Device: f.device.name, Start: start, Took: time.Since(start), Err: err}
	if b != nil {
		e.Kernels, e.Bytes = b.kernels, b.moved
	}
	return e
}

// tell informs the observer of a run and of its kernels.
func (f *Function) tell(o Observer, e RunEvent) {
	o.Ran(e)
	for _, k := range e.Timed {
		o.Timed(k)
	}
}

// times are those of a measured run's kernels, repetition by repetition; m is nil where it was
// not measured.
func (f *Function) times(m *measurement) (out []KernelEvent) {
	if m == nil {
		return nil
	}
	for again, i := true, 0; again; i++ {
		again = false
		for k := range m.report.Kernels {
			r := &m.report.Kernels[k]
			if i < len(r.Times) {
				again = true
				out = append(out, KernelEvent{Graph: f.Name(), Device: f.device.name, Kernel: r.Name, Took: r.Times[i],
					Bytes: r.Reads + r.Writes})
			}
		}
	}
	return out
}

// explain adds to an error which run has failed, and what to do if the device is lost.
func (f *Function) explain(err error) error {
	if err == nil {
		return nil
	}
	var outside *ir.IndexError
	switch {
	case errors.As(err, &outside): // this error names the graph already
		return err
	case errors.Is(err, cuda.ErrDeviceLost):
		return fmt.Errorf("graph %s: %s is lost: close the device and open it again; after a fault of a kernel "+
			"the driver wants the process to be started again: %w", f.Name(), f.device.name, err)
	}
	return fmt.Errorf("graph %s: %w", f.Name(), err)
}

// Close frees what the function holds on its device, once the runs under way have
// ended. A second Close does nothing.
func (f *Function) Close() error {
	if f.device == nil {
		return nil
	}
	return f.device.closeMember(f)
}

// errNotLoaded is the error of the zero Function.
var errNotLoaded = fmt.Errorf("the function was never loaded (fusec.Load makes functions): it is %w", ErrClosed)

func (f *Function) finish() error {
	if !f.calls.close() {
		return nil
	}
	f.device.disown(functionRank, f)
	var errs []error
	for _, r := range f.recent {
		errs = append(errs, f.executable.retire(r.binding))
	}
	f.recent = nil
	return errors.Join(append(errs, f.executable.close())...)
}
