package main

import (
	"math/rand/v2"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp"
	"github.com/fusec/fusec/runtime"
)

// What the interpreter may be asked for, in operations of 10 to 20 ns.
const (
	wholeBudget = 5e7 // to compute everything

	secondsAnOperation = 15e-9
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
		a.ui.notef("computing every element in the interpreter: about %s", roughTime(cost*secondsAnOperation*roundingRuns))
	}
	if how.all || cost <= wholeBudget {
		return wholeReferences(g, inputs, args.sizes)
	}
	refs := make([]*reference, len(g.Outputs))
	random := rand.New(rand.NewPCG(how.seed, 0))
	unreached := false
	for i := range g.Outputs {
		points := samplePoints(g, i, args.sizes, r.outputs[i].Shape, random)
		if points == nil {
			unreached = true
			continue
		}
		var err error
		if refs[i], err = sampleReference(g, inputs, i, points); err != nil {
			return nil, err
		}
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
	var runs [roundingRuns][]*interp.Tensor
	for i, how := range roundings() {
		var err error
		if runs[i], err = interp.Run(g, inputs, how); err != nil {
			return nil, err
		}
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

// roundingRuns is how often a reference is computed: exactly, with every operation rounded, and
// with some of the roundings that engines may do.
const roundingRuns = 3

func roundings() [roundingRuns]interp.Options {
	return [roundingRuns]interp.Options{{Mode: interp.Exact}, {Mode: interp.Strict},
		{Mode: interp.Sampled, Seed: 1}}
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

func sampleReference(g *ir.Graph, inputs []*interp.Tensor, output int, at [][]int) (*reference, error) {
	ref := &reference{name: interpreterName, tf32: g.TF32, points: at, resample: resampler(g, inputs, output)}
	for n, how := range roundings() {
		values, err := ref.resample(at, how)
		if err != nil {
			return nil, err
		}
		ref.add(n, values)
	}
	return ref, nil
}

// resampler computes chosen elements of an output.
func resampler(g *ir.Graph, inputs []*interp.Tensor, output int) func([][]int, interp.Options) ([]float64, error) {
	float := g.Outputs[output].Value.Type.IsFloat()
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
			if values[i] = v.F; !float {
				values[i] = float64(v.I)
			}
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
