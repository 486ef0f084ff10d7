package main

import (
	"math/rand/v2"
	"slices"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp"
	"github.com/fusec/fusec/runtime"
)

// What the interpreter may be asked for, in operations of 10 to 20 ns.
const (
	wholeBudget  = 5e7 // to compute everything
	sampleBudget = 6e7 // for the sampled elements of one output
	oneBudget    = 2e8 // for one element, where more are too many
	samples      = 256 // elements of one output, where the budget allows

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
	g, args := p.Graph(), r.args
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
		refs[i] = &reference{name: interpreterName}
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
	ref := &reference{name: interpreterName, points: at, resample: resampler(g, inputs, output)}
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

// samplePoints chooses elements of an output: its corners, and others at random, as
// many as the budget allows; nil where it allows none.
func samplePoints(g *ir.Graph, output int, sizes map[string]int64, shape []int, random *rand.Rand) [][]int {
	n := samples
	for n > 1 && sampleCost(g, output, n, sizes) > sampleBudget {
		n /= 2
	}
	if sampleCost(g, output, n, sizes) > oneBudget {
		return nil
	}
	for _, d := range shape {
		if d == 0 {
			return [][]int{}
		}
	}
	var out [][]int
	for i := range n {
		p := make([]int, len(shape))
		for d, extent := range shape {
			switch i {
			case 0:
			case 1:
				p[d] = extent - 1
			default:
				p[d] = random.IntN(extent)
			}
		}
		out = append(out, p)
	}
	return out
}

// sampleCost is about how many operations n elements of an output take: those of
// one element, n times. Backwards from it, of each value a box is needed: along
// each axis as many points as the loads of its readers visit.
func sampleCost(g *ir.Graph, output, n int, sizes map[string]int64) float64 {
	need := map[*ir.Value][]float64{}
	root := g.Outputs[output].Value
	need[root] = slices.Repeat([]float64{1}, len(root.Axes))
	total := 0.0
	for i := len(g.Values) - 1; i >= 0; i-- {
		v := g.Values[i]
		if v.IsInput() || need[v] == nil {
			continue
		}
		visits := visitedPoints(v, need[v], sizes)
		at := 1.0
		for _, count := range visits {
			at *= count
		}
		nodes := 0
		ir.Walk(v.Body, func(*ir.Expr) bool { nodes++; return true })
		total += at * float64(nodes)
		for _, l := range v.Loads() {
			need[l.From] = widen(need[l.From], l, visits, sizes)
		}
	}
	return total * float64(n)
}

// visitedPoints is how many points of each of its ranges a value visits, for a box of it.
func visitedPoints(v *ir.Value, box []float64, sizes map[string]int64) map[*ir.Range]float64 {
	out := map[*ir.Range]float64{}
	for d, r := range v.Axes {
		out[r] = box[d]
	}
	if v.Reduce != nil {
		for _, r := range v.Reduce.Ranges {
			out[r] = points([]*ir.Range{r}, sizes)
		}
	}
	return out
}

// widen grows a box until it holds what a load visits.
func widen(box []float64, load *ir.Expr, visits map[*ir.Range]float64, sizes map[string]int64) []float64 {
	if box == nil {
		box = make([]float64, len(load.Args))
	}
	for d, index := range load.Args {
		n := 1.0
		for r := range ir.FreeRanges(index) {
			n *= visits[r]
		}
		box[d] = max(box[d], min(n, points(load.From.Axes[d:d+1], sizes)))
	}
	return box
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
