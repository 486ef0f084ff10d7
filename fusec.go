// Package fusec compiles graphs of tensor operations, written in the .fuse
// language, to as few GPU kernels as the hardware allows, and runs them: on a CUDA
// device, or on the processor where there is none.
//
//	source, err := fusec.ReadSource("softmax.fuse")
//	device, err := fusec.Open("auto")
//	softmax, err := fusec.Load(ctx, device, source, fusec.Options{})
//	out, err := softmax.Call(ctx, runtime.Args{"x": x})
//
// This is the usual way to load a graph. Load takes what was compiled before from the disk cache. The
// other ways have special purposes: Compile gives the plan and the CUDA text of a program to
// look at, Program.Load runs that very plan, OpenBundle and Bundle.Load take kernels that
// were compiled elsewhere, and the Load methods of runtime.Device take what the stages of
// the compiler give.
//
// The stages meet here and nowhere else: parser (text to ir.Graph), fuse (Graph to
// ir.Plan), codegen (Plan to ir.Program), runtime (Program to results). The package
// must decide nothing itself.
package fusec

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/fusec/fusec/codegen"
	"github.com/fusec/fusec/fuse"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/parser"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/cache"
)

// A Program is a graph that was read and planned. It is immutable and safe for
// concurrent use.
type Program struct {
	graph *ir.Graph
	file  *parser.File // that the graph is from
	opts  Options
	plan  *ir.Plan // for the device that opts names

	mu      sync.Mutex
	planned map[planKey]*ir.Plan // for the devices that it was loaded on
}

// planKey is what a program's plans differ by.
type planKey struct {
	device  ir.Device
	choices string
}

// Compile reads a source and plans one of its graphs. Positions in errors name the source by name. The
// source must not import others (see CompileSource). No GPU is needed. Mistakes in the source are
// returned as a diag.List, which package ir/diag draws with carets.
func Compile[S ~string | ~[]byte](name string, src S, opts Options) (*Program, error) {
	return CompileSource(Source{Name: name, Text: []byte(src)}, opts)
}

// MustCompile is Compile for sources that are part of the program: it panics where
// they are wrong.
func MustCompile[S ~string | ~[]byte](name string, src S, opts Options) *Program {
	p, err := Compile(name, src, opts)
	if err != nil {
		panic(fmt.Sprintf("fusec: %v", err))
	}
	return p
}

// CompileSource is Compile for sources with imports.
func CompileSource(src Source, opts Options) (p *Program, err error) { return compile(src, opts, nil) }

// compile is CompileSource for the device at hand, or, where that is nil, for the one that opts name.
func compile(src Source, opts Options, at *ir.Device) (p *Program, err error) {
	stage := "parser"
	defer guard(&stage, src.Name, &err)
	graph, file, err := parse(src, opts)
	if err != nil {
		return nil, err
	}
	return planned(graph, file, opts, at, &stage)
}

// planned plans a graph of a file for the device at hand, or, where that is nil, for the one that opts name; stage follows.
func planned(graph *ir.Graph, file *parser.File, opts Options, at *ir.Device, stage *string) (*Program, error) {
	*stage = "fuse"
	device, err := opts.device() // options that name no device are refused in any case
	if err != nil {
		return nil, err
	}
	if at != nil {
		device = *at
	}
	p := &Program{graph: graph, file: file, opts: opts, planned: map[planKey]*ir.Plan{}}
	if p.plan, err = p.planFor(device, choices{}, stage); err != nil {
		return nil, err
	}
	return p, nil
}

// ErrNoGraph says that a source or bundle does not have the graph that was asked for, or that it has
// several and none was named. It is meant for errors.Is.
var ErrNoGraph = errors.New("no such graph")

// misuse is an error that errors.Is also takes for its kind. Its text does not mention the kind.
type misuse struct{ err, kind error }

func (e misuse) Error() string   { return e.err.Error() }
func (e misuse) Unwrap() []error { return []error{e.err, e.kind} }

func parse(src Source, opts Options) (*ir.Graph, *parser.File, error) {
	file, err := parser.Parse(src.Name, src.Text, parser.Options{ReadFile: src.ReadFile})
	if err != nil {
		return nil, nil, err
	}
	graph, err := file.Graph(opts.Graph)
	if err != nil {
		return nil, nil, misuse{err, ErrNoGraph}
	}
	opts.Numerics.apply(graph)
	return graph, file, nil
}

// planFor plans the graph for a device, with what was measured on it; stage follows
// the passes.
func (p *Program) planFor(device ir.Device, measured choices, stage *string) (*ir.Plan, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := planKey{device, measured.id}
	if plan := p.planned[key]; plan != nil {
		return plan, nil
	}
	sizes, err := p.opts.sizes(p.graph)
	if err != nil {
		return nil, err
	}
	observe := func(pass string, _ *ir.Graph) error {
		*stage = "fuse, after pass " + pass
		return nil
	}
	plan, err := fuse.Plan(p.graph, fuse.Options{Device: device, Specialize: sizes, Choices: measured.list,
		Observe: observe})
	if err != nil {
		return nil, err
	}
	p.planned[key] = plan
	return plan, nil
}

// Name is the graph's name.
func (p *Program) Name() string {
	if p.graph == nil {
		return ""
	}
	return p.graph.Name
}

// String says what the program is: graph softmax, 1 kernel.
func (p *Program) String() string {
	if p.graph == nil {
		return "no program"
	}
	kernels := "1 kernel"
	if n := len(p.plan.At(nil).Kernels); n != 1 {
		kernels = fmt.Sprintf("%d kernels", n)
	}
	return "graph " + p.graph.Name + ", " + kernels
}

