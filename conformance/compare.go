package conformance

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/tensor"
)

// A Loaded is a program on an engine.
type Loaded struct {
	*fusec.Program
	Function *runtime.Function
}

// Load plans one of a source's graphs for the engine's device and loads it there. Options.Graph may
// be empty where the source has one graph; Options.Arch is the engine's to say.
func (e *Engine) Load(src fusec.Source, opts fusec.Options) (*Loaded, error) {
	opts.Arch = e.Arch()
	p, err := fusec.CompileSource(src, opts)
	if err != nil {
		return nil, err
	}
	f, err := p.Load(context.Background(), e.Device)
	return &Loaded{Program: p, Function: f}, err
}

// Check runs the program and compares it with the interpreter. Where that gives an *ir.IndexError,
// the run must give the same.
func (l *Loaded) Check(ctx context.Context, args runtime.Args) error {
	want, err := Interpret(l.Graph(), args)
	return l.CheckAgainst(ctx, want, err)
}

// CheckAgainst is Check with what Interpret gave for the same graph before.
func (l *Loaded) CheckAgainst(ctx context.Context, want *Reference, interpreted error) error {
	var outside *ir.IndexError
	if interpreted != nil && !errors.As(interpreted, &outside) {
		return fmt.Errorf("the interpreter: %w", interpreted)
	}
	got, err := l.Function.Call(ctx, want.Args)
	if outside != nil {
		return sameOutside(err, outside)
	}
	if err != nil {
		return err
	}
	return want.Compare(got)
}

// sameOutside compares what a run says of an index outside with what the interpreter says.
func sameOutside(err error, want *ir.IndexError) error {
	var got *ir.IndexError
	if !errors.As(err, &got) || got.Tensor != want.Tensor || got.Axis != want.Axis || got.Index != want.Index ||
		got.Extent != want.Extent || !slices.Equal(got.At, want.At) {
		return fmt.Errorf("the interpreter says %q, the engine %v", want, err)
	}
	return nil
}

// A Reference is inputs and what the interpreter makes of them. It is safe for concurrent use.
type Reference struct {
	Graph *ir.Graph
	Args  runtime.Args
	Want  []*tensor.Tensor // in the order of the graph's results
	// gaps are, for each result, the largest difference that rounding every operation makes to a
	// finite element: found when it is asked for, because that takes a second run.
	gaps func() ([]float64, error)
}

// Interpret runs a graph through the interpreter. The reference has Graph and Args even where there is
// an error.
func Interpret(g *ir.Graph, args runtime.Args) (*Reference, error) {
	r := &Reference{Graph: g, Args: args}
	var inputs []*interp.Tensor
	for _, v := range g.Inputs {
		x, ok := args[v.Name].(*tensor.Tensor)
		if !ok {
			return r, fmt.Errorf("input %s is missing", v.Name)
		}
		inputs = append(inputs, interp.FromBytes(v.Type, x.Shape, slices.Clone(x.Data)))
	}
	exact, err := interp.Run(g, inputs, interp.Options{})
	if err != nil {
		return r, err
	}
	for _, x := range exact {
		want, err := tensor.FromBytes(x.Type, x.Bytes(), x.Shape...)
		if err != nil {
			return r, err
		}
		r.Want = append(r.Want, want)
	}
	r.gaps = sync.OnceValues(func() (gaps []float64, err error) {
		strict, err := interp.Run(g, inputs, interp.Options{Mode: interp.Strict})
		for i := range strict {
			gaps = append(gaps, largestGap(exact[i], strict[i]))
		}
		return gaps, err
	})
	return r, nil
}

// Compare compares results with the reference, within the tolerance of each. The second run of the interpreter is spared
// where they are that near without what it would allow beside.
func (r *Reference) Compare(got map[string]*tensor.Tensor) error {
	if r.compare(got, r.tolerance(make([]float64, len(r.Want)))) == nil {
		return nil
	}
	gaps, err := r.gaps()
	if err != nil {
		return err
	}
	return r.compare(got, r.tolerance(gaps))
}

// tolerance is that of each result, by what rounding does to it.
func (r *Reference) tolerance(gaps []float64) func(i int) tensor.Tolerance {
	return func(i int) tensor.Tolerance {
		allowed := Tolerance(r.Want[i], gaps[i])
		if r.Graph.TF32 { // two operands with 11 bits, whose errors do not cancel where a sum has one term
			allowed.Abs *= 1 << (23 - 10 - 4)
		}
		return allowed
	}
}

// CompareExactly compares results of operations that round nothing, such as sums of small integers.
// With rounded, the results themselves may differ by a few units in the last place of their type.
func (r *Reference) CompareExactly(got map[string]*tensor.Tensor, rounded bool) error {
	return r.compare(got, func(i int) tensor.Tolerance {
		if rounded {
			return Tolerance(r.Want[i], 0)
		}
		return tensor.Tolerance{}
	})
}

func (r *Reference) compare(got map[string]*tensor.Tensor, allowed func(i int) tensor.Tolerance) error {
	var errs []error
	for i, o := range r.Graph.Outputs[:len(r.Want)] {
		x := got[o.Name]
		if x == nil {
			errs = append(errs, fmt.Errorf("output %s is missing", o.Name))
			continue
		}
		diff, err := tensor.Compare(x, r.Want[i], allowed(i))
		if err != nil || !diff.OK() {
			errs = append(errs, fmt.Errorf("output %s: %v %w", o.Name, diff, err))
		}
	}
	return errors.Join(errs...)
}

// largestGap is what rounding every operation does to the worst finite element.
func largestGap(exact, strict *interp.Tensor) float64 {
	most := 0.0
	for i := range exact.F {
		if d := math.Abs(exact.F[i] - strict.F[i]); d <= math.MaxFloat64 {
			most = max(most, d)
		}
	}
	return most
}

// Tolerance is a few roundings of the type, of the element or of its neighbours, and of the
// program's own operations: a device's functions are good to 2 units in the last place, four times
// the half that one rounding costs. Integers and truths have none.
func Tolerance(want *tensor.Tensor, gap float64) tensor.Tolerance {
	if !want.DType.IsFloat() {
		return tensor.Tolerance{}
	}
	sum := 0.0
	for _, v := range want.Floats() {
		if v-v == 0 {
			sum += v * v
		}
	}
	relative := 4*want.DType.Info().Epsilon + 1e-5
	return tensor.Tolerance{Rel: relative, Abs: 4*gap + relative*math.Sqrt(sum/float64(max(want.Len(), 1)))}
}
