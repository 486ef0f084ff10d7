package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/fuse"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/tensor"
)

type tuneCmd struct {
	File    string           `arg:"" optional:"" name:"file" help:"The program; not needed with --show."`
	Graph   string           `help:"One graph of the program; all by default."`
	In      []string         `placeholder:"NAME=FILE" sep:"none" help:"Read an input from a file, or set it to a number: as fusec run does."`
	Size    map[string]int64 `placeholder:"N=8192" mapsep:"," help:"Sizes to tune for; by default those of @bench."`
	Device  string           `default:"cuda" complete:"devices" help:"cuda or cuda:1; with --show also the name of a GPU: ${devices}."`
	Repeat  int              `help:"Measurements of each candidate; 0 for 20."`
	Seed    uint64           `default:"1" help:"Seed of the random inputs."`
	Replay  bool             `help:"Measure what is stored again, beside the rules' choice; change nothing."`
	Verbose bool             `short:"v" help:"Also print every candidate."`
	Show    bool             `help:"List what is stored; measure nothing."`
}

// Help is the long help text.
func (*tuneCmd) Help() string {
	return `Runs each kernel of a program under every schedule that its plan offers for the sizes, and
stores the fastest in the cache, for this kind of GPU, where it is faster than the planner's by
two hundredths or more. From then on programs with that kernel are planned with it; nothing is
ever measured otherwise. fusec cache clear forgets it.

Examples:

    fusec tune examples/softmax.fuse --size N=8192,M=4096
    fusec tune examples/softmax.fuse --replay
    fusec tune --show --device H200`
}