// ErrNotCompiled is the error of the methods of a zero Program, which Compile has not made.
var ErrNotCompiled = errors.New("the program was never compiled: Compile and CompileSource make programs")

// Graph is the graph as it was read. The caller must not change it.
func (p *Program) Graph() *ir.Graph { return p.graph }

// Plan is what fusion made of the graph: kernels, and the merges that were refused
// with their reasons, which is what `fusec explain` shows. The caller must not
// change it.
func (p *Program) Plan() *ir.Plan { return p.plan }

// CUDA spells the plan: CUDA C text with its launches.
func (p *Program) CUDA() (out *ir.Program, err error) {
	if p.graph == nil {
		return nil, ErrNotCompiled
	}
	stage := "codegen"
	defer guard(&stage, "graph "+p.graph.Name, &err)
	return generate(p.plan, p.opts), nil
}

// Load readies the program on a device: planned for that device, whatever
// Options.Arch says, with the choices that Tune has stored in its cache. Kernels are compiled when sizes first need them.
// It returns soon after ctx has ended; a plan that was begun is finished in the background.
func (p *Program) Load(ctx context.Context, dev *runtime.Device) (f *runtime.Function, err error) {
	if p.graph == nil {
		return nil, ErrNotCompiled
	}
	stage := "runtime"
	defer guard(&stage, "graph "+p.graph.Name, &err)
	if dev.Kind() == runtime.CPU {
		plan, err := await(ctx, func() (*ir.Plan, error) { return p.planGuarded(dev.Figures(), choices{}) })
		if err != nil {
			return nil, err
		}
		return dev.LoadPlan(ctx, plan)
	}
	program, err := await(ctx, func() (*ir.Program, error) { return p.programFor(dev) })
	if err != nil {
		return nil, err
	}
	return dev.Load(ctx, program)
}

func (p *Program) planGuarded(device ir.Device, measured choices) (plan *ir.Plan, err error) {
	stage := "fuse"
	defer guard(&stage, "graph "+p.graph.Name, &err)
	return p.planFor(device, measured, &stage)
}

// programFor plans and spells the program for a GPU.
func (p *Program) programFor(dev *runtime.Device) (out *ir.Program, err error) {
	plan, err := p.planGuarded(dev.Figures(), choicesFor(dev.Cache(), dev.Figures()))
	if err != nil {
		return nil, err
	}
	stage := "codegen"
	defer guard(&stage, "graph "+p.graph.Name, &err)
	return generate(plan, p.opts), nil
}

// generate spells a plan as the options say.
func generate(plan *ir.Plan, opts Options) *ir.Program {
	program := codegen.Generate(plan)
	if opts.LineInfo {
		program = program.WithLineInfo()
	}
	return program
}

// Open opens a device: "auto" (the first GPU, else the processor), "cuda",
// "cuda:1" or "cpu". runtime.Open takes options.
func Open(device string) (*runtime.Device, error) { return runtime.Open(device, runtime.Options{}) }

// Load reads, plans and loads a source on a device. On a GPU a source that was
// loaded before, by this process or another, is taken from the disk cache and
// neither parsed nor planned. It returns soon after ctx has ended; what was begun is
// finished, and goes to the cache, in the background.
func Load(ctx context.Context, dev *runtime.Device, src Source, opts Options) (*runtime.Function, error) {
	if dev.Kind() == runtime.CPU {
		p, err := await(ctx, func() (*Program, error) {
			defer dev.Trace().Step("plan", src.Name)()
			figures := dev.Figures()
			return compile(src, opts, &figures)
		})
		if err != nil {
			return nil, err
		}
		return p.Load(ctx, dev)
	}
	program, err := await(ctx, func() (*ir.Program, error) { return cachedProgram(dev, src, opts) })
	if err != nil {
		return nil, err
	}
	return dev.Load(ctx, program)
}

// cachedProgram is the program of a source for a GPU, from its cache where it can.
func cachedProgram(dev *runtime.Device, src Source, opts Options) (*ir.Program, error) {
	measured := choicesFor(dev.Cache(), dev.Figures())
	plans, request := runtime.NewPlanCache(dev.Cache()), opts.request(src, dev.Figures(), measured)
	end := dev.Trace().Step("plan read", src.Name)
	program, ok := plans.Get(request, src.ReadFile)
	end()
	if ok {
		return program, nil
	}
	dev.ExpectCompile()
	defer dev.Trace().Step("plan", src.Name)()
	imports := map[string][]byte{}
	program, err := spell(src.recording(imports), opts, dev.Figures(), measured)
	if err != nil {
		return nil, err
	}
	plans.Put(request, imports, program)
	return program, nil
}

// ProgramFor is the program that Load would run on a device, with what Tune has stored
// for it; it needs no device.
func ProgramFor(src Source, opts Options, device ir.Device, store *cache.Cache) (*ir.Program, error) {
	return spell(src, opts, device, choicesFor(store, device))
}

// spell takes a source all the way to CUDA text.
func spell(src Source, opts Options, device ir.Device, measured choices) (out *ir.Program, err error) {
	stage := "parser"
	defer guard(&stage, src.Name, &err)
	graph, _, err := parse(src, opts)
	if err != nil {
		return nil, err
	}
	stage = "fuse"
	p := &Program{graph: graph, opts: opts, planned: map[planKey]*ir.Plan{}}
	plan, err := p.planFor(device, measured, &stage)
	if err != nil {
		return nil, err
	}
	stage = "codegen"
	return generate(plan, opts), nil
}
