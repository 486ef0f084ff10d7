package fusec

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fusec/fusec/codegen"
	"github.com/fusec/fusec/fuse"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/tensor"
)

// tuneBench times plans on a device.
type tuneBench struct {
	dev     *runtime.Device
	graph   *ir.Graph
	options fuse.Options
	sizes   map[string]int64
	repeat  int

	args    runtime.Args
	outputs map[string]*runtime.Buffer
	want    map[string]*tensor.Tensor // what the first plan gave
	members []*runtime.Buffer
}

func newTuneBench(
	ctx context.Context, dev *runtime.Device, src Source, opts Options, o TuneOptions,
) (b *tuneBench, err error) {
	if dev.Kind() != runtime.CUDA {
		return nil, errors.New("tuning is for GPUs: the CPU engine has no schedules to choose from")
	}
	stage := "parser"
	defer guard(&stage, src.Name, &err)
	graph, _, err := parse(src, opts)
	if err != nil {
		return nil, err
	}
	specialize, err := opts.sizes(graph)
	if err != nil {
		return nil, err
	}
	b = &tuneBench{dev: dev, graph: graph, repeat: o.Repeat, args: runtime.Args{}, outputs: map[string]*runtime.Buffer{},
		options: fuse.Options{Device: dev.Figures(), Specialize: specialize}, sizes: map[string]int64{}}
	if b.repeat <= 0 {
		b.repeat = tuneRepeat
	}
	f, err := b.load(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return b, errors.Join(b.upload(f, o.Inputs))
}

// load readies a plan; nil for the one by the rules.
func (b *tuneBench) load(ctx context.Context, plan *ir.Plan) (_ *runtime.Function, err error) {
	if plan == nil {
		if plan, err = fuse.Plan(b.graph, b.options); err != nil {
			return nil, err
		}
	}
	program := codegen.Generate(plan)
	return b.dev.Load(ctx, program)
}

// upload brings the inputs to the device, makes the outputs, and notes the sizes.
func (b *tuneBench) upload(f *runtime.Function, inputs map[string]*tensor.Tensor) error {
	shapes := [][]int{}
	var declared []ir.Declared
	for _, p := range f.Params() {
		if x := inputs[p.Name]; !p.Output && x != nil {
			declared, shapes = append(declared, ir.Declared{Name: p.Name, Shape: p.Shape}), append(shapes, x.Shape)
		} else if !p.Output {
			return fmt.Errorf("graph %s: input %s is missing", f.Name(), p.Name)
		}
	}
	values, err := ir.Bind(f.Symbols(), declared, shapes)
	if err != nil {
		return fmt.Errorf("graph %s: %w", f.Name(), err)
	}
	for i, name := range f.Symbols() {
		b.sizes[name] = values[i]
	}
	all, err := f.Shapes(b.sizes)
	if err != nil {
		return err
	}
	for _, p := range f.Params() {
		buffer, err := b.dev.NewBuffer(p.DType, all[p.Name]...)
		if err != nil {
			return err
		}
		b.args[p.Name], b.members = buffer, append(b.members, buffer)
		if p.Output {
			b.outputs[p.Name] = buffer
		} else if err := buffer.Upload(inputs[p.Name]); err != nil {
			return err
		}
	}
	return nil
}

// prepare implements timer. Without a folder to keep kernels in it would be in vain.
func (b *tuneBench) prepare(ctx context.Context, plans []*ir.Plan, kernel int) {
	if b.dev.Cache().Dir() == "" {
		return
	}
	compiler := runtime.NewCompiler(runtime.Options{Cache: b.dev.Cache()})
	var group errgroup.Group
	group.SetLimit(goruntime.GOMAXPROCS(0))
	for _, plan := range plans {
		group.Go(func() error {
			program := codegen.Generate(plan)
			symbols := make([]int64, len(program.Symbols))
			for i, name := range program.Symbols {
				symbols[i] = b.sizes[name]
			}
			if v := program.Launches[kernel].Choose(symbols); v != nil {
				compiler.Compile(ctx, program, v.Unit, b.dev.Arch())
			}
			return nil
		})
	}
	group.Wait()
}

// time implements timer: the median over repetitions with a cold L2 cache.
func (b *tuneBench) time(ctx context.Context, plan *ir.Plan, kernel int) (took time.Duration, err error) {
	f, err := b.load(ctx, plan)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	report, err := f.Measure(ctx, b.args, runtime.Measure{Warmup: 2, Repeat: b.repeat, FlushL2: true})
	if err != nil {
		return 0, err
	}
	if err := b.check(); err != nil {
		return 0, err
	}
	return runtime.Median(report.Kernels[kernel].Times), nil
}

// check compares the outputs with those of the first plan.
func (b *tuneBench) check() error {
	first := b.want == nil
	if first {
		b.want = map[string]*tensor.Tensor{}
	}
	for name, buffer := range b.outputs {
		got, err := buffer.Tensor()
		if err != nil {
			return err
		}
		if first {
			b.want[name] = got
			continue
		}
		largest := 0.0
		for _, v := range b.want[name].Floats() {
			if v = max(v, -v); v > largest { // neither NaN nor infinity sets the scale
				largest = min(v, 1e30)
			}
		}
		diff, err := tensor.Compare(got, b.want[name], tensor.Tolerance{Abs: tuneAccuracy * largest})
		if err != nil || !diff.OK() {
			return fmt.Errorf("output %s: %w: %v", name, errWrong, diff)
		}
	}
	return nil
}

func (b *tuneBench) close() error {
	var errs []error
	for _, buffer := range b.members {
		errs = append(errs, buffer.Close())
	}
	return errors.Join(errs...)
}
