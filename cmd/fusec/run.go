package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fusec/fusec/codegen"
	"github.com/fusec/fusec/fuse"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/tensor"
)

type runCmd struct {
	File       string            `arg:"" name:"file" help:"The program."`
	Graph      string            `help:"The graph to run, where the program has several."`
	In         map[string]string `placeholder:"NAME=FILE" mapsep:"none" help:"Read an input from an .npy file; the others are random."`
	Out        map[string]string `placeholder:"NAME=FILE" mapsep:"none" help:"Write an output to an .npy file."`
	Size       map[string]int64  `placeholder:"N=8192" mapsep:"," help:"Sizes of symbols; by default those of @bench, else 1024."`
	Device     string            `default:"auto" help:"auto, cuda, cuda:1 or cpu. With auto, the CPU takes over where there is no GPU."`
	Check      bool              `help:"Compare the outputs with the reference interpreter; exits with 1 where they differ."`
	Seed       uint64            `default:"1" help:"Seed of the random inputs."`
	Repeat     int               `help:"How often to run for the time that is printed; 0 chooses."`
	TraceStart bool              `help:"Print what took time up to the first result."`
	Verbose    bool              `short:"v" help:"Also print each kernel."`

	trace *runtime.Trace
}

// Help is the long help text.
func (*runCmd) Help() string {
	return `The time is the median over the repetitions: on a GPU that of the kernels alone, with
a cold L2 cache; on the CPU that of the whole run.

Examples:

    fusec run examples/softmax.fuse
    fusec run examples/softmax.fuse --size N=64,M=1000 --device cpu --check
    fusec run examples/softmax.fuse --in x=x.npy --out y=y.npy`
}

// Run runs one graph.
func (c *runCmd) Run(a *app) error {
	c.trace = runtime.NewTrace()
	if c.Repeat < 0 {
		return usagef("--repeat %d: expected 0 or more", c.Repeat)
	}
	end := c.trace.Step("parse", c.File)
	g, err := a.graph(c.File, c.Graph)
	end()
	if err != nil {
		return err
	}
	if err := checkSymbols(c.Size, []*ir.Graph{g}); err != nil {
		return err
	}
	if err := checkNames("--out", c.Out, outputNames(g)); err != nil {
		return err
	}
	end = c.trace.Step("inputs", "")
	args, err := inputSpec{c.In, c.Size, c.Seed}.arguments(g)
	end()
	if err != nil {
		return err
	}
	r, err := c.execute(a, g, args)
	if err != nil {
		return err
	}
	return c.finish(a, g, args, r)
}

// finish prints, checks and writes.
func (c *runCmd) finish(a *app, g *ir.Graph, args arguments, r *result) error {
	a.printResult(g, args, r)
	if c.Verbose {
		a.printKernels(r)
	}
	if c.TraceStart {
		a.printTrace(c.trace)
	}
	if c.Check {
		if err := a.verify(g, args, r, c.Seed); err != nil {
			return err
		}
	}
	for i, o := range g.Outputs {
		if path, ok := c.Out[o.Name]; ok {
			if err := tensor.WriteNPYFile(path, r.outputs[i]); err != nil {
				return fmt.Errorf("output %s: %w", o.Name, plainPathError(err))
			}
		}
	}
	return nil
}

// result is a run that went well.
type result struct {
	plan    *ir.Plan
	device  string
	kind    runtime.Kind
	outputs []*tensor.Tensor // in the order of the graph's
	report  *runtime.Report
	loaded  []runtime.UnitReport
}

// execute runs on the device asked for. Where the choice is free and the GPU cannot
// be used after all (no NVRTC, no memory), the CPU engine takes over.
func (c *runCmd) execute(a *app, g *ir.Graph, args arguments) (*result, error) {
	r, err := c.on(a, c.Device, g, args)
	if c.Device == "auto" && exitCode(err) == exitDevice {
		a.ui.notef("running on the CPU: %s", err)
		return c.on(a, "cpu", g, args)
	}
	return r, err
}

