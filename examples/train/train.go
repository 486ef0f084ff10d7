// Package train is what the examples of training share: a loop that takes steps, says how it goes,
// draws the losses, and goes on where it was stopped.
//
// A model is a .fuse source with two graphs. The results of gradient are the loss l and the gradients
// d_w, ...; update has the parameters w, ..., and what the optimizer keeps, as state, takes the gradients as inputs,
// and counts the steps in the state step.
package train

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/tensor"
)

// A Model says what is trained.
type Model struct {
	Source  fusec.Source
	Initial map[string]*tensor.Tensor             // values of parameters; what the optimizer keeps begins with zeros
	Batch   func(step int) (runtime.Args, error)  // the inputs of gradient that are no parameters, for steps from 1 on
	Tokens  int                                   // of a batch, to say how many go through in a second; 0 to say nothing
	Sizes   map[string]int64                      // of the symbols of both graphs
	Report  func(t *Trainer, out io.Writer) error // at the end; may be nil
}

// Options say how a model is trained.
type Options struct {
	Device  string // as fusec.Open takes it
	Steps   int    // in all, those of earlier runs included
	Every   int    // steps between two lines, and between two files
	State   string // a file to go on from, where it is there, and to save to; "" for none
	Initial string // a file for the state ahead of the first step, for another program to begin with; "" for none
	Chart   string // an SVG file for the losses; "" for none
	Beside  string // a file with the losses of another program, which the chart shows too; "" for none
}

// Flags adds the options to the flags of the command, with these defaults.
func (o *Options) Flags(device string, steps, every int) {
	flag.StringVar(&o.Device, "device", device, "cpu, cuda or auto")
	flag.IntVar(&o.Steps, "steps", steps, "steps to take, those of earlier runs included")
	flag.IntVar(&o.Every, "every", every, "steps between two lines, and between two files")
	flag.StringVar(&o.State, "state", "", "a file to go on from, where it is there, and to save to")
	flag.StringVar(&o.Initial, "initial", "", "a file for the state ahead of the first step")
	flag.StringVar(&o.Chart, "chart", "", "an SVG file for the losses")
	flag.StringVar(&o.Beside, "beside", "", "a file with the losses of another program, as JSON, for the chart")
}

// A Trainer is a model on a device.
type Trainer struct {
	Losses []float32 // of the steps so far

	model            *Model
	device           *runtime.Device
	gradient, update *runtime.Function
	state            *runtime.State
	gradients        runtime.Args // buffers by name
	stream           *runtime.Stream
	inputs           map[string]*runtime.Buffer // of gradient, that are no parameters
	loss             *runtime.Buffer
	queued           []*queuedStep // host memory of the steps that are queued together
}

