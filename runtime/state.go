package runtime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
	"github.com/fusec/fusec/runtime/tensor"
)

// A State is tensors on a device that graphs update from run to run: parameters, moments, caches, running
// statistics. It owns their memory, so that Run copies nothing. A next value that may be written in place
// of the present one is; any other is written to a second buffer, which then becomes the first
// (Param.InPlace, Param.Apart and fusec explain say which). It is safe for concurrent use; runs on one
// State go one after the other.
type State struct {
	device *Device

	mu      sync.Mutex
	closed  bool
	tensors map[string]*stateTensor
}

// stateTensor is one tensor of a State.
type stateTensor struct {
	now, spare *Buffer // spare is nil until a next value needs it
	damage     error   // the failure of a run that was writing to now
}

// ErrDamaged is a tensor of a State that a failed run may have left half written: set it, or load all
// of them. For errors.Is.
var ErrDamaged = errors.New("the state is damaged")

// NewState makes a State without tensors. Close it.
func (d *Device) NewState() *State { return &State{device: d, tensors: map[string]*stateTensor{}} }

// NewState makes a State with all states of the function's graph, filled with zeros, for the given
// sizes of symbols. Close it.
func (f *Function) NewState(sizes map[string]int64) (*State, error) {
	shapes, err := f.Shapes(sizes)
	if err != nil {
		return nil, err
	}
	s := f.device.NewState()
	for _, p := range f.signature.params {
		if p.State == "" {
			continue
		}
		zeros, err := tensor.New(p.DType, shapes[p.Name]...)
		if err == nil {
			err = s.Set(p.State, zeros)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("graph %s: state %s: %w", f.Name(), p.State, err), s.Close())
		}
	}
	return s, nil
}

// Names are the names of the tensors, sorted.
func (s *State) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.tensors))
}

// Set gives a tensor the value of x, which is copied; one that is not there yet is added.
func (s *State) Set(name string, x *tensor.Tensor) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.set(name, x)
}

func (s *State) set(name string, x *tensor.Tensor) error {
	if err := s.usable(); err != nil {
		return err
	}
	if err := x.Check(); err != nil {
		return asArgument(fmt.Errorf("state %s: %w", name, err))
	}
	h := s.tensors[name]
	if h != nil && h.now.DType() == x.DType && sameShape(h.now.Shape(), x.Shape) {
		if err := h.now.Upload(x); err != nil {
			return fmt.Errorf("state %s: %w", name, err)
		}
		h.damage = nil
		return nil
	}
	b, err := s.device.NewBuffer(x.DType, x.Shape...)
	if err != nil {
		return fmt.Errorf("state %s: %w", name, err)
	}
	if err := b.Upload(x); err != nil {
		return errors.Join(fmt.Errorf("state %s: %w", name, err), b.Close())
	}
	s.tensors[name] = &stateTensor{now: b}
	return h.close()
}

// Get returns a copy of a tensor.
func (s *State) Get(name string) (*tensor.Tensor, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, err := s.find(name)
	if err != nil {
		return nil, err
	}
	return h.now.Tensor()
}

// Buffer is the memory that holds a tensor now, to pass to other functions. It belongs to the State,
// and the next Run that updates the tensor may leave something else in it.
func (s *State) Buffer(name string) (*Buffer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, err := s.find(name)
	if err != nil {
		return nil, err
	}
	return h.now, nil
}

// find returns a tensor that can be read.
func (s *State) find(name string) (*stateTensor, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	h := s.tensors[name]
	if h == nil {
		names := slices.Sorted(maps.Keys(s.tensors))
		hint := ": it has " + diag.Names(names)
		if near := diag.Nearest(name, names); near != "" {
			hint = ": did you mean " + near + "?"
		}
		return nil, asArgument(fmt.Errorf("the state has no tensor %s%s", name, hint))
	}
	if h.damage != nil {
		return nil, fmt.Errorf("state %s: %w by a run that failed (%v): set it, or load all tensors", name, ErrDamaged, h.damage)
	}
	return h, nil
}

func (s *State) usable() error {
	switch {
	case s.device == nil:
		return fmt.Errorf("the state was never made (Function.NewState makes states): it is %w", ErrClosed)
	case s.closed:
		return fmt.Errorf("the state is %w", ErrClosed)
	}
	return nil
}

// Run runs a function on the tensors of the State and on args. Inputs that are not in args are the
// tensors with those names. Tensors that are states of the graph get their next values, for which
// args needs no outputs; it needs one for each plain result. If Run fails, states keep their values,
// except those that are updated in place if kernels had begun: these are damaged until they are set
// again.
func (s *State) Run(ctx context.Context, f *Function, args Args) error {
	return s.run(ctx, f, args, func(all Args) error { return f.Run(ctx, all) })
}

