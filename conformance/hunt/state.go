package hunt

import (
	"context"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/ir/interp"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/tensor"
)

// steps is how often a program with state is run.
const steps = 3

// RunSteps runs a program that has state a few times on a device. Each time what the run gives, and the
// next values that it leaves, are compared with what the interpreter makes of the values that were there
// before: so roundings of one step are no errors of the next.
func (r *Reference) RunSteps(ctx context.Context, source string, dev *runtime.Device) error {
	p, err := fusec.Compile("g.fuse", source, fusec.Options{Arch: dev.Arch()})
	if err != nil {
		return err
	}
	f, err := p.Load(ctx, dev)
	if err != nil {
		return err
	}
	defer f.Close()
	s := dev.NewState()
	defer s.Close()
	for i, v := range r.Graph.Inputs {
		x, err := tensor.FromBytes(v.Type, r.Inputs[i].Bytes(), r.Inputs[i].Shape...)
		if err == nil {
			err = s.Set(v.Name, x)
		}
		if err != nil {
			return err
		}
	}
	for step := range steps {
		if step > 0 {
			if r, err = r.next(s); err != nil {
				return err
			}
		}
		got, err := r.step(ctx, f, s)
		if r.Fault != nil {
			return r.checkFault(err)
		}
		if err == nil {
			err = r.Check(got)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// step runs the program once, and returns its results and the next values.
func (r *Reference) step(ctx context.Context, f *runtime.Function, s *runtime.State) (map[string]*tensor.Tensor, error) {
	args, got := runtime.Args{}, map[string]*tensor.Tensor{}
	for i, o := range r.Graph.Outputs {
		if o.State != "" || r.Fault != nil {
			continue
		}
		x, err := tensor.New(r.Want[i].Type, r.Want[i].Shape...)
		if err != nil {
			return nil, err
		}
		args[o.Name], got[o.Name] = x, x
	}
	if r.Fault != nil { // its shapes are those of the graph
		return f.Call(ctx, r.args())
	}
	if err := s.Run(ctx, f, args); err != nil {
		return nil, err
	}
	for _, o := range r.Graph.Outputs {
		if o.State != "" {
			x, err := s.Get(o.State)
			if err != nil {
				return nil, err
			}
			got[o.Name] = x
		}
	}
	return got, nil
}

// args are the inputs for a plain call.
func (r *Reference) args() runtime.Args {
	args := runtime.Args{}
	for i, v := range r.Graph.Inputs {
		args[v.Name] = &tensor.Tensor{DType: v.Type, Shape: r.Inputs[i].Shape, Data: r.Inputs[i].Bytes()}
	}
	return args
}

// next is the reference for the values that the states have now.
func (r *Reference) next(s *runtime.State) (*Reference, error) {
	var inputs []*interp.Tensor
	for _, v := range r.Graph.Inputs {
		x, err := s.Get(v.Name)
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, interp.FromBytes(v.Type, x.Shape, x.Data))
	}
	return NewReference(r.Graph, inputs)
}
