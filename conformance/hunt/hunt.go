package hunt

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/conformance/gen"
	"github.com/fusec/fusec/fuse"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp"
	"github.com/fusec/fusec/parser"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/tensor"
)

// A Failure is a program that went wrong.
type Failure struct {
	Program *gen.Program
	Engine  string
	Err     error
	Stage   string // the pass or stage that is the first to give a wrong result
}

// Error describes it at length.
func (f *Failure) Error() string {
	return fmt.Sprintf("%s: %v\nfirst wrong: %s\n%s", f.Engine, f.Err, f.Stage, Found(f.Program, f.Err.Error()))
}

// Found is a program as files in testdata/found are written.
func Found(p *gen.Program, what string) string {
	hostile := ""
	if p.Hostile {
		hostile = " hostile"
	}
	line, _, _ := strings.Cut(what, "\n")
	source := p.Source()
	if p.Gradient {
		source += "\n# Its gradient is what is wrong.\n"
	}
	if p.Tangent {
		source += "\n# Its derivative along a direction is what is wrong.\n"
	}
	return fmt.Sprintf("# %s\n# sizes: %s\n# seed: %d%s\n\n%s", line, p.SizesText(), p.Seed, hostile, source)
}

// An Engine runs programs.
type Engine struct {
	Name   string
	Device *runtime.Device
}

// Try runs a program on engines and returns what went wrong, nil where nothing did.
func Try(ctx context.Context, p *gen.Program, engines []Engine) *Failure {
	fail := func(engine string, err error) *Failure { return &Failure{Program: p, Engine: engine, Err: err} }
	source, err := sourceOf(p)
	if errors.Is(err, errNoGradient) {
		return nil
	}
	if err != nil {
		return fail("parser", err)
	}
	r, err := reference(p)
	if err != nil {
		return fail("interpreter", err)
	}
	if p.Gradient {
		if err := r.checkDelta(p); err != nil {
			return fail("delta form", err)
		}
	}
	if p.Tangent {
		if err := r.checkProduct(p); err != nil {
			return fail("gradient", err)
		}
	}
	for _, e := range engines {
		run := r.Run
		if len(p.State) > 0 {
			run = r.RunSteps
		}
		if err := run(ctx, source, e.Device); err != nil {
			return fail(e.Name, err)
		}
	}
	return nil
}

func reference(p *gen.Program) (*Reference, error) {
	source, err := sourceOf(p)
	if err != nil {
		return nil, err
	}
	file, err := parser.Parse("g.fuse", []byte(source), parser.Options{})
	if err != nil {
		return nil, err
	}
	g, err := file.Graph("")
	if err != nil {
		return nil, err
	}
	inputs, err := gen.Inputs(g, p.Sizes, p.Seed, p.Hostile)
	if err != nil {
		return nil, err
	}
	return NewReference(g, inputs)
}

// Run runs a program's text on a device and compares.
func (r *Reference) Run(ctx context.Context, source string, dev *runtime.Device) error {
	if beyond(r.Inputs) != nil {
		return nil // which cannot be made
	}
	p, err := fusec.Compile("g.fuse", source, fusec.Options{Arch: dev.Arch()})
	if err != nil {
		return err
	}
	f, err := p.Load(ctx, dev)
	if err != nil {
		return err
	}
	defer f.Close()
	args := runtime.Args{}
	for i, v := range r.Graph.Inputs {
		x, err := tensor.FromBytes(v.Type, r.Inputs[i].Bytes(), r.Inputs[i].Shape...)
		if err != nil {
			return err
		}
		args[v.Name] = x
	}
	got, err := f.Call(ctx, args)
	if r.Fault != nil {
		return r.checkFault(err)
	}
	if wrong := beyond(r.Want); wrong != nil {
		if err == nil || !strings.Contains(err.Error(), wrong.Error()) {
			return fmt.Errorf("reports %v, not: %v", err, wrong)
		}
		return nil
	}
	if err != nil {
		return err
	}
	return r.Check(got)
}

// beyond is what is wrong with the shape of an empty tensor whose other axes are larger than an address space
// together: no tensor has it, as no array of NumPy does. Every engine must say so.
func beyond(tensors []*interp.Tensor) error {
	for _, x := range tensors {
		if x.Len() > 0 {
			continue
		}
		if _, err := tensor.FromBytes(x.Type, nil, x.Shape...); err != nil {
			return err
		}
	}
	return nil
}

// Blame names the first pass whose graph gives another result than the program, or the planner
// where the plan is the first, or the engine.
func Blame(p *gen.Program, device ir.Device) (stage string) {
	defer func() {
		if v := recover(); v != nil {
			stage = fmt.Sprintf("panic in %s", stage)
		}
	}()
	r, err := reference(p)
	if err != nil || r.Fault != nil {
		return "unknown"
	}
	plan, err := fuse.Plan(r.Graph, fuse.Options{Device: device, Observe: func(pass string, now *ir.Graph) error {
		got, err := interp.Run(now, r.Inputs, interp.Options{Mode: modeOf(r.Graph)})
		if err == nil {
			err = r.Check(r.named(got))
		}
		if err != nil && stage == "" {
			stage = "pass " + pass
		}
		return nil
	}})
	if stage != "" || err != nil {
		return stage
	}
	stage = "plan"
	got, err := interp.RunPlan(plan, r.Inputs, interp.PlanOptions{Options: interp.Options{Mode: modeOf(r.Graph)}})
	if err != nil || r.Check(r.named(got)) != nil {
		return stage
	}
	return "engine"
}

func modeOf(g *ir.Graph) interp.Mode {
	if g.Numerics == ir.Strict {
		return interp.Strict
	}
	return interp.Exact
}

// named is results by the names of outputs.
func (r *Reference) named(results []*interp.Tensor) map[string]*tensor.Tensor {
	out := map[string]*tensor.Tensor{}
	for i, o := range r.Graph.Outputs {
		if i >= len(results) {
			break
		}
		if t, err := tensor.FromBytes(results[i].Type, results[i].Bytes(), results[i].Shape...); err == nil {
			out[o.Name] = t
		}
	}
	return out
}
