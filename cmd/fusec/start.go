package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/bench"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/cache"
	"github.com/fusec/fusec/runtime/cuda"
	"github.com/fusec/fusec/runtime/tensor"
)

type startCmd struct {
	File   string           `arg:"" optional:"" name:"file" help:"The program; by default a layer norm and a softmax."`
	Graph  string           `help:"The graph to run, where the program has several."`
	Size   map[string]int64 `placeholder:"N=8192" mapsep:"," help:"Sizes; by default those of @bench."`
	Layers int              `placeholder:"30" help:"Instead of a program, so many layers of two kernels each."`
	Repeat int              `default:"20" help:"Processes of each kind."`
	Peer   string           `enum:",torch" default:"" help:"torch: also torch.compile, cold and warm, with the default program."`
	Python string           `default:"python3" help:"The interpreter that has PyTorch."`
	Probe  string           `enum:",context,result" default:"" hidden:""` // what a child measures
	Steps  bool             `help:"Print the steps of the last process with a warm cache."`
}

// Help is the long help text.
func (*startCmd) Help() string {
	return `Starts processes that run a graph once on the GPU, and prints the time from the start of
a process to the result in host memory. Beside them, in turns, it starts processes that
only make a CUDA context: what is above that is fusec's own.

Examples:

    fusec start
    fusec start --layers 30
    fusec start --peer torch`
}

// startedEnv tells a child when it was started, in nanoseconds since 1970.
const startedEnv = "FUSEC_STARTED"

// Run measures, or is a process that is measured.
func (c *startCmd) Run(a *app) error {
	switch {
	case c.Repeat < 1:
		return usagef("--repeat %d: expected 1 or more", c.Repeat)
	case c.Layers < 0:
		return usagef("--layers %d: expected 0 or more", c.Layers)
	case c.Peer != "" && (c.File != "" || c.Layers > 0):
		return usagef("--peer %s runs the default program only", c.Peer)
	case c.Probe != "":
		return c.probe(a)
	}
	return c.compare(a)
}

// source is the program to start.
func (c *startCmd) source(a *app) (fusec.Source, error) {
	if c.Layers > 0 {
		return fusec.Source{Name: "layers.fuse", Text: []byte(layers(c.Layers))}, nil
	}
	if c.File == "" {
		return fusec.Source{Name: "start.fuse", Text: bench.Start}, nil
	}
	text, err := a.files.read(c.File)
	return fusec.Source{Name: c.File, Text: text, ReadFile: a.files.read}, err
}

// layers is a program of n layers: a product with what follows it, then a softmax.
func layers(n int) string {
	var b strings.Builder
	b.WriteString("graph layers(x: f32[256, 256], w: f32[256, 256], r: f32[256, 256]) -> (y: f32[256, 256]) {\n")
	for i, in := 1, "x"; i <= n; i++ {
		out := fmt.Sprintf("h%d", i)
		if i == n {
			out = "y"
		}
		fmt.Fprintf(&b, "    %s = softmax(gelu(%s @ w) + r)\n", out, in)
		in = out
	}
	b.WriteString("}\n")
	return b.String()
}

// probe does what is measured and prints the nanoseconds since the process was started.
func (c *startCmd) probe(a *app) error {
	began, err := strconv.ParseInt(a.getenv(startedEnv), 10, 64)
	if err != nil {
		return usagef("--probe: %s is not set", startedEnv)
	}
	trace := runtime.NewTrace()
	trace.Note("process start", time.Unix(0, began))
	if c.Probe == "context" {
		err = makeContext()
	} else {
		err = c.result(a, trace)
	}
	if err != nil {
		return err
	}
	a.ui.printf("%d\n", time.Now().UnixNano()-began)
	if c.Steps {
		a.printTrace(trace)
	}
	return nil
}

// makeContext does the least that any program on a GPU must.
func makeContext() error {
	device, err := firstGPU()
	if err != nil {
		return err
	}
	_, err = device.Context() // the end of the process closes it
	return err
}

func firstGPU() (*cuda.Device, error) {
	driver, err := cuda.Open()
	if err != nil {
		return nil, err
	}
	return driver.Device(0)
}

// result runs the graph once, on random inputs.
func (c *startCmd) result(a *app, trace *runtime.Trace) error {
	src, err := c.source(a)
	if err != nil {
		return err
	}
	dev, err := runtime.Open("cuda", runtime.Options{Cache: a.openCache(), Trace: trace,
		OnWarning: func(err error) { a.ui.notef("%s", err) }})
	if err != nil {
		return err
	}
	f, err := fusec.Load(a.ctx, dev, src, fusec.Options{Graph: c.Graph})
	if err != nil {
		return err
	}
	sizes := f.Defaults()
	for name, n := range c.Size {
		sizes[name] = n
	}
	shapes, err := f.Shapes(sizes)
	if err != nil {
		return err
	}
	inputs := runtime.Args{}
	for i, p := range f.Params() {
		if p.Output {
			continue
		}
		if inputs[p.Name], err = tensor.Random(p.DType, uint64(i+1), shapes[p.Name]...); err != nil {
			return err
		}
	}
	_, err = f.Call(a.ctx, inputs)
	return err
}