// Run tunes, replays or shows.
func (c *tuneCmd) Run(a *app) error {
	if c.Show {
		return c.show(a)
	}
	if c.File == "" {
		return usagef("expected a program; --show lists what is stored for all")
	}
	graphs, err := a.graphs(c.File, c.Graph)
	if err != nil {
		return err
	}
	if err := checkSymbols(c.Size, graphs); err != nil {
		return err
	}
	return c.withDevice(a, func(d *runtime.Device) error {
		for _, g := range graphs {
			if err := c.graph(a, d, g); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *tuneCmd) withDevice(a *app, use func(*runtime.Device) error) (err error) {
	d, err := runtime.Open(c.Device, runtime.Options{Cache: a.openCache(), SaveSource: os.TempDir(),
		OnWarning: func(err error) { a.ui.notef("%s", err) }})
	if err != nil {
		return openError(c.Device, err)
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if d.Kind() != runtime.CUDA {
		return usagef("--device %s: tuning is for GPUs", c.Device)
	}
	return use(d)
}

// graph tunes or replays one graph.
func (c *tuneCmd) graph(a *app, d *runtime.Device, g *ir.Graph) error {
	source, err := a.files.source(c.File)
	if err != nil {
		return err
	}
	options := fusec.Options{Graph: g.Name}
	inputs, err := c.inputs(a, d, source, options, g)
	if err != nil {
		return err
	}
	bar := newProgressBar(a, 1<<20) // the number of candidates is known kernel by kernel
	defer bar.end()
	o := fusec.TuneOptions{Inputs: inputs, Repeat: c.Repeat, Progress: func(kernel string, done, candidates int) {
		bar.begin(g.Name + " " + kernel)
		bar.at(done, candidates)
	}}
	tune := fusec.Tune
	if c.Replay {
		tune = fusec.Replay
	}
	tuned, err := tune(a.ctx, d, source, options, o)
	bar.end()
	if err != nil {
		return err
	}
	a.printTuned(g.Name, tuned, c.Replay, c.Verbose)
	return nil
}

// inputs makes up what no file is given for, as fusec run does.
func (c *tuneCmd) inputs(a *app, d *runtime.Device, source fusec.Source, options fusec.Options, g *ir.Graph) (
	_ map[string]*tensor.Tensor, err error,
) {
	f, err := fusec.Load(a.ctx, d, source, options)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sig := signatureOf(f, func() (*ir.Graph, error) { return g, nil })
	args, err := inputSpec{given: c.In, sizes: c.Size, seed: c.Seed}.arguments(sig)
	if err != nil {
		return nil, err
	}
	out := map[string]*tensor.Tensor{}
	for i, p := range sig.inputs {
		out[p.Name] = args.inputs[i]
	}
	return out, nil
}

func (a *app) printTuned(graph string, tuned []fusec.TunedKernel, replay, verbose bool) {
	var rows [][]string
	if verbose {
		a.printTried(graph, tuned)
	}
	for _, k := range tuned {
		what := "the planner's"
		if k.Choice != nil {
			what = choiceText(*k.Choice)
		}
		rows = append(rows, []string{graph, k.Kernel, fmt.Sprint(k.Candidates), milliseconds(k.ByRules),
			milliseconds(k.Best), speedUp(k.ByRules, k.Best), what})
		if k.Wrong > 0 {
			a.ui.notef("kernel %s: %s did not run or gave other results: please report it", k.Kernel,
				count(k.Wrong, "candidate"))
		}
	}
	head := "candidates"
	if replay {
		head = "stored"
	}
	a.ui.table([]column{col("graph"), col("kernel"), number(head), number("planner ms"), number("best ms"),
		number("speed-up"), col("schedule")}, rows)
}

// printTried lists all that was measured.
func (a *app) printTried(graph string, tuned []fusec.TunedKernel) {
	var rows [][]string
	for _, k := range tuned {
		for _, t := range k.Tried {
			rows = append(rows, []string{graph, k.Kernel, milliseconds(t.Took), choiceText(t.Choice)})
		}
	}
	a.ui.table([]column{col("graph"), col("kernel"), number("ms"), col("schedule")}, rows)
}

func speedUp(rules, best time.Duration) string {
	if best <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.3f", float64(rules)/float64(best))
}

// choiceText is what distinguishes a choice.
func choiceText(c fuse.Choice) string {
	s := c.Schedule
	text := fmt.Sprintf("variant %d instead of %d, %s mapping", c.Variant+1, c.Class+1, s.Mapping)
	for _, f := range []struct {
		name  string
		value int
	}{{"threads", s.Threads}, {"row threads", s.RowThreads}, {"cluster", s.Cluster}, {"column threads", s.ColThreads},
		{"tile rows", s.TileM}, {"tile columns", s.TileN}, {"tile depth", s.TileK}, {"part rows", s.PartM},
		{"part columns", s.PartN}, {"stages", s.Stages}, {"run", s.Run},
		{"vector", s.Vector}, {"items", s.Items}, {"unroll", s.Unroll},
		{"min blocks", s.MinBlocks}} {
		if f.value > 0 {
			text += fmt.Sprintf(", %s %d", f.name, f.value)
		}
	}
	return text
}

// show lists what is stored, for a GPU that need not be there.
func (c *tuneCmd) show(a *app) error {
	if figures, err := ir.DeviceNamed(c.Device); err == nil {
		c.list(a, fusec.Choices(a.localCache(), figures))
		return nil
	}
	return c.withDevice(a, func(d *runtime.Device) error {
		c.list(a, fusec.Choices(d.Cache(), d.Figures()))
		return nil
	})
}

func (c *tuneCmd) list(a *app, stored []fusec.StoredChoice) {
	var rows [][]string
	for _, s := range stored {
		if c.Graph != "" && c.Graph != s.Graph {
			continue
		}
		rows = append(rows, []string{s.Graph, s.Name, sizesText(s.Sizes), milliseconds(s.ByRules), milliseconds(s.Best),
			speedUp(s.ByRules, s.Best), choiceText(s.Choice)})
	}
	a.ui.table([]column{col("graph"), col("kernel"), col("measured at"), number("planner ms"), number("best ms"),
		number("speed-up"), col("schedule")}, rows)
}
