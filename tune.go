package fusec

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/fusec/fusec/fuse"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/tensor"
)

// TuneOptions say how to tune a graph.
type TuneOptions struct {
	Inputs map[string]*tensor.Tensor // whose sizes are tuned for
	Repeat int                       // measurements of each candidate; 0 for 20
	// Progress is told of each kernel and candidate before it is measured; may be nil.
	Progress func(kernel string, done, candidates int)
}

// A TunedKernel is what tuning found out about a kernel.
type TunedKernel struct {
	Kernel     string
	Candidates int // those that were measured, including the rules' choice
	Wrong      int // those that failed or gave other results, which is a fault of fusec; they are never chosen
	ByRules    time.Duration
	Best       time.Duration // of Choice, measured in turns with ByRules
	// Choice is what was stored. It is nil if nothing was faster than the rules' choice by at least 2
	// %.
	Choice *fuse.Choice
	// Tried is what was measured, each once, in the order of the plan's candidates.
	Tried []TriedChoice
}

// A TriedChoice is a candidate of a kernel and the time it took.
type TriedChoice struct {
	Choice fuse.Choice
	Took   time.Duration
}

// What tuning goes by.
const (
	tuneRepeat   = 20
	tuneFinals   = 3    // candidates measured again, in turns with the rules' choice
	tuneGain     = 0.98 // of the rules' time, at most, to be worth a choice
	tuneAccuracy = 2e-2 // of the largest element: other orders of summation pass, mistakes do not
)

// Tune measures other schedules for each kernel of a graph, on a GPU and at the sizes of the inputs,
// and stores the fastest in the device's cache. From then on Load plans with these on that kind of
// device, until another version of the planner makes other kernels. Results may differ from earlier
// ones in their last bits. Only this function and Replay measure.
func Tune(
	ctx context.Context, dev *runtime.Device, src Source, opts Options, o TuneOptions,
) (tuned []TunedKernel, err error) {
	err = onTuner(ctx, dev, src, opts, o, func(t *tuner) error {
		if tuned, err = t.run(ctx); err != nil {
			return err
		}
		var records []StoredChoice
		for _, k := range tuned {
			if k.Choice != nil {
				records = append(records, StoredChoice{Choice: *k.Choice, Graph: t.graph.Name, Name: k.Kernel,
					Sizes: t.sizes, ByRules: k.ByRules, Best: k.Best})
			}
		}
		storeChoices(dev.Cache(), dev.Figures(), t.measured, records)
		return nil
	})
	return tuned, err
}

// onTuner has a tuner, on a bench of its own, do something.
func onTuner(
	ctx context.Context, dev *runtime.Device, src Source, opts Options, o TuneOptions, do func(*tuner) error,
) (err error) {
	bench, err := newTuneBench(ctx, dev, src, opts, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bench.close()) }()
	stage := "fuse"
	defer guard(&stage, src.Name, &err)
	return do(newTuner(bench, o))
}

// tuner tries candidates on a bench.
type tuner struct {
	bench    timer
	graph    *ir.Graph
	options  fuse.Options
	sizes    map[string]int64
	progress func(kernel string, done, candidates int)
	measured []fuse.Choice // the classes that were looked at, by their rules' choices
}

func newTuner(b *tuneBench, o TuneOptions) *tuner {
	return &tuner{bench: b, graph: b.graph, options: b.options, sizes: b.sizes, progress: o.Progress}
}

// A timer runs a plan and times one of its kernels. Its results must be those of the
// plan that it ran first: errWrong where they are not.
type timer interface {
	// prepare compiles one kernel of each of the plans, side by side, so that timing them
	// need not. What does not compile shows when it is timed.
	prepare(ctx context.Context, plans []*ir.Plan, kernel int)
	time(ctx context.Context, plan *ir.Plan, kernel int) (time.Duration, error)
}

var errWrong = errors.New("the results differ")

func (t *tuner) run(ctx context.Context) ([]TunedKernel, error) {
	base, err := fuse.Plan(t.graph, t.options)
	if err != nil {
		return nil, err
	}
	if _, err := t.bench.time(ctx, base, 0); err != nil {
		return nil, err
	}
	var out []TunedKernel
	for i, k := range base.Launched() {
		if k.When != nil && !slices.Contains(base.At(t.sizes).Kernels, k) {
			continue // which runs at other sizes
		}
		if k.Like != nil {
			continue // has its choice
		}
		tuned, err := t.kernel(ctx, base, i)
		if err != nil {
			return nil, err
		}
		out = append(out, tuned)
	}
	return out, nil
}

