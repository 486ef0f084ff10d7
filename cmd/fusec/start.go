package main

import (
	"maps"
	"strconv"
	"time"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/bench"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/cache"
	"github.com/fusec/fusec/runtime/cuda"
	"github.com/fusec/fusec/runtime/sign"
	"github.com/fusec/fusec/runtime/tensor"
)

type startCmd struct {
	File   string           `arg:"" optional:"" name:"file" help:"The program; by default a layer norm and a softmax."`
	Graph  string           `help:"The graph to run, where the program has several."`
	Size   map[string]int64 `placeholder:"N=8192" mapsep:"," help:"Sizes; by default those of @bench."`
	Layers int              `placeholder:"30" help:"Instead of a program, so many small layers, one after the other."`
	Repeat int              `default:"20" help:"Processes of each kind."`
	Cold   int              `default:"-1" placeholder:"N" help:"Processes with an empty cache; by default as many as of the others."`
	Peer   string           `enum:",torch" default:"" help:"torch: also torch.compile, cold and warm, with the default program."`
	Python string           `default:"python3" help:"The interpreter that has PyTorch."`
	Steps  bool             `help:"Print the steps of the last process with a warm cache."`

	Probe string `enum:",context,result,bundle" default:"" hidden:""` // what a child measures
	Key   string `hidden:""`                                          // of the bundle that File is then
}

// Help is the long help text.
func (*startCmd) Help() string {
	return `Starts processes that run a graph once on the GPU, and prints the time from the start of
a process to the result in host memory. Beside them, in turns, it starts processes that
only make a CUDA context: what is above that is fusec's own. The last rows are processes
with nothing in their environment, without NVRTC, whose program and kernels are a bundle.

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
	case c.Cold < -1:
		return usagef("--cold %d: expected 0 or more", c.Cold)
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
		return fusec.Source{Name: "layers.fuse", Text: bench.Layers(c.Layers)}, nil
	}
	if c.File == "" {
		return fusec.Source{Name: "start.fuse", Text: bench.Start}, nil
	}
	return a.files.source(c.File)
}

// probe does what is measured and prints the nanoseconds since the process was started.
func (c *startCmd) probe(a *app) error {
	began, err := strconv.ParseInt(a.getenv(startedEnv), 10, 64)
	if err != nil {
		return usagef("--probe: %s is not set", startedEnv)
	}
	trace := runtime.NewTrace()
	trace.Note("process start", time.Unix(0, began))
	switch c.Probe {
	case "context":
		err = makeContext()
	case "result":
		err = c.compiled(a, trace)
	case "bundle":
		err = c.shipped(a, trace)
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

// compiled runs the program once, through the cache.
func (c *startCmd) compiled(a *app, trace *runtime.Trace) error {
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
	return c.once(a, f)
}

// shipped runs the graph of a bundle once. It uses no cache and compiles nothing.
func (c *startCmd) shipped(a *app, trace *runtime.Trace) error {
	dev, err := runtime.Open("cuda", runtime.Options{Cache: cache.Open(cache.Options{Off: true}),
		NoCompile: true, Trace: trace})
	if err != nil {
		return err
	}
	key, err := sign.ParsePublic(c.Key)
	if err != nil {
		return err
	}
	b, err := fusec.OpenBundle(c.File, key)
	if err != nil {
		return err
	}
	f, err := b.Load(a.ctx, dev, c.Graph)
	if err != nil {
		return err
	}
	return c.once(a, f)
}

// once runs a function on random inputs. The end of the process closes everything.
func (c *startCmd) once(a *app, f *runtime.Function) error {
	sizes := f.Defaults()
	maps.Copy(sizes, c.Size)
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