func (c *runCmd) on(a *app, spec string, g *ir.Graph, args arguments) (r *result, err error) {
	d, err := runtime.Open(spec, runtime.Options{Cache: a.openCache(), Trace: c.trace,
		OnWarning: func(err error) { a.ui.notef("%s", err) }})
	if err != nil {
		return nil, openError(spec, err)
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if why := d.Fallback(); why != nil {
		a.ui.notef("running on the CPU: %s", why)
	}
	end := c.trace.Step("plan", g.Name)
	plan, err := fuse.Plan(g, fuse.Options{Device: d.Figures()})
	end()
	if err != nil {
		return nil, err
	}
	f, err := load(a, d, plan)
	if err != nil {
		return nil, err
	}
	r = &result{plan: plan, device: d.Name(), kind: d.Kind()}
	return r, c.measure(a, f, g, args, r)
}

// openError tells a device that is misspelt from one that is not there.
func openError(spec string, err error) error {
	if exitCode(err) == exitDevice {
		return err
	}
	return usagef("--device %s: %w", spec, err)
}

func load(a *app, d *runtime.Device, plan *ir.Plan) (*runtime.Function, error) {
	if d.Kind() == runtime.CPU {
		return d.LoadPlan(a.ctx, plan)
	}
	program, err := codegen.Generate(plan)
	if err != nil {
		return nil, err
	}
	return d.Load(a.ctx, program)
}

// measure runs once, to load the kernels and to learn how long a run takes, and
// then as often as that allows.
func (c *runCmd) measure(a *app, f *runtime.Function, g *ir.Graph, args arguments, r *result) error {
	call := runtime.Args{}
	for i, v := range g.Inputs {
		call[v.Name] = args.inputs[i]
	}
	shapes, err := f.Shapes(args.sizes)
	if err != nil {
		return err
	}
	for _, o := range g.Outputs {
		x, err := tensor.New(o.Value.Type, shapes[o.Name]...)
		if err != nil {
			return fmt.Errorf("output %s: %w", o.Name, err)
		}
		call[o.Name] = x
		r.outputs = append(r.outputs, x)
	}
	end := c.trace.Step("first run", g.Name)
	r.report, err = f.Measure(a.ctx, call, runtime.Measure{})
	end()
	if err != nil {
		return err
	}
	r.loaded = r.report.Loaded
	if repeat := c.repeats(r); repeat > 0 {
		how := runtime.Measure{Warmup: 2, Repeat: repeat, FlushL2: r.kind == runtime.CUDA}
		r.report, err = f.Measure(a.ctx, call, how)
	}
	return err
}

// repeats is how often to run again: as often as asked, or for about a second.
func (c *runCmd) repeats(r *result) int {
	const budget, most = time.Second, 100
	if c.Repeat > 0 {
		return c.Repeat
	}
	return int(min(most, budget/max(r.report.Wall, time.Microsecond)))
}

// printResult prints the one table of a run.
func (a *app) printResult(g *ir.Graph, args arguments, r *result) {
	moved := bytesMoved(g, r.plan, args.sizes)
	took := r.report.Time()
	launches := r.report.Launches()
	if r.kind == runtime.CPU {
		launches = len(r.plan.Kernels)
	}
	rate := "-"
	if took > 0 {
		rate = fmt.Sprintf("%.1f", float64(moved)/took.Seconds()/1e9)
	}
	a.ui.table([]column{col("graph"), col("sizes"), number("kernels"), number("launches"), number("ms"), number("bytes"),
		number("GB/s"), col("device"), col("cache")},
		[][]string{{g.Name, sizesText(args.sizes), fmt.Sprint(len(r.plan.Kernels)), fmt.Sprint(launches), milliseconds(took),
			byteText(moved), rate, r.device, cacheText(r)}})
}

// bytesMoved is what the plan's kernels have to move, each tensor once a kernel.
func bytesMoved(g *ir.Graph, plan *ir.Plan, sizes map[string]int64) int64 {
	total := fuse.Explain(g, plan, fuse.ExplainOptions{Sizes: sizes}).Fused
	if total.Read.Bytes == nil || total.Written.Bytes == nil {
		return 0
	}
	return *total.Read.Bytes + *total.Written.Bytes
}

// cacheText says whether the kernels came from disk.
func cacheText(r *result) string {
	if r.kind == runtime.CPU {
		return "not used"
	}
	hits := 0
	for _, u := range r.loaded {
		if u.Outcome.IsHit() {
			hits++
		}
	}
	switch {
	case hits == len(r.loaded):
		return "hit"
	case hits == 0:
		return "miss"
	}
	return fmt.Sprintf("%d of %d hit", hits, len(r.loaded))
}

func (a *app) printKernels(r *result) {
	if len(r.report.Kernels) == 0 {
		return
	}
	var rows [][]string
	for _, k := range r.report.Kernels {
		took := runtime.Median(k.Times)
		rows = append(rows, []string{k.Name, dims(k.Grid), dims(k.Block), milliseconds(took), byteText(k.Reads), byteText(k.Writes)})
	}
	a.ui.printf("\n")
	a.ui.table([]column{col("kernel"), col("grid"), col("block"), number("ms"), number("reads"), number("writes")}, rows)
	rows = nil
	for _, u := range r.loaded {
		rows = append(rows, []string{u.Entry, u.Outcome.String(), milliseconds(u.Took), fmt.Sprint(u.Registers), fmt.Sprint(u.Spills)})
	}
	a.ui.printf("\n")
	a.ui.table([]column{col("loaded"), col("cache"), number("ms"), number("registers"), number("spills")}, rows)
}

func dims(d [3]uint32) string {
	text := fmt.Sprintf("%d,%d,%d", d[0], d[1], d[2])
	for strings.HasSuffix(text, ",1") {
		text = strings.TrimSuffix(text, ",1")
	}
	return text
}

// printTrace prints the steps up to the first result. A step that others are part
// of ends after them.
func (a *app) printTrace(trace *runtime.Trace) {
	var rows [][]string
	nvrtc := "NVRTC was not opened"
	for _, s := range trace.Steps() {
		if s.Name == "nvrtc open" {
			nvrtc = "NVRTC was opened"
		}
		rows = append(rows, []string{s.Name, s.Detail, milliseconds(s.Start), milliseconds(s.Took)})
	}
	a.ui.printf("\n")
	a.ui.table([]column{col("step"), col(""), number("at ms"), number("took ms")}, rows)
	a.ui.printf("%s\n", nvrtc)
}