// Queue queues a run of a function on a stream, as Function.Queue does, with the tensors of the State as Run has them. What
// is queued on the stream behind it finds the next values. Until Stream.Wait has returned, nothing but that stream may use
// the tensors, and a fault that shows there leaves tensors that are updated in place as they are then.
func (s *State) Queue(ctx context.Context, stream *Stream, f *Function, args Args) error {
	return s.run(ctx, f, args, func(all Args) error { return f.Queue(ctx, stream, all) })
}

// run starts a run of a function by start, which is given all its arguments.
func (s *State) run(ctx context.Context, f *Function, args Args, start func(all Args) error) error {
	if f.device == nil {
		return errNotLoaded
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	all, step, err := s.complete(f, args)
	if err != nil {
		return err
	}
	err = start(all)
	if err == nil {
		for _, h := range step.swapped {
			h.now, h.spare = h.spare, h.now
		}
		return nil
	}
	if !untouched(err) {
		for _, h := range step.written {
			h.damage = err
		}
	}
	return err
}

// untouched reports whether a run failed with an error that occurs before kernels run.
func untouched(err error) bool {
	var memory *ir.MemoryError
	return errors.Is(err, ErrArgument) || errors.Is(err, ErrClosed) || errors.As(err, &memory)
}

// stateStep is what a run does to the tensors of a State.
type stateStep struct {
	written []*stateTensor // in place
	swapped []*stateTensor // when it is done
}

// complete adds to the arguments of a run those that the State has.
func (s *State) complete(f *Function, args Args) (all Args, step stateStep, err error) {
	all = maps.Clone(args)
	if all == nil {
		all = Args{}
	}
	own := map[string]*stateTensor{} // inputs that are tensors of the State
	for _, p := range f.signature.params[:f.signature.inputs] {
		if _, given := all[p.Name]; given || s.tensors[p.Name] == nil {
			continue
		}
		h, err := s.find(p.Name)
		if err != nil {
			return nil, step, err
		}
		own[p.Name], all[p.Name] = h, h.now
	}
	for _, p := range f.signature.params[f.signature.inputs:] {
		h := own[p.State]
		if _, given := all[p.Name]; given || h == nil {
			continue
		}
		if p.InPlace {
			all[p.Name] = h.now
			step.written = append(step.written, h)
			continue
		}
		if h.spare == nil {
			if h.spare, err = s.device.NewBuffer(h.now.DType(), h.now.Shape()...); err != nil {
				return nil, step, fmt.Errorf("state %s: its second buffer: %w", p.State, err)
			}
		}
		all[p.Name] = h.spare
		step.swapped = append(step.swapped, h)
	}
	return all, step, nil
}

// Save writes all tensors to a .safetensors file, with a checksum and what the caller wants to know
// when it loads them. When it returns the file is complete and on the disk; until then
// path is what it was, whenever the process ends.
func (s *State) Save(path string, metadata map[string]string) error {
	c, err := s.checkpoint(metadata)
	if err != nil {
		return err
	}
	return tensor.WriteCheckpointFile(path, c)
}

func (s *State) checkpoint(metadata map[string]string) (tensor.Checkpoint, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := tensor.Checkpoint{Arrays: map[string]*tensor.Tensor{}, Metadata: metadata}
	if err := s.usable(); err != nil {
		return c, err
	}
	for name := range s.tensors {
		h, err := s.find(name)
		if err != nil {
			return c, err
		}
		if c.Arrays[name], err = h.now.Tensor(); err != nil {
			return c, fmt.Errorf("state %s: %w", name, err)
		}
	}
	return c, nil
}

// Load sets the tensors to what Save wrote, and returns the metadata. The file must have the same
// tensors, of the same types and shapes; where it does not, or is damaged, nothing changes.
func (s *State) Load(path string) (map[string]string, error) {
	c, err := tensor.ReadCheckpointFile(path)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return nil, err
	}
	for name, h := range s.tensors {
		x := c.Arrays[name]
		if x == nil {
			return nil, asArgument(fmt.Errorf("%s: it has no tensor %s", path, name))
		}
		if x.DType != h.now.DType() || !sameShape(x.Shape, h.now.Shape()) {
			return nil, asArgument(fmt.Errorf("%s: tensor %s is %v: expected %v", path, name, x, h.now))
		}
	}
	for name := range c.Arrays {
		if s.tensors[name] == nil {
			return nil, asArgument(fmt.Errorf("%s: it has the tensor %s, and the state has none of that name", path, name))
		}
	}
	for name, x := range c.Arrays {
		if err := s.set(name, x); err != nil {
			return nil, err
		}
	}
	return c.Metadata, nil
}

// Close frees the tensors. A second Close does nothing.
func (s *State) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.device == nil || s.closed {
		return nil
	}
	s.closed = true
	var errs []error
	for _, h := range s.tensors {
		errs = append(errs, h.close())
	}
	return errors.Join(errs...)
}

func (h *stateTensor) close() error {
	if h == nil {
		return nil
	}
	err := h.now.Close()
	if h.spare != nil {
		err = errors.Join(err, h.spare.Close())
	}
	return err
}
