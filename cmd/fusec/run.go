package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/fuse/explain"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
	"github.com/fusec/fusec/parser"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/sign"
	"github.com/fusec/fusec/runtime/tensor"
)

type runCmd struct {
	File       string     `arg:"" name:"file" help:"The program."`
	Graph      string     `help:"The graph to run, where the program has several."`
	In         []string   `placeholder:"NAME=FILE" sep:"none" help:"Read an input from an .npy, .npz or .safetensors file, or set it to a number; FILE alone: all that an archive has."`
	Out        []string   `placeholder:"NAME=FILE" sep:"none" help:"Write an output to an .npy, .npz or .safetensors file; FILE alone: all, into an archive."`
	Print      printCount `placeholder:"N" help:"Print N rows and columns of each output, 8 by default; small outputs are printed without this, --print=0 prints none."`
	Sizes      sizeFlag   `name:"size" placeholder:"N=8192" help:"Sizes, or small or large for those of a comment above the graph; by default those of @bench."`
	Device     string     `default:"auto" complete:"devices" help:"auto, cuda, cuda:1 or cpu."`
	Check      bool       `help:"Compare the outputs with the reference interpreter: elements of them, where there are many."`
	All        bool       `help:"Check every element, however long it takes."`
	Seed       uint64     `default:"1" help:"Seed of the random inputs."`
	Scale      bool       `default:"true" negatable:"" help:"Scale random inputs so that values stay near 1, and make those positive that have to be."`
	Repeat     int        `help:"How often to run for the time that is printed; 0 chooses."`
	TraceStart bool       `help:"Print what took time up to the first result."`
	Verbose    bool       `short:"v" help:"Also print each kernel."`
	LineInfo   bool       `help:"Keep in the kernels which lines of the program they are from, for Nsight Compute and debuggers; the code is the same."`
	PublicKey  string     `placeholder:"FILE" help:"The program is a bundle, signed with this key."`

	Size    map[string]int64 `kong:"-"` // of the symbols, as the flag has them for the graph
	trace   *runtime.Trace
	source  fusec.Source
	program func() (*fusec.Program, error)
	load    func(d *runtime.Device) (*runtime.Function, error)
}

// Help is the long help text.
func (*runCmd) Help() string {
	return `Inputs that nothing is given for are random. An input that is a number has it as each of
its elements. Of an archive, the array of the input's name is read, or the one after a colon.
Without a GPU that can run the program, auto is the CPU. A GPU that fails while it runs is an
error.

Random inputs are normal. A weight is scaled so that the sums it is multiplied into stay near 1,
and an input below a root or a logarithm is positive; --no-scale leaves them as they are.

--check computes elements of each output in f64 and says how far off the run is, beside what
rounding every operation to its type would do, in units in the last place (ulp) of an element or
of the root mean square of all. Where rounding alone decides an element the check cannot tell,
and fails.

The time is the median over the repetitions: on a GPU that of the kernels alone, with
a cold L2 cache; on the CPU that of the whole run.

Examples:

    fusec run examples/softmax.fuse
    fusec run examples/softmax.fuse --size N=64,M=1000 --device cpu --check
    fusec run examples/softmax.fuse --in x=x.npy --out y=y.npy --print
    fusec run layer.fuse --in model.safetensors --in x=x.npz:batch0 --in eps=1e-5 --out all.npz
    fusec run app.fbundle --public-key app.key.pub --graph softmax`
}

// Run runs one graph.
func (c *runCmd) Run(a *app) error {
	c.trace = runtime.NewTrace()
	if c.Repeat < 0 {
		return usagef("--repeat %d: expected 0 or more", c.Repeat)
	}
	closer, err := c.open(a)
	if err != nil {
		return err
	}
	defer closer()
	r, err := c.on(a, c.Device)
	if c.Device == "auto" && isUnfit(err) {
		a.ui.notef("running on the CPU: %s", err)
		r, err = c.on(a, "cpu")
	}
	if err != nil {
		return err
	}
	return c.finish(a, r)
}

// open opens the program, or the bundle it is in.
func (c *runCmd) open(a *app) (closer func(), err error) {
	if c.PublicKey != "" {
		return c.openBundle(a)
	}
	if fusec.IsBundle(c.File) {
		return nil, usagef("%s is a bundle: --public-key FILE says whose", c.File)
	}
	if c.source, err = a.files.source(c.File); err != nil {
		return nil, err
	}
	options := fusec.Options{Graph: c.Graph, LineInfo: c.LineInfo}
	c.program = sync.OnceValues(func() (*fusec.Program, error) { return fusec.CompileSource(c.source, options) })
	c.load = func(d *runtime.Device) (*runtime.Function, error) { return fusec.Load(a.ctx, d, c.source, options) }
	return func() {}, nil
}

