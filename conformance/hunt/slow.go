package hunt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/conformance/gen"
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/explain"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/tensor"
)

// What is timed: programs of which a device can run many a second, and whose kernels take longer than a launch.
const (
	leastTime = 10e-6
	mostTime  = 3e-3
	mostBytes = 512 << 20 // of arguments
	mostIndex = 100
	timedRuns = 5
)

// A Timed is a kernel of a program that was run, beside its estimate.
type Timed struct {
	Program  *gen.Program
	Kernel   string
	Strategy string  // its template and its schedule
	Seconds  float64 // the median
	Estimate float64
}

// Ratio is how many times its estimate a kernel takes.
func (t Timed) Ratio() float64 { return t.Seconds / t.Estimate }

func (t Timed) String() string {
	return fmt.Sprintf("%6.1f  %.4f ms, estimated %.4f  seed %d  %s  %s", t.Ratio(), 1e3*t.Seconds, 1e3*t.Estimate, t.Program.Seed, t.Kernel, t.Strategy)
}

// Time runs a program on a device and times its kernels, one program at a time while turn is held. It returns none of a
// program that is estimated to take fewer or more seconds than that.
func Time(ctx context.Context, p *gen.Program, dev *runtime.Device, turn *sync.Mutex, least, most float64) ([]Timed, error) {
	compiled, err := fusec.Compile("g.fuse", p.Source(), fusec.Options{Arch: dev.Arch()})
	if err != nil {
		return nil, err
	}
	plan := compiled.Plan().At(p.Sizes)
	x := explain.Explain(compiled.Graph(), plan, explain.Options{Device: dev.Figures(), Sizes: p.Sizes})
	if s := x.Fused.Seconds; s == nil || *s < least || *s > most || argumentBytes(compiled.Graph(), p.Sizes) > mostBytes {
		return nil, nil
	}
	f, err := compiled.Load(ctx, dev)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	args, err := onDevice(f, compiled.Graph(), p, dev)
	defer func() {
		for _, b := range args {
			_ = b.(*runtime.Buffer).Close()
		}
	}()
	if err != nil {
		return nil, err
	}
	var outside *ir.IndexError
	if err := f.Run(ctx, args); errors.As(err, &outside) {
		return nil, nil // as a @strict program has to say
	} else if err != nil { // loads the kernels, beside other programs that are being timed
		return nil, err
	}
	turn.Lock()
	defer turn.Unlock()
	report, err := f.Measure(ctx, args, runtime.Measure{Warmup: 1, Repeat: timedRuns, FlushL2: true})
	if err != nil {
		return nil, err
	}
	return beside(p, x, report), nil
}

func argumentBytes(g *ir.Graph, sizes map[string]int64) (sum float64) {
	for _, v := range g.Inputs {
		sum += algebra.BytesAt(v, sizes)
	}
	for _, o := range g.Outputs {
		sum += algebra.BytesAt(o.Value, sizes)
	}
	return sum
}

// onDevice are a program's arguments in a device's memory. Inputs are random numbers that repeat every few thousand
// elements, so that they are quickly made; integers are small, so that they are indices.
func onDevice(f *runtime.Function, g *ir.Graph, p *gen.Program, dev *runtime.Device) (runtime.Args, error) {
	const block = 1 << 16
	shapes, err := f.Shapes(p.Sizes)
	if err != nil {
		return nil, err
	}
	args, rng := runtime.Args{}, rand.New(rand.NewPCG(p.Seed, 0x7173))
	for _, o := range g.Outputs {
		b, err := dev.NewBuffer(o.Value.Type, shapes[o.Name]...)
		if err != nil {
			return args, err
		}
		args[o.Name] = b
	}
	for _, v := range g.Inputs {
		some, err := tensor.Random(v.Type, rng.Uint64(), block)
		if !v.Type.IsFloat() {
			some, err = tensor.RandomInts(v.Type, rng.Uint64(), 0, mostIndex, block)
		}
		if err != nil {
			return args, err
		}
		whole, err := tensor.New(v.Type, shapes[v.Name]...)
		if err != nil {
			return args, err
		}
		for n := 0; n < len(whole.Data); {
			n += copy(whole.Data[n:], some.Data)
		}
		b, err := dev.NewBuffer(v.Type, shapes[v.Name]...)
		if err != nil {
			return args, err
		}
		args[v.Name] = b
		if err := b.Upload(whole); err != nil {
			return args, err
		}
	}
	return args, nil
}

// beside joins measured kernels with their estimates.
func beside(p *gen.Program, x explain.Explanation, report *runtime.Report) (out []Timed) {
	notes := map[string]explain.KernelNote{}
	for _, k := range x.Kernels {
		notes[k.Name] = k
	}
	for _, k := range report.Kernels {
		n, ok := notes[k.Name]
		if !ok || n.Seconds == nil || len(k.Times) == 0 {
			continue
		}
		t := Timed{Program: p, Kernel: k.Name, Strategy: n.Template, Seconds: runtime.Median(k.Times).Seconds(), Estimate: *n.Seconds}
		if n.Class != nil {
			text, err := json.Marshal(n.Classes[*n.Class].Schedule)
			if err != nil {
				continue
			}
			t.Strategy += " " + string(text)
		}
		out = append(out, t)
	}
	return out
}
