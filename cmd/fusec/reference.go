package main

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp"
	"github.com/fusec/fusec/runtime"
)

// What the interpreter may be asked for. Most of the time goes into the run whose roundings are drawn: on a server's core, an operation
// took 1 to 2 ns in sums of products without it, and 35 to 40 ns with it.
const (
	wholeBudget = 5e7 // operations to compute everything

	secondsAnOperation = 40e-9 // in all runs
	plainSeconds       = 3e-9  // in the plain ones
	sampleSeconds      = 20    // that the sampled elements of all outputs may take: costs are estimates
)

// checking says how to check a run.
type checking struct {
	seed uint64 // of the elements that are chosen
	all  bool   // every element, whatever it takes
}

// references finds out what the outputs should be: all of them where that is cheap,
// else some elements of each; nil where even one element costs too much, unless the
// results are a GPU's: then those of the embedded engine stand in.
func (a *app) references(p *fusec.Program, r *result, how checking) ([]*reference, error) {
	g, args := asRun(p.Graph(), r), r.args
	inputs := interpInputs(args.inputs)
	cost := interp.Cost(g, args.sizes)
	if how.all && cost > wholeBudget {
		a.ui.notef("computing every element in the interpreter: about %s", roughTime(cost*secondsAnOperation))
	}
	if how.all || cost <= wholeBudget {
		return wholeReferences(g, inputs, args.sizes)
	}
	refs := make([]*reference, len(g.Outputs))
	random := rand.New(rand.NewPCG(how.seed, 0))
	unreached, sampled := false, &sampling{graph: g, inputs: inputs}
	end := time.Now().Add(sampleSeconds * time.Second)
	for i := range g.Outputs {
		points, cost := samplePoints(g, i, args.sizes, r.outputs[i].Shape, random)
		if points == nil {
			unreached = true
			continue
		}
		var err error
		until := time.Now().Add(time.Until(end) / time.Duration(len(g.Outputs)-i))
		sampled.over = func() bool { return time.Now().After(until) }
		how := roundings()
		if cost > oneBudget {
			how = how[:plainRuns]
		}
		if refs[i], err = sampled.reference(i, points, how); err != nil {
			return nil, err
		}
		unreached = unreached || refs[i] == nil
	}
	if unreached && r.kind == runtime.CUDA {
		return a.standIn(p, r, refs)
	}
	return refs, nil
}

// asRun is the graph with the roundings that the device of a run may do: only GPUs multiply in tf32.
func asRun(g *ir.Graph, r *result) *ir.Graph {
	if !g.TF32 || r.kind == runtime.CUDA {
		return g
	}
	inF32 := *g
	inF32.TF32 = false
	return &inF32
}

func wholeReferences(g *ir.Graph, inputs []*interp.Tensor, sizes map[string]int64) ([]*reference, error) {
	var runs [][]*interp.Tensor
	for _, how := range roundings() {
		run, err := interp.Run(g, inputs, how)
		if err != nil {
			return nil, err
		}
		runs = append(runs, run)
	}
	refs := make([]*reference, len(runs[0]))
	for i := range refs {
		refs[i] = &reference{name: interpreterName, tf32: g.TF32}
		if sampleCost(g, i, mostDoubtful, sizes) <= oneBudget {
			refs[i].resample = resampler(g, inputs, i)
		}
		for n := range runs {
			refs[i].add(n, numbers(runs[n][i]))
		}
	}
	return refs, nil
}

const interpreterName = "the interpreter in f64"

// plainRuns is how many of the roundings are plain.
const plainRuns = 2

// roundings is how a reference is computed: exactly, with every operation rounded, and with some of the roundings that
// engines may do.
func roundings() []interp.Options {
	return []interp.Options{{Mode: interp.Exact}, {Mode: interp.Strict}, {Mode: interp.Sampled, Seed: 1}}
}

// add takes the results of one of the roundings.
func (r *reference) add(run int, values []float64) {
	switch run {
	case 0:
		r.exact = values
	case 1:
		r.strict = values
	default:
		r.sampled = append(r.sampled, values)
	}
}

func numbers(x *interp.Tensor) []float64 {
	if x.F != nil || len(x.I) == 0 {
		return x.F
	}
	out := make([]float64, len(x.I))
	for i, v := range x.I {
		out[i] = float64(v)
	}
	return out
}

