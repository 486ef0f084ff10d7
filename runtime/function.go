package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

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

	use    sync.RWMutex // held for reading by runs
	closed bool

	mu     sync.Mutex
	recent []*recentBinding // the most recently used first
}

// recentBinding remembers what the shapes of inputs lead to.
type recentBinding struct {
	shapes [][]int
	*binding
}

// maxBindings is how many combinations of sizes a function remembers.
const maxBindings = 32

// callScratch is what checking a call writes to.
type callScratch struct{ args []argument }

func newFunction(d *Device, s signature, x executable) *Function {
	f := &Function{device: d, signature: s, executable: x}
	f.scratch.New = func() any { return &callScratch{args: make([]argument, len(s.params))} }
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

// Params are the inputs, then the outputs. The caller must not change them.
func (f *Function) Params() []ir.Param { return f.signature.params }

// Run runs the graph. args holds a tensor for every input and every output, in
// host memory or the device's; it returns when the outputs are filled. Sizes follow
// from the inputs. Where arguments do not fit, the error names the one, what was
// expected and what was found, and no output is touched; an output that the device
// has failed on has unspecified contents. When ctx ends, Run returns its error
// after the kernel under way.
func (f *Function) Run(ctx context.Context, args Args) error { return f.run(ctx, args, nil) }

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
	defer f.use.RUnlock()
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

// bindSizes is bind for sizes by name.
func (f *Function) bindSizes(sizes map[string]int64) (*binding, error) {
	symbols := make([]int64, len(f.signature.symbols))
	for i, name := range f.signature.symbols {
		v, ok := sizes[name]
		if !ok {
			return nil, fmt.Errorf("graph %s: size %s is missing: expected one for each of %v", f.Name(), name,
				f.signature.symbols)
		}
		symbols[i] = v
	}
	return f.signature.bindSymbols(symbols)
}

// enter begins a use of the function, which f.use.RUnlock ends.
func (f *Function) enter() error {
	f.use.RLock()
	if f.closed {
		f.use.RUnlock()
		return fmt.Errorf("graph %s: the function is closed", f.Name())
	}
	return nil
}

// bindArgs checks the inputs among args and binds the sizes to their shapes.
func (f *Function) bindArgs(ctx context.Context, args Args) (*binding, error) {
	if err := f.enter(); err != nil {
		return nil, err
	}
	defer f.use.RUnlock()
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

func (f *Function) bindInputs(ctx context.Context, args Args, out []argument) (*binding, error) {
	if err := f.signature.resolveInputs(f.device, args, out); err != nil {
		return nil, err
	}
	inputs := out[:f.signature.inputs]
	if b := f.recall(inputs); b != nil {
		return b, nil
	}
	shapes := make([][]int, len(inputs))
	for i, in := range inputs {
		shapes[i] = append([]int(nil), in.shape...)
	}
	b, err := f.signature.bind(shapes)
	if err != nil {
		return nil, err
	}
	return f.remember(ctx, shapes, b)
}

// recall finds the binding of known shapes, nil if there is none.
func (f *Function) recall(inputs []argument) *binding {
	f.mu.Lock()
	defer f.mu.Unlock()
	for at, r := range f.recent {
		if r.fits(inputs) {
			copy(f.recent[1:at+1], f.recent[:at])
			f.recent[0] = r
			return r.binding
		}
	}
	return nil
}

func (r *recentBinding) fits(inputs []argument) bool {
	for i := range inputs {
		if !sameShape(inputs[i].shape, r.shapes[i]) {
			return false
		}
	}
	return true
}

// remember readies a binding on the device and keeps it.
func (f *Function) remember(ctx context.Context, shapes [][]int, b *binding) (*binding, error) {
	if err := f.executable.bind(ctx, b); err != nil {
		return nil, fmt.Errorf("graph %s: %w", f.Name(), err)
	}
	f.mu.Lock()
	keep := min(len(f.recent), maxBindings-1)
	evicted := slices.Clone(f.recent[keep:])
	f.recent = append([]*recentBinding{{shapes, b}}, f.recent[:keep]...)
	f.mu.Unlock()
	for _, r := range evicted {
		if err := f.executable.retire(r.binding); err != nil {
			f.device.opts.warn(fmt.Errorf("graph %s: %w", f.Name(), err))
		}
	}
	return b, nil
}

// Queue queues a run on a stream and returns at once. args holds a *Buffer for every
// input and output: what is queued before on the stream has written the inputs, and the
// outputs are filled when the stream gets there. Faults of kernels show in Stream.Wait.
func (f *Function) Queue(ctx context.Context, s *Stream, args Args) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := f.enter(); err != nil {
		return err
	}
	defer f.use.RUnlock()
	if s.device != f.device {
		return fmt.Errorf("graph %s: the stream is of another device, %s: expected %s", f.Name(), s.device.name,
			f.device.name)
	}
	scratch := f.take()
	defer f.put(scratch)
	b, err := f.resolve(ctx, args, scratch.args)
	if err != nil {
		return err
	}
	for i := range scratch.args {
		if scratch.args[i].buffer == nil {
			return fmt.Errorf("graph %s: %s is in host memory: expected a *runtime.Buffer", f.Name(),
				describe(&f.signature.params[i]))
		}
	}
	if err := s.enter(); err != nil {
		return err
	}
	defer s.mu.Unlock()
	return f.explain(f.executable.enqueue(ctx, s.queue, b, scratch.args))
}

// resolve checks all arguments into out and binds the sizes.
func (f *Function) resolve(ctx context.Context, args Args, out []argument) (*binding, error) {
	b, err := f.bindInputs(ctx, args, out)
	if err != nil {
		return nil, err
	}
	return b, f.signature.resolveOutputs(f.device, args, b, out)
}

func (f *Function) run(ctx context.Context, args Args, m *measurement) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := f.enter(); err != nil {
		return err
	}
	defer f.use.RUnlock()
	scratch := f.take()
	defer f.put(scratch)
	b, err := f.resolve(ctx, args, scratch.args)
	if err != nil {
		return err
	}
	return f.explain(f.executable.run(ctx, b, scratch.args, m))
}

// explain says what a failed run was of, and what is to be done where the device
// is gone.
func (f *Function) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, cuda.ErrDeviceLost):
		return fmt.Errorf("graph %s: %s is lost: close the device and all others on the same GPU, then open it again; "+
			"should that fail, start the process again: %w", f.Name(), f.device.name, err)
	}
	return fmt.Errorf("graph %s: %w", f.Name(), err)
}

// Close frees what the function holds on its device, once the runs under way have
// ended. A second Close does nothing.
func (f *Function) Close() error {
	f.use.Lock()
	defer f.use.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	f.device.disown(f)
	var errs []error
	for _, r := range f.recent {
		errs = append(errs, f.executable.retire(r.binding))
	}
	f.recent = nil
	return errors.Join(append(errs, f.executable.close())...)
}
