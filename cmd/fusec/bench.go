package main

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/fusec/fusec/bench"
	"github.com/fusec/fusec/runtime"
)

type benchCmd struct {
	File      string        `arg:"" optional:"" help:"A program; by default the built-in suites."`
	Suite     []string      `placeholder:"NAME,..." complete:"bench-suites" help:"Built-in suites: operators (where none is named), products, attention, convolutions, seeds."`
	Op        []string      `placeholder:"NAME,..." complete:"bench-ops" help:"These graphs only."`
	Size      []string      `placeholder:"CLASS,..." help:"small, medium, large, batch or all."`
	Dtype     []string      `placeholder:"TYPE,..." complete:"dtypes" help:"Floating-point types to run in: f32, bf16, f16, f64."`
	Device    string        `default:"auto" complete:"devices" help:"auto, cuda, cuda:1 or cpu."`
	Peer      string        `placeholder:"torch" help:"Compare with PyTorch, or with a program like its peer."`
	PeerModes []string      `default:"eager,compile,max-autotune" help:"What to compare with."`
	PeerF32   string        `name:"peer-f32" default:"graph" help:"How the peer multiplies f32: exact, in tf32, as its defaults are, or as the graph does."`
	Python    string        `default:"python3" help:"The Python that has PyTorch."`
	Fast      bool          `help:"Fewer runs, and no max-autotune."`
	Wall      bool          `help:"Time calls on the host's clock as well, with warm caches."`
	Repeat    int           `help:"How often to run each; 0 chooses."`
	Limit     time.Duration `placeholder:"8m" help:"Begin no row after so long."`
	Seed      uint64        `default:"1" help:"Seed of the random inputs."`
	Scale     bool          `default:"true" negatable:"" help:"Scale random inputs so that values stay near 1, and make those positive that have to be."`
	ListOps   bool          `help:"List the graphs, and run nothing."`
	ListSizes bool          `help:"List the graphs with their sizes, and run nothing."`
	JSON      bool          `name:"json" help:"Print one JSON object a row."`
	HTML      string        `name:"html" placeholder:"FILE" type:"path" help:"Write a page with tables and plots as well."`
	Compare   string        `placeholder:"OLD.json" type:"path" help:"Say how the times differ from those that --json printed before."`
}

// Help is the long help text.
func (*benchCmd) Help() string {
	return `Measures graphs beside a plain copy, or read, of as many bytes and, with --peer torch, beside
PyTorch on the same inputs: eager, torch.compile and max-autotune, in turns, in one run.
It fails where the results disagree. On a GPU, times are those of the kernels alone, with
a cold L2 cache; on the CPU those of the whole run.

The size classes of a graph stand in comments above it, as does what PyTorch computes:

    # torch: F.softmax(x, dim=-1)
    # large: N=8192 M=8192; N=2048 M=131072
    @bench(N=4096, M=4096)
    graph softmax(x: f32[N, M]) -> (y: f32[N, M]) { ... }

medium is the @bench of a graph, and what a program is measured at by default; the suite
operators is measured at large, in f32 and in bf16, the others at large as they are
written, or in the types of a # dtypes: comment.

Inputs and results pass through files in the folder for temporary files.

Examples:

    fusec bench --peer torch
    fusec bench --op softmax,layer_norm --dtype bf16 --size all
    fusec bench --suite seeds --size all --peer torch --html seeds.html
    fusec bench my.fuse --json >new.json; fusec bench my.fuse --compare new.json`
}

// Run measures what the flags select.
func (c *benchCmd) Run(a *app) error {
	if err := c.validate(); err != nil {
		return err
	}
	programs, err := c.programs(a)
	if err != nil {
		return err
	}
	if programs, err = c.selected(programs); err != nil {
		return err
	}
	switch {
	case c.ListOps:
		return listOps(a, programs)
	case c.ListSizes:
		return listSizes(a, programs)
	}
	jobs := c.jobs(programs)
	if len(jobs) == 0 {
		return usagef("there is nothing to run: no graph has %s sizes", strings.Join(c.Size, " or "))
	}
	return c.measure(a, jobs)
}

// benchTypes are the types that the floats of a graph can be switched to.
var benchTypes = []string{"f32", "bf16", "f16", "f64"}

// peerModes are the ways in which a peer can run.
var peerModes = []string{"eager", "channels-last", "compile", "max-autotune"}

// How a peer multiplies f32. By default PyTorch does so exactly in matrix products, and in tf32 in convolutions.
const (
	f32Exact     = "exact"
	f32InTF32    = "tf32"
	f32ByDefault = "default"
	f32OfGraph   = "graph" // tf32 where the graph is @tf32, else exact
)

var peerF32s = []string{f32Exact, f32InTF32, f32ByDefault}