// candidate is a choice and the time it took.
type candidate struct {
	fuse.Choice
	took time.Duration
}

// kernel tunes one kernel, given by its launch's number: every candidate once, then the fastest few in turns with
// what the rules choose.
func (t *tuner) kernel(ctx context.Context, base *ir.Plan, number int) (TunedKernel, error) {
	k := base.Launched()[number]
	choices := fuse.Candidates(base, k, t.sizes)
	out := TunedKernel{Kernel: k.Name, Candidates: len(choices)}
	if len(choices) == 0 {
		return out, nil
	}
	t.measured = append(t.measured, choices[0])
	t.bench.prepare(ctx, t.plans(choices), number)
	var field []candidate
	for n, c := range choices {
		if t.progress != nil {
			t.progress(k.Name, n, len(choices))
		}
		took, err := t.try(ctx, c, number)
		switch {
		case ctx.Err() != nil:
			return out, context.Cause(ctx)
		case err != nil && n == 0:
			return out, err
		case err != nil: // one that does not compile, start or compute is no choice
			out.Wrong++
		default:
			field = append(field, candidate{c, took})
			out.Tried = append(out.Tried, TriedChoice{c, took})
		}
	}
	byRules := field[0].Choice
	slices.SortStableFunc(field, func(a, b candidate) int { return cmp.Compare(a.took, b.took) })
	return out, t.finals(ctx, number, byRules, field[:min(tuneFinals, len(field))], &out)
}

// finals measures the fastest again, each in turn with the rules' choice.
func (t *tuner) finals(
	ctx context.Context, number int, byRules fuse.Choice, field []candidate, out *TunedKernel,
) error {
	for _, c := range field {
		rules, err := t.try(ctx, byRules, number)
		if err != nil {
			return err
		}
		took := rules
		if c.Choice != byRules {
			if took, err = t.try(ctx, c.Choice, number); err != nil {
				return err
			}
		}
		better := out.Choice == nil || float64(took)*float64(out.ByRules) < float64(out.Best)*float64(rules)
		if float64(took) <= tuneGain*float64(rules) && better {
			choice := c.Choice
			out.Choice, out.Best, out.ByRules = &choice, took, rules
		} else if out.Choice == nil {
			out.Best, out.ByRules = rules, rules
		}
	}
	return nil
}

func (t *tuner) try(ctx context.Context, c fuse.Choice, number int) (time.Duration, error) {
	plan, err := t.plan(c)
	if err != nil {
		return 0, err
	}
	return t.bench.time(ctx, plan, number)
}

func (t *tuner) plan(c fuse.Choice) (*ir.Plan, error) {
	options := t.options
	options.Choices = []fuse.Choice{c}
	return fuse.Plan(t.graph, options)
}

// plans are those of all choices that can be planned.
func (t *tuner) plans(choices []fuse.Choice) (out []*ir.Plan) {
	for _, c := range choices {
		if plan, err := t.plan(c); err == nil {
			out = append(out, plan)
		}
	}
	return out
}

// Replay measures what is stored for the kernels of a graph again, in turns with what
// the rules choose, and changes nothing. A kernel whose class has no stored choice has
// one candidate.
func Replay(
	ctx context.Context, dev *runtime.Device, src Source, opts Options, o TuneOptions,
) (tuned []TunedKernel, err error) {
	err = onTuner(ctx, dev, src, opts, o, func(t *tuner) error {
		tuned, err = t.replay(ctx, Choices(dev.Cache(), dev.Figures()))
		return err
	})
	return tuned, err
}

func (t *tuner) replay(ctx context.Context, stored []StoredChoice) ([]TunedKernel, error) {
	base, err := fuse.Plan(t.graph, t.options)
	if err != nil {
		return nil, err
	}
	var out []TunedKernel
	for i, k := range base.Launched() {
		if k.Like != nil {
			continue
		}
		rules, err := t.bench.time(ctx, base, i)
		if err != nil {
			return nil, err
		}
		tuned := TunedKernel{Kernel: k.Name, Candidates: 1, ByRules: rules, Best: rules}
		possible := fuse.Candidates(base, k, t.sizes)
		for _, s := range stored {
			if len(possible) == 0 || s.Kernel != possible[0].Kernel || s.Class != possible[0].Class {
				continue
			}
			tuned.Candidates++
			if tuned.Best, err = t.try(ctx, s.Choice, i); err != nil {
				return nil, err
			}
			choice := s.Choice
			tuned.Choice = &choice
		}
		out = append(out, tuned)
	}
	return out, nil
}
