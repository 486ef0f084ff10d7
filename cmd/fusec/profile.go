package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/fuse"
	"github.com/fusec/fusec/fuse/explain"
	"github.com/fusec/fusec/internal/regular"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
)

type profileCmd struct {
	File     string           `arg:"" name:"file" help:"The program."`
	Graph    string           `help:"The graph to run, where the program has several."`
	In       []string         `placeholder:"NAME=FILE" sep:"none" help:"Read an input from a file, or set it to a number: as fusec run does."`
	Size     map[string]int64 `placeholder:"N=8192" mapsep:"," help:"Sizes; by default those of @bench."`
	Device   string           `default:"auto" complete:"devices" help:"auto, cuda, cuda:1 or cpu."`
	Seed     uint64           `default:"1" help:"Seed of the random inputs."`
	Repeat   int              `help:"How often to run; 0 chooses."`
	Warm     bool             `help:"Leave the L2 cache as the run before has left it; by default it is emptied."`
	Cold     bool             `help:"Empty the L2 cache before each kernel that is timed apart, as Nsight Compute does; by default before each run, in which kernels find what those before them have left."`
	Counters bool             `help:"Also show what the hardware counts for each kernel: bytes, hits of the L2 cache, occupancy, tensor pipes and issue slots. That takes CUPTI, and the right to count."`
	JSON     bool             `name:"json" help:"Print data instead of text: what --compare reads."`
	Compare  string           `placeholder:"OLD.json" help:"Show what changed since a profile that --json has printed."`
	LineInfo bool             `help:"Keep in the kernels which lines of the program they are from, for Nsight Compute and debuggers; the code is the same."`
	Trace    string           `placeholder:"FILE" help:"Also write a timeline for Perfetto (ui.perfetto.dev) or chrome://tracing."`
}

// Help is the long help text.
func (*profileCmd) Help() string {
	return `Runs a graph and says, for each kernel and each line of the program, how long it takes, what it
moves and computes, and which part of the roof it is under that is: memory, arithmetic, special
functions, products, or its launch. On a GPU times are on its own clock, without what events take,
in runs that begin with a cold L2 cache, and each kernel's is taken apart from the others; in the run
itself they may overlap. On the CPU engine
the roof is what a copy of memory takes. A line has the part of its kernels' time that its
operations are of theirs.

Examples:

    fusec profile examples/softmax.fuse
    fusec profile layer.fuse --counters
    fusec profile layer.fuse --json > before.json
    fusec profile layer.fuse --compare before.json --trace timeline.json`
}

// Run profiles one graph.
func (c *profileCmd) Run(a *app) error {
	if c.Repeat < 0 {
		return usagef("--repeat %d: expected 0 or more", c.Repeat)
	}
	if c.Warm && c.Cold {
		return usagef("--warm and --cold: the L2 cache is left as it is, or emptied: choose one")
	}
	var old *profile
	if c.Compare != "" {
		var err error
		if old, err = readProfile("--compare", c.Compare); err != nil {
			return err
		}
	}
	p, err := c.on(a, c.Device)
	if c.Device == "auto" && isUnfit(err) {
		a.ui.notef("running on the CPU: %s", err)
		p, err = c.on(a, "cpu")
	}
	if err != nil {
		return err
	}
	if c.Trace != "" {
		if err := p.writeTrace(c.Trace); err != nil {
			return fmt.Errorf("--trace: %w", plainPathError(err))
		}
	}
	switch {
	case c.JSON:
		e := json.NewEncoder(a.ui.out)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(p)
	case old != nil:
		a.printComparison(old, p)
	default:
		a.printProfile(p)
	}
	return nil
}

// readProfile reads what --json has printed, for a flag.
func readProfile(flag, path string) (*profile, error) {
	const most = 64 << 20
	text, err := regular.ReadFile(path, most)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, plainPathError(err))
	}
	p := &profile{}
	if err := json.Unmarshal(text, p); err != nil || p.Graph == "" {
		return nil, fmt.Errorf("%s %s: expected what fusec profile --json prints", flag, path)
	}
	return p, nil
}