func (c *benchCmd) validate() error {
	if c.Repeat < 0 {
		return usagef("--repeat %d: expected 0 or more", c.Repeat)
	}
	if len(c.Size) == 0 {
		c.Size = []string{bench.Large}
		if c.File != "" {
			c.Size = []string{bench.Medium}
		}
	}
	err := errors.Join(
		oneOf("--size", c.Size, append(bench.Classes(), "all")),
		oneOf("--dtype", c.Dtype, benchTypes),
		oneOf("--peer-modes", c.PeerModes, peerModes),
		oneOf("--peer-f32", []string{c.PeerF32}, append(peerF32s, f32OfGraph)),
	)
	if err != nil {
		return usageError{err}
	}
	if slices.Contains(c.Size, "all") {
		c.Size = bench.Classes()
	}
	if c.File != "" && c.Suite != nil {
		return usagef("%s and --suite: name a program or suites", c.File)
	}
	if c.Fast {
		c.PeerModes = slices.DeleteFunc(c.PeerModes, func(m string) bool { return m == "max-autotune" })
	}
	return nil
}

func oneOf(flag string, values, known []string) error {
	for _, v := range values {
		if !slices.Contains(known, v) {
			return usagef("%s %s: expected %s", flag, v, strings.Join(known, ", "))
		}
	}
	return nil
}

// programs are the file, or the built-in suites.
func (c *benchCmd) programs(a *app) ([]bench.Program, error) {
	if c.File == "" {
		return c.suites(a)
	}
	if _, err := a.graphs(c.File, ""); err != nil { // an error is better reported once than in every row
		return nil, err
	}
	text, _ := a.files.text(c.File)
	p, err := bench.Parse(c.File, text)
	return []bench.Program{p}, err
}

// suites are the programs of the built-in suites that are asked for; of operators, where none are named.
func (c *benchCmd) suites(a *app) ([]bench.Program, error) {
	names := c.Suite
	if names == nil {
		names = []string{bench.Operators}
	}
	var out []bench.Program
	for _, name := range names {
		programs, err := bench.Suite(name)
		if err != nil {
			return nil, usageError{err}
		}
		for i, p := range programs {
			a.files.texts[p.Name] = p.Text
			for j := range p.Cases {
				if k := &programs[i].Cases[j]; name == bench.Operators && k.DTypes == nil {
					k.DTypes = []string{"f32", "bf16"}
				}
			}
		}
		out = append(out, programs...)
	}
	return out, nil
}

// selected keeps the graphs that --op names.
func (c *benchCmd) selected(programs []bench.Program) ([]bench.Program, error) {
	if len(c.Op) == 0 {
		return programs, nil
	}
	var names []string
	var out []bench.Program
	for _, p := range programs {
		kept := p
		kept.Cases = nil
		for _, k := range p.Cases {
			names = append(names, k.Graph)
			if slices.Contains(c.Op, k.Graph) {
				kept.Cases = append(kept.Cases, k)
			}
		}
		out = append(out, kept)
	}
	for _, op := range c.Op {
		if slices.Contains(names, op) {
			continue
		}
		if near := alike(op, names); near != nil {
			return nil, usagef("--op %s: there is no such graph; there is %s", op, strings.Join(near, ", "))
		}
		return nil, usagef("--op %s: there is no such graph: fusec bench --list-ops lists what there is", op)
	}
	return out, nil
}

// benchJob is one row to measure.
type benchJob struct {
	program bench.Program
	bench.Case
	class string
	sizes bench.Sizes // nil for those of @bench
	dtype string      // "" as written
}

// jobs are the selected graphs in every selected type, at every selected size.
func (c *benchCmd) jobs(programs []bench.Program) []benchJob {
	var out []benchJob
	for _, p := range programs {
		for _, k := range p.Cases {
			for _, class := range c.Size {
				sizes := k.Sizes[class]
				if class == bench.Medium {
					sizes = []bench.Sizes{nil}
				}
				for _, s := range sizes {
					for _, dtype := range c.dtypes(k) {
						out = append(out, benchJob{p, k, class, s, dtype})
					}
				}
			}
		}
	}
	return out
}

// dtypes are the types to measure a case in: those asked for, else its own; "" as it is written.
func (c *benchCmd) dtypes(k bench.Case) []string {
	switch {
	case len(c.Dtype) > 0:
		return c.Dtype
	case len(k.DTypes) > 0:
		return k.DTypes
	}
	return []string{""}
}

// open opens the device. If that is the CPU for want of a GPU, the benchmark says so and goes on.
func (c *benchCmd) open(a *app) (*runtime.Device, error) {
	d, err := runtime.Open(c.Device, runtime.Options{Cache: a.openCache(),
		OnWarning: func(err error) { a.ui.notef("%s", err) }})
	if err != nil {
		return nil, openError(c.Device, err)
	}
	if why := d.Fallback(); why != nil {
		a.ui.notef("running on the CPU: %s", why)
	}
	return d, nil
}
