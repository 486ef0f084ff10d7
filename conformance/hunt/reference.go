// Package hunt looks for programs whose results are wrong. It draws programs
// (conformance/gen), runs them on engines, compares the results with the interpreter's, and
// shortens what it finds.
//
// What an engine may answer is sampled: besides the interpreter's result there are some of its
// Sampled mode, each with other roundings, other orders of sums and other errors of approximate
// functions, within what the language allows. Where samples agree to the last bit, an engine
// must too; where they are apart, it may be a few times as far away.
package hunt

import (
	"errors"
	"fmt"
	"math"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp"
	"github.com/fusec/fusec/runtime/tensor"
)

// A Reference is what a graph gives for its inputs.
type Reference struct {
	Graph  *ir.Graph
	Inputs []*interp.Tensor
	Want   []*interp.Tensor
	Fault  *ir.IndexError // of a strict graph: what every engine must report instead

	samples [][]*interp.Tensor
}

// NewReference evaluates a graph.
func NewReference(g *ir.Graph, inputs []*interp.Tensor) (*Reference, error) {
	opts := interp.Options{MaxBytes: 1 << 28}
	if g.Numerics == ir.Strict {
		opts.Mode = interp.Strict
	}
	r := &Reference{Graph: g, Inputs: inputs}
	var err error
	if r.Want, err = interp.Run(g, inputs, opts); errors.As(err, &r.Fault) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	return r, r.sample(2)
}

// sample adds runs until there are so many.
func (r *Reference) sample(runs int) error {
	for n := len(r.samples); n < runs; n++ {
		s, err := interp.Run(r.Graph, r.Inputs, r.sampled(n))
		if errors.As(err, new(*ir.IndexError)) {
			continue // an index that depends on roundings
		}
		if err != nil {
			return err
		}
		r.samples = append(r.samples, s)
	}
	return nil
}

// sampled are the options of run n of Sampled mode.
func (r *Reference) sampled(n int) interp.Options {
	return interp.Options{Mode: interp.Sampled, Seed: uint64(n + 1), MaxBytes: 1 << 28}
}

// checkFault compares what a run ended with, an error or nil, with the fault of a strict graph. An index that depends on
// roundings may be another, or inside.
func (r *Reference) checkFault(err error) error {
	var fault *ir.IndexError
	if errors.As(err, &fault) && fault.Error() == r.Fault.Error() {
		return nil
	}
	if (err == nil || fault != nil) && !r.faultIsExact() {
		return nil
	}
	return fmt.Errorf("reports %v, not: %v", err, r.Fault)
}

// faultIsExact reports whether every sample ends with the fault.
func (r *Reference) faultIsExact() bool {
	for n := range mostSamples {
		var fault *ir.IndexError
		_, err := interp.Run(r.Graph, r.Inputs, r.sampled(n))
		if !errors.As(err, &fault) || fault.Error() != r.Fault.Error() {
			return false
		}
	}
	return true
}

// A Difference is the first element that no rounding explains.
type Difference struct {
	Output string
	At     []int
	Got    string
	Want   string
	Spread float64 // between samples; 0 where they agree
	Count  int     // elements that differ
	Of     int
}

// Error says where, and how far.
func (d *Difference) Error() string {
	return fmt.Sprintf("%s%v is %s, not %s (spread %.3g); %d of %d elements differ", d.Output, d.At, d.Got, d.Want, d.Spread, d.Count, d.Of)
}

// Check compares an engine's results; nil where they are right.
func (r *Reference) Check(got map[string]*tensor.Tensor) error {
	for i, o := range r.Graph.Outputs {
		x := got[o.Name]
		if x == nil {
			return fmt.Errorf("%s is missing", o.Name)
		}
		if err := r.checkOutput(i, x); err != nil {
			return err
		}
	}
	return nil
}