func (c *runCmd) openBundle(a *app) (closer func(), err error) {
	key, err := sign.ReadPublic(c.PublicKey)
	if err != nil {
		return nil, usagef("--public-key: %w", plainPathError(err))
	}
	end := c.trace.Step("bundle open", c.File)
	b, err := fusec.OpenBundle(c.File, key)
	end()
	if err != nil {
		return nil, plainPathError(err)
	}
	c.program = sync.OnceValues(func() (*fusec.Program, error) {
		source, options, err := b.Source(c.Graph)
		if err != nil {
			return nil, err
		}
		return fusec.CompileSource(source, options)
	})
	c.load = func(d *runtime.Device) (*runtime.Function, error) { return b.Load(a.ctx, d, c.Graph) }
	return func() { b.Close() }, nil
}

// result is a run that went well.
type result struct {
	name    string
	device  string
	kind    runtime.Kind
	args    arguments
	names   []string         // of the outputs
	outputs []*tensor.Tensor // in the order of the graph's
	report  *runtime.Report
	loaded  []runtime.UnitReport
}

// on runs on a device.
func (c *runCmd) on(a *app, spec string) (r *result, err error) {
	bar := a.newLoadBar()
	d, err := a.openDevice(spec, runtime.Options{Cache: a.openCache(), Trace: c.trace, SaveSource: os.TempDir(),
		OnLoad: bar.at, OnWarning: func(err error) { a.ui.notef("%s", err) }})
	if err != nil {
		return nil, openError(spec, err)
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if why := d.Fallback(); why != nil {
		a.ui.notef("running on the CPU: %s", why)
	}
	f, err := c.load(d)
	if err != nil {
		return nil, err
	}
	sig := signatureOf(f, c.graph)
	if err := c.chooseSizes(a, f.Name()); err != nil {
		return nil, err
	}
	if err := checkSizes(c.Size, sig.symbols); err != nil {
		return nil, err
	}
	if err := checkOut(c.Out, paramNames(sig.outputs)); err != nil {
		return nil, err
	}
	end := c.trace.Step("inputs", "")
	args, err := inputSpec{given: c.In, sizes: c.Size, seed: c.Seed, plain: !c.Scale}.arguments(sig)
	end()
	if err != nil {
		return nil, err
	}
	r = &result{name: f.Name(), device: d.Name(), kind: d.Kind(), args: args, names: paramNames(sig.outputs)}
	defer bar.end()
	return r, c.measure(a, f, sig, r)
}

// chooseSizes takes the sizes of the flag for the graph that runs.
func (c *runCmd) chooseSizes(a *app, graph string) (err error) {
	if c.Size != nil {
		return nil
	}
	text, _ := a.files.text(c.File) // "" of a bundle, which has no comments
	c.Size, err = c.Sizes.of(c.File, text, graph)
	return err
}

// graph is the graph, read and planned when it is first asked for.
func (c *runCmd) graph() (*ir.Graph, error) {
	p, err := c.program()
	if err != nil {
		return nil, err
	}
	return p.Graph(), nil
}

// finish prints, checks and writes.
func (c *runCmd) finish(a *app, r *result) error {
	if c.PublicKey == "" { // what came from the cache has not been read so far
		if file, err := parser.Parse(c.File, c.source.Text, parser.Options{ReadFile: c.source.ReadFile}); err == nil {
			a.warn(file, c.Graph)
		}
	}
	if err := a.printResult(c.program, r); err != nil {
		return err
	}
	a.printRandom(r, c.Seed)
	a.printOutputs(c.Print, r.names, r.outputs)
	if c.Verbose {
		a.printKernels(r)
	}
	if c.TraceStart {
		a.printTrace(c.trace)
	}
	if c.Check || c.All {
		p, err := c.program()
		if err != nil {
			return err
		}
		if err := a.verify(p, r, checking{c.Seed, c.All}); err != nil {
			return err
		}
	}
	return writeOutputs(c.Out, r.names, r.outputs)
}

// openError tells a device that is misspelt from one that is not there.
func openError(spec string, err error) error {
	if exitCode(err) == exitDevice {
		return err
	}
	return usagef("--device %s: %w", spec, err)
}

// measure runs once, to load the kernels and to learn how long a run takes, and
// then as often as that allows.
func (c *runCmd) measure(a *app, f *runtime.Function, sig signature, r *result) error {
	call := runtime.Args{}
	for i, p := range sig.inputs {
		call[p.Name] = r.args.inputs[i]
	}
	shapes, err := f.Shapes(r.args.sizes)
	if err != nil {
		return err
	}
	for _, p := range sig.outputs {
		x, err := tensor.New(p.DType, shapes[p.Name]...)
		if err != nil {
			return fmt.Errorf("output %s: %w", p.Name, err)
		}
		call[p.Name] = x
		r.outputs = append(r.outputs, x)
	}
	end := c.trace.Step("first run", f.Name())
	r.report, err = f.Measure(a.ctx, call, runtime.Measure{})
	end()
	if err != nil {
		return err
	}
	r.loaded = r.report.Loaded
	if how := c.repetition(r); how.Repeat > 0 {
		r.report, err = f.Measure(a.ctx, call, how)
	}
	return err
}

// repetition is how to run again for the time: as often as asked, or for about a
// second. On the CPU, which has nothing to load, the first run is as good as any.
func (c *runCmd) repetition(r *result) runtime.Measure {
	const budget, most = time.Second, 100
	repeat := c.Repeat
	if repeat == 0 {
		repeat = int(min(most, budget/max(r.report.Wall, time.Microsecond)))
	}
	if r.kind == runtime.CPU {
		return runtime.Measure{Repeat: repeat - 1}
	}
	return runtime.Measure{Warmup: 2, Repeat: max(repeat, 1), FlushL2: true}
}

// printResult prints the one table of a run.
func (a *app) printResult(program func() (*fusec.Program, error), r *result) error {
	kernels, launches, moved := 0, r.report.Launches(), r.report.Bytes()
	for _, k := range r.report.Kernels {
		if !k.Skipped {
			kernels++
		}
	}
	if r.kind == runtime.CPU { // which does not report kernels one by one
		p, err := program()
		if err != nil {
			return err
		}
		kernels, moved = planned(p, r.args.sizes)
		launches = kernels
	}
	took := r.report.Time()
	rate := "-"
	if took > 0 {
		rate = fmt.Sprintf("%.1f", float64(moved)/took.Seconds()/1e9)
	}
	a.ui.table([]column{col("graph"), col("sizes"), number("kernels"), number("launches"), number("ms"),
		number("bytes"), number("GB/s"), col("device"), col("cache")},
		[][]string{{r.name, sizesText(r.args.sizes), fmt.Sprint(kernels), fmt.Sprint(launches), milliseconds(took),
			byteText(moved), rate, r.device, cacheText(r)}})
	return nil
}

// printRandom says which inputs were made up.
func (a *app) printRandom(r *result, seed uint64) {
	if len(r.args.random) == 0 {
		return
	}
	var names []string
	for _, x := range r.args.random {
		names = append(names, x.text())
	}
	a.ui.printf("%s\n", a.ui.style(faint, fmt.Sprintf("random inputs, seed %d: %s (--in %s=FILE reads one)", seed,
		diag.Names(names), r.args.random[0].name)))
}

// planned is the number of kernels of a plan and what they have to move.
func planned(p *fusec.Program, sizes map[string]int64) (kernels int, bytes int64) {
	total := explain.Explain(p.Graph(), p.Plan(), explain.Options{Sizes: sizes}).Fused
	if total.Read.Bytes != nil && total.Written.Bytes != nil {
		bytes = *total.Read.Bytes + *total.Written.Bytes
	}
	return total.Kernels, bytes
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
		if k.Skipped {
			continue
		}
		took := runtime.Median(k.Times)
		rows = append(rows, []string{k.Name, dims(k.Grid), dims(k.Block), milliseconds(took), byteText(k.Reads),
			byteText(k.Writes)})
	}
	a.ui.printf("\n")
	a.ui.table([]column{col("kernel"), col("grid"), col("block"), number("ms"), number("reads"),
		number("writes")}, rows)
	rows = nil
	for _, u := range r.loaded {
		rows = append(rows, []string{u.Entry, u.Outcome.String(), milliseconds(u.Took), fmt.Sprint(u.Registers),
			fmt.Sprint(u.Spills)})
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