// sampling computes chosen elements of outputs one by one, with all roundings, and what they share once.
type sampling struct {
	graph  *ir.Graph
	inputs []*interp.Tensor
	runs   [plainRuns + 1]*interp.Sampler // by the numbers of roundings; nil before the first element
	over   func() bool                    // whether the time is over; what is not computed then is left out
}

// reference computes elements of an output, with so many of the roundings, until the time is over; nil where it is over before the first.
// The plain runs are first. Where the one whose roundings are drawn does not end in time it is left out, but for tf32, of which it alone tells.
func (s *sampling) reference(output int, at [][]int, how []interp.Options) (*reference, error) {
	ref := &reference{name: interpreterName, tf32: s.graph.TF32, points: at, chosen: len(at), plain: true}
	columns, err := s.columns(output, at, 0, how[:plainRuns])
	if err != nil {
		return nil, err
	}
	ref.points = at[:len(columns[0])]
	if len(how) > plainRuns && len(ref.points) > 0 {
		drawn, err := s.columns(output, ref.points, plainRuns, how[plainRuns:])
		if err != nil {
			return nil, err
		}
		if n := len(drawn[0]); n == len(ref.points) || s.graph.TF32 {
			ref.plain, ref.points, ref.resample = false, at[:n], resampler(s.graph, s.inputs, output)
			columns = append(columns, drawn...)
		}
	}
	if len(at) > 0 && len(ref.points) == 0 {
		return nil, nil
	}
	for n, values := range columns {
		ref.add(n, values[:len(ref.points)])
	}
	return ref, nil
}

// columns computes elements of an output with roundings, the first of which is run number first, until the time is over.
func (s *sampling) columns(output int, at [][]int, first int, how []interp.Options) ([][]float64, error) {
	columns := make([][]float64, len(how))
	for _, index := range at {
		row, err := s.element(interp.Point{Output: output, Index: index}, first, how)
		if errors.Is(err, interp.ErrStopped) {
			clear(s.runs[first : first+len(how)]) // which have stopped
			break
		}
		if err != nil {
			return nil, err
		}
		for n, v := range row {
			columns[n] = append(columns[n], v)
		}
	}
	return columns, nil
}

// element is one element of an output with each of the roundings, the first of which is run number first.
func (s *sampling) element(p interp.Point, first int, roundings []interp.Options) (row []float64, err error) {
	for i, how := range roundings {
		if s.runs[first+i] == nil {
			how.Stop, how.MaxBytes = func() bool { return s.over() }, samplerBytes
			run, err := interp.NewSampler(s.graph, s.inputs, how)
			if err != nil {
				return nil, err
			}
			s.runs[first+i] = run
		}
		v, err := s.runs[first+i].At(p)
		if err != nil {
			return nil, err
		}
		row = append(row, scalarOf(v, s.graph.Outputs[p.Output].Value.Type))
	}
	return row, nil
}

// samplerBytes is how much each of the samplers may remember.
const samplerBytes = 2 << 30

// scalarOf is an element as an f64.
func scalarOf(v interp.Scalar, t ir.DType) float64 {
	if t.IsFloat() {
		return v.F
	}
	return float64(v.I)
}

// resampler computes chosen elements of an output.
func resampler(g *ir.Graph, inputs []*interp.Tensor, output int) func([][]int, interp.Options) ([]float64, error) {
	return func(at [][]int, how interp.Options) ([]float64, error) {
		list := make([]interp.Point, len(at))
		for i := range at {
			list[i] = interp.Point{Output: output, Index: at[i]}
		}
		found, err := interp.Sample(g, inputs, list, how)
		if err != nil {
			return nil, err
		}
		values := make([]float64, len(found))
		for i, v := range found {
			values[i] = scalarOf(v, g.Outputs[output].Value.Type)
		}
		return values, nil
	}
}

// standIn fills in what is missing from the embedded engine's results.
func (a *app) standIn(p *fusec.Program, r *result, refs []*reference) ([]*reference, error) {
	outputs, err := a.engineReference(p, r)
	if err != nil {
		return nil, err
	}
	for i, o := range p.Graph().Outputs {
		if refs[i] == nil {
			refs[i] = &reference{name: "the CPU engine", exact: outputs[o.Name].Floats()}
		}
	}
	return refs, nil
}