// checkOutput compares one result, with more and more samples while it differs: rare choices have their turn. It is right where
// every sample has an index outside that others have not.
func (r *Reference) checkOutput(i int, x *tensor.Tensor) error {
	err := r.output(i, x)
	for _, runs := range []int{r.many(1, mostSamples), mostSamples, r.many(30, 10*mostSamples)} {
		if err == nil {
			break
		}
		if err := r.sample(runs); err != nil {
			return err
		}
		if len(r.samples) == 0 {
			return nil
		}
		err = r.output(i, x)
	}
	return err
}

// mostSamples settle nearly any doubt. Ten times as many settle which parts of a sum overflow, which is one order of its terms in many,
// and whether a rounding on the way makes 0 of a divisor.
const mostSamples = 96

// many is as many samples as take about so many seconds, 8 at least.
func (r *Reference) many(seconds float64, most int) int {
	shapes := make([][]int, len(r.Inputs))
	for i, x := range r.Inputs {
		shapes[i] = x.Shape
	}
	sizes, err := ir.BindGraph(r.Graph, shapes)
	if err != nil {
		return 8
	}
	return int(min(max(seconds*5e7/(interp.Cost(r.Graph, sizes)+1), 8), float64(most)))
}

func (r *Reference) output(i int, x *tensor.Tensor) error {
	want, name := r.Want[i], r.Graph.Outputs[i].Name
	got := interp.FromBytes(x.DType, x.Shape, x.Data)
	if fmt.Sprint(got.Shape) != fmt.Sprint(want.Shape) || got.Type != want.Type {
		return fmt.Errorf("%s is %v%v, not %v%v", name, got.Type, got.Shape, want.Type, want.Shape)
	}
	var first *Difference
	for n := range want.Len() {
		spread, ok := r.element(i, n, got)
		if ok {
			continue
		}
		if first == nil {
			first = &Difference{Output: name, At: place(n, want.Shape), Got: text(got, n), Want: text(want, n),
				Spread: spread, Of: want.Len()}
		}
		first.Count++
	}
	if first == nil {
		return nil
	}
	return first
}

// element compares one element.
func (r *Reference) element(i, n int, got *interp.Tensor) (spread float64, ok bool) {
	want := r.Want[i]
	if want.F == nil {
		for _, s := range r.samples {
			if s[i].I[n] != want.I[n] {
				return 0, true // it depends on roundings
			}
		}
		return 0, got.I[n] == want.I[n]
	}
	w, g := want.F[n], got.F[n]
	for _, s := range r.samples {
		v := s[i].F[n]
		if class(v) != class(w) {
			return math.Inf(1), true
		}
		if v-v == 0 {
			spread = max(spread, math.Abs(v-w))
		}
	}
	if class(g) != class(w) {
		return spread, spread > 0 && mayOverflow(w, spread, want.Type) && math.IsInf(g, 0) && (g > 0) == (w > 0)
	}
	if w-w != 0 {
		return spread, true
	}
	epsilon := want.Type.Info().Epsilon
	allowed := 8 * spread
	if spread > 0 {
		allowed += 2 * epsilon * math.Abs(w)
	}
	return spread, math.Abs(g-w) <= allowed
}

// mayOverflow reports whether a number is so near to the largest of its type that an engine's roundings may make it infinite.
func mayOverflow(w, spread float64, t ir.DType) bool {
	return w-w == 0 && math.Abs(w)+8*spread >= t.Info().Max*(1-2*t.Info().Epsilon)
}

// class tells NaN, the infinities and numbers apart.
func class(v float64) int {
	switch {
	case v != v:
		return 1
	case math.IsInf(v, 1):
		return 2
	case math.IsInf(v, -1):
		return 3
	}
	return 0
}

func place(n int, shape []int) []int {
	out := make([]int, len(shape))
	for d := len(shape) - 1; d >= 0; d-- {
		out[d] = n % shape[d]
		n /= shape[d]
	}
	return out
}

func text(t *interp.Tensor, n int) string {
	if t.F != nil {
		return fmt.Sprint(t.F[n])
	}
	return fmt.Sprint(t.I[n])
}