// compare starts the processes, in turns, and prints the table.
func (c *startCmd) compare(a *app) (err error) {
	if _, err := firstGPU(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "fusec-start-")
	if err != nil {
		return plainPathError(err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s := &starter{cmd: c, app: a, dir: dir}
	warm := filepath.Join(dir, "warm")
	if _, err := s.fusec("result", warm); err != nil { // fills the cache
		return err
	}
	var bare, hot, cold []time.Duration
	for i := range c.Repeat {
		for _, row := range []struct {
			probe, cache string
			into         *[]time.Duration
		}{{"context", warm, &bare}, {"result", warm, &hot}, {"result", filepath.Join(dir, fmt.Sprint(i)), &cold}} {
			took, err := s.fusec(row.probe, row.cache)
			if err != nil {
				return err
			}
			*row.into = append(*row.into, took)
		}
	}
	base := runtime.Median(bare)
	rows := [][]string{s.row("a bare context", bare, base), s.row("fusec, warm cache", hot, base),
		s.row("fusec, empty cache", cold, base)}
	if c.Peer != "" {
		for _, name := range []string{"torch.compile, empty cache", "torch.compile, warm cache"} {
			took, err := s.torch()
			if err != nil {
				return err
			}
			rows = append(rows, s.row(name, []time.Duration{took}, base))
		}
	}
	a.ui.table([]column{col("from process start to"), number("runs"), number("median ms"), number("least"),
		number("most"), number("above the context")}, rows)
	if c.Steps {
		a.ui.printf("\n%s", s.steps)
	}
	return nil
}

// starter starts processes.
type starter struct {
	cmd   *startCmd
	app   *app
	dir   string
	steps string // of the last process with steps
}

func (s *starter) row(name string, times []time.Duration, base time.Duration) []string {
	least, most := times[0], times[0]
	for _, t := range times {
		least, most = min(least, t), max(most, t)
	}
	median := runtime.Median(times)
	return []string{name, fmt.Sprint(len(times)), milliseconds(median), milliseconds(least), milliseconds(most),
		milliseconds(median - base)}
}

// fusec starts this program with a cache in a folder.
func (s *starter) fusec(probe, folder string) (time.Duration, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	c := s.cmd
	args := []string{"start", "--probe", probe}
	if c.File != "" {
		args = append(args, c.File)
	}
	if c.Graph != "" {
		args = append(args, "--graph", c.Graph)
	}
	for name, n := range c.Size {
		args = append(args, "--size", fmt.Sprintf("%s=%d", name, n))
	}
	if c.Layers > 0 {
		args = append(args, "--layers", fmt.Sprint(c.Layers))
	}
	if c.Steps && probe == "result" {
		args = append(args, "--steps")
	}
	took, rest, err := s.start(self, args, cache.Env+"="+folder, "CUDA_CACHE_DISABLE=1")
	if rest != "" && filepath.Base(folder) == "warm" {
		s.steps = rest
	}
	return took, err
}

// torch starts torch.compile, whose caches are in the folder of the starter.
func (s *starter) torch() (time.Duration, error) {
	script := filepath.Join(s.dir, "torch_start.py")
	if err := os.WriteFile(script, bench.TorchStart, 0o600); err != nil {
		return 0, plainPathError(err)
	}
	took, _, err := s.start(s.cmd.Python, []string{script}, "TORCHINDUCTOR_CACHE_DIR="+filepath.Join(s.dir, "inductor"),
		"TRITON_CACHE_DIR="+filepath.Join(s.dir, "triton"))
	return took, err
}

// start runs a process, which prints on its first line how long it took.
func (s *starter) start(program string, args []string, env ...string) (took time.Duration, rest string, err error) {
	const patience = 5 * time.Minute
	ctx, cancel := context.WithTimeout(s.app.ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	complaints := &tail{}
	cmd.Stderr = complaints
	cmd.Env = append(os.Environ(), append(env, fmt.Sprintf("%s=%d", startedEnv, time.Now().UnixNano()))...)
	out, err := cmd.Output()
	if err != nil {
		return 0, "", fmt.Errorf("%s: %w: %s", filepath.Base(program), err, complaints.lastLine())
	}
	first, rest, _ := strings.Cut(string(out), "\n")
	ns, err := strconv.ParseInt(strings.TrimSpace(first), 10, 64)
	if err != nil {
		return 0, "", fmt.Errorf("%s: expected nanoseconds, found %.80q", filepath.Base(program), first)
	}
	return time.Duration(ns), rest, nil
}