// New loads a model on a device. Close the trainer.
func New(ctx context.Context, device *runtime.Device, m *Model) (*Trainer, error) {
	t := &Trainer{model: m, device: device, gradients: runtime.Args{}, inputs: map[string]*runtime.Buffer{}}
	if err := t.load(ctx); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

func (t *Trainer) load(ctx context.Context) (err error) {
	if t.gradient, err = fusec.Load(ctx, t.device, t.model.Source, fusec.Options{Graph: "gradient"}); err != nil {
		return err
	}
	if t.update, err = fusec.Load(ctx, t.device, t.model.Source, fusec.Options{Graph: "update"}); err != nil {
		return err
	}
	if t.state, err = t.update.NewState(t.model.Sizes); err != nil {
		return err
	}
	for name, x := range t.model.Initial {
		if err := t.state.Set(name, x); err != nil {
			return err
		}
	}
	shapes, err := t.gradient.Shapes(t.model.Sizes)
	if err != nil {
		return err
	}
	states := t.state.Names()
	for _, p := range t.gradient.Params() {
		if slices.Contains(states, p.Name) {
			continue
		}
		b, err := t.device.NewBuffer(p.DType, shapes[p.Name]...)
		if err != nil {
			return err
		}
		switch {
		case !p.Output:
			t.inputs[p.Name] = b
		case p.Name == "l":
			t.loss = b
		default:
			t.gradients[p.Name] = b
		}
	}
	t.stream, err = t.device.NewStream()
	return err
}

// Close frees what the trainer holds on its device.
func (t *Trainer) Close() error {
	var errs []error
	if t.stream != nil {
		errs = append(errs, t.stream.Close())
	}
	for _, b := range t.gradients {
		errs = append(errs, b.(*runtime.Buffer).Close())
	}
	for _, b := range t.inputs {
		errs = append(errs, b.Close())
	}
	if t.loss != nil {
		errs = append(errs, t.loss.Close())
	}
	for _, q := range t.queued {
		errs = append(errs, q.close())
	}
	if t.state != nil {
		errs = append(errs, t.state.Close())
	}
	for _, f := range []*runtime.Function{t.gradient, t.update} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

// Device is where the model is.
func (t *Trainer) Device() *runtime.Device { return t.device }

// State is the parameters and what the optimizer keeps.
func (t *Trainer) State() *runtime.State { return t.state }

// Save writes the state, and the losses so far, to a file.
func (t *Trainer) Save(path string) error {
	var words []string
	for _, l := range t.Losses {
		words = append(words, strconv.FormatFloat(float64(l), 'g', -1, 32))
	}
	return t.state.Save(path, map[string]string{"losses": strings.Join(words, " ")})
}

// Load goes on where Save was called.
func (t *Trainer) Load(path string) error {
	meta, err := t.state.Load(path)
	if err != nil {
		return err
	}
	t.Losses = nil
	for word := range strings.FieldsSeq(meta["losses"]) {
		l, err := strconv.ParseFloat(word, 32)
		if err != nil {
			return fmt.Errorf("%s: loss %d: %w", path, len(t.Losses)+1, err)
		}
		t.Losses = append(t.Losses, float32(l))
	}
	return nil
}

// Run trains a model as options say, with lines about it to out.
func Run(ctx context.Context, m *Model, o Options, out io.Writer) (err error) {
	device, err := fusec.Open(o.Device)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, device.Close()) }()
	free, _, err := device.MemInfo()
	if err != nil {
		return err
	}
	t, err := New(ctx, device, m)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if o.State != "" {
		switch err := t.Load(o.State); {
		case err == nil:
			fmt.Fprintf(out, "goes on behind step %d of %s\n", len(t.Losses), o.State)
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	if o.Initial != "" {
		if err := t.Save(o.Initial); err != nil {
			return err
		}
	}
	if err := t.run(ctx, o, out); err != nil {
		return err
	}
	if err := t.sayMemory(free, out); err != nil {
		return err
	}
	if o.Chart != "" {
		if err := t.writeChart(o); err != nil {
			return err
		}
	}
	if m.Report != nil {
		return m.Report(t, out)
	}
	return nil
}

// run takes the steps that are left. A line says how long the steps since the last line took, without saving.
func (t *Trainer) run(ctx context.Context, o Options, out io.Writer) error {
	start, from := time.Now(), len(t.Losses)
	for len(t.Losses) < o.Steps {
		every := max(o.Every, 1)
		if err := t.Steps(ctx, min(every-len(t.Losses)%every, o.Steps-len(t.Losses))); err != nil {
			return err
		}
		step := len(t.Losses)
		seconds := time.Since(start).Seconds()
		line := fmt.Sprintf("step %5d  loss %.4f  %.1f ms a step", step, t.Losses[step-1], 1000*seconds/float64(step-from))
		if t.model.Tokens > 0 {
			line += fmt.Sprintf("  %.0f tokens/s", float64(t.model.Tokens*(step-from))/seconds)
		}
		fmt.Fprintln(out, line)
		if o.State != "" {
			if err := t.Save(o.State); err != nil {
				return err
			}
		}
		start, from = time.Now(), step
	}
	return nil
}