// on profiles on a device.
func (c *profileCmd) on(a *app, spec string) (p *profile, err error) {
	source, err := a.files.source(c.File)
	if err != nil {
		return nil, err
	}
	bar := a.newLoadBar()
	defer bar.end()
	store := a.openCache()
	d, err := a.openDevice(spec, runtime.Options{Cache: store, SaveSource: os.TempDir(), OnLoad: bar.at,
		OnWarning: func(err error) { a.ui.notef("%s", err) }})
	if err != nil {
		return nil, openError(spec, err)
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if why := d.Fallback(); why != nil {
		a.ui.notef("running on the CPU: %s", why)
	}
	if c.Counters && d.Kind() != runtime.CUDA {
		return nil, usagef("--counters: only GPUs are counted, by CUPTI; this is %s", d)
	}
	options := fusec.Options{Graph: c.Graph, LineInfo: c.LineInfo}
	f, err := fusec.Load(a.ctx, d, source, options)
	if err != nil {
		return nil, err
	}
	read, err := fusec.CompileSource(source, options)
	if err != nil {
		return nil, err
	}
	g := read.Graph()
	plan, err := fuse.Plan(g, fuse.Options{Device: d.Figures(), Choices: measured(store, d.Figures())})
	if err != nil {
		return nil, err
	}
	sig := signatureOf(f, func() (*ir.Graph, error) { return g, nil })
	if err := checkSizes(c.Size, sig.symbols); err != nil {
		return nil, err
	}
	args, err := inputSpec{given: c.In, sizes: c.Size, seed: c.Seed}.arguments(sig)
	if err != nil {
		return nil, err
	}
	m, err := c.measure(a, d, f, sig, args)
	if err != nil {
		return nil, err
	}
	bar.end()
	plan = plan.At(explain.Sizes(g, args.sizes))
	x := explain.Explain(g, plan, explain.Options{Device: d.Figures(), Sizes: args.sizes})
	return newProfile(a, profiled{device: d, graph: g, plan: plan, explained: x, args: args, measured: m}), nil
}

// measurements are what was timed.
type measurements struct {
	report *runtime.Report // of the kernels
	calls  []time.Duration // of Run, on tensors in the device's memory
	upload time.Duration   // of the inputs
	memory runtime.Footprint
	counts *runtime.Report // what the hardware has counted; nil where it was not asked
}

// measure runs the graph on tensors in the device's memory, so that no copies are timed with it.
func (c *profileCmd) measure(a *app, d *runtime.Device, f *runtime.Function, sig signature, args arguments) (
	m measurements, err error,
) {
	shapes, err := f.Shapes(args.sizes)
	if err != nil {
		return m, err
	}
	call := runtime.Args{}
	defer func() { err = errors.Join(err, closeBuffers(call)) }()
	for i, p := range append(append([]ir.Param(nil), sig.inputs...), sig.outputs...) {
		b, err := d.NewBuffer(p.DType, shapes[p.Name]...)
		if err != nil {
			return m, err
		}
		call[p.Name] = b
		if i < len(sig.inputs) {
			start := time.Now()
			if err := b.Upload(args.inputs[i]); err != nil {
				return m, err
			}
			m.upload += time.Since(start)
		}
	}
	if m.memory, err = f.Footprint(args.sizes); err != nil {
		return m, err
	}
	first, err := f.Measure(a.ctx, call, runtime.Measure{}) // loads the kernels
	if err != nil {
		return m, err
	}
	const budget, most = time.Second, 100
	repeat := c.Repeat
	if repeat == 0 {
		repeat = int(min(most, budget/max(first.Wall, time.Microsecond))) + 1
	}
	m.report, err = f.Measure(a.ctx, call, runtime.Measure{Warmup: min(2, repeat), Repeat: repeat,
		FlushL2: !c.Warm && d.Kind() == runtime.CUDA, FlushKernels: c.Cold, Clean: true})
	if err != nil {
		return m, err
	}
	if why := m.report.Unclean; why != nil {
		a.ui.notef("times are longer by what events take, and by what the emptied L2 cache still writes to memory: %s", why)
	}
	for range repeat {
		start := time.Now()
		if err := f.Run(a.ctx, call); err != nil {
			return m, err
		}
		m.calls = append(m.calls, time.Since(start))
	}
	if c.Counters { // last, because times are longer from here on
		m.counts, err = f.Count(a.ctx, call, runtime.Measure{FlushL2: !c.Warm, FlushKernels: c.Cold, Clean: true}, counterMetrics()...)
	}
	return m, err
}
