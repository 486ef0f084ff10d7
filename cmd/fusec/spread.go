package main

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/tensor"
)

// How the random inputs of a graph should lie, so that its values stay near 1: sums of k
// products of numbers near 1 are near the root of k, and a few of them one behind the other
// overflow. The answer comes from the graph alone. Of each value a few numbers are drawn as
// if its operands were independent; where a sum of products is large, the later of the inputs
// that it multiplies, which is the weight, is made smaller. An input whose negative numbers
// give NaN, as below a square root, is made positive.

const (
	drawnNumbers = 32  // of each value
	drawnTerms   = 32  // of each reduction
	nearOne      = 1.5 // a root mean square up to which a value is left as it is
)

// spreads chooses how the inputs of a graph lie. Those in given are left as they are.
func spreads(g *ir.Graph, sizes map[string]int64, given func(input int) bool) map[string]tensor.Spread {
	d := &drawing{sizes: sizes, spread: map[*ir.Value]tensor.Spread{}, free: map[*ir.Value]int{}}
	for i, v := range g.Inputs {
		if v.Type.IsFloat() && !given(i) {
			d.free[v] = i
			d.spread[v] = tensor.Spread{Scale: 1}
		}
	}
	for range len(g.Inputs) + 1 { // again from the start where an input was made positive
		if d.run(g) {
			break
		}
	}
	out := map[string]tensor.Spread{}
	for v, s := range d.spread {
		out[v.Name] = s
	}
	return out
}

// drawing holds numbers drawn from each value.
type drawing struct {
	sizes  map[string]int64
	free   map[*ir.Value]int // position of the float inputs that may lie in any way
	spread map[*ir.Value]tensor.Spread
	rng    *rand.Rand
	drawn  map[*ir.Value][]float64
}

// run draws from every value in order. It is false where an input has become positive.
func (d *drawing) run(g *ir.Graph) bool {
	d.rng, d.drawn = rand.New(rand.NewPCG(1, 2)), map[*ir.Value][]float64{}
	for _, v := range g.Values {
		if v.IsInput() {
			d.drawn[v] = d.input(v)
			continue
		}
		d.drawn[v] = d.value(v)
		if d.makePositive(v) {
			return false
		}
		if scale := d.tooLarge(v); scale > 0 && !d.scaledDown(g, v) {
			if w := d.weight(v); w != nil {
				s := d.spread[w]
				s.Scale /= scale
				d.spread[w] = s
				d.times(d.drawn[v], 1/scale)
				d.times(d.drawn[w], 1/scale)
			}
		}
	}
	return true
}

func (d *drawing) times(list []float64, factor float64) {
	for i := range list {
		list[i] *= factor
	}
}

func (d *drawing) input(v *ir.Value) []float64 {
	s, out := d.spread[v], make([]float64, drawnNumbers)
	for i := range out {
		switch {
		case v.Type == ir.Bool:
			out[i] = float64(d.rng.IntN(2))
		case v.Type.IsInt():
			out[i] = float64(d.rng.IntN(8))
		default:
			out[i] = d.rng.NormFloat64()
			if s.Scale > 0 {
				out[i] *= s.Scale
			}
			if s.Positive {
				out[i] = math.Abs(out[i])
			}
		}
	}
	return out
}

// value draws from a value that is computed.
func (d *drawing) value(v *ir.Value) []float64 {
	if v.Reduce != nil && v.Reduce.Op == ir.Sum && v.Reduce.Rank == nil {
		return d.sum(v)
	}
	out := make([]float64, drawnNumbers)
	for i := range out {
		p := d.point(v)
		if v.Reduce == nil || v.Reduce.Rank != nil {
			out[i] = p.eval(v.Body)
		} else {
			out[i] = p.fold(v)
		}
	}
	return out
}

// sum draws from a sum. Of a long one the terms' mean and deviation decide; a mean that the
// few terms drawn do not tell from 0 is 0.
func (d *drawing) sum(v *ir.Value) []float64 {
	n, out := points(v.Reduce.Ranges, d.sizes), make([]float64, drawnNumbers)
	var all statistics
	for i := range out {
		p := d.point(v)
		for range int(min(n, drawnTerms)) {
			term, ok := p.term(v)
			if !ok {
				term = 0
			}
			out[i] += term
			all.add(term)
		}
	}
	if n <= drawnTerms || all.finite == 0 || all.nan > 0 {
		return out
	}
	deviation := math.Sqrt(all.squares / float64(all.finite))
	mean := all.mean
	if math.Abs(mean) < 4*deviation/math.Sqrt(float64(all.finite)) {
		mean = 0
	}
	var drawn float64
	for i := range out {
		out[i] = d.rng.NormFloat64()
		drawn += out[i] * out[i]
	}
	even := math.Sqrt(drawnNumbers / drawn) // chance would add up over the layers of a network
	for i := range out {
		out[i] = n*mean + math.Sqrt(n)*deviation*even*out[i]
	}
	return out
}

// makePositive makes an input positive that v reads, where this keeps v from being NaN.
func (d *drawing) makePositive(v *ir.Value) bool {
	isNaN := func(x float64) bool { return x != x }
	if !slices.ContainsFunc(d.drawn[v], isNaN) {
		return false
	}
	for _, load := range v.Loads() {
		in := source(load.From)
		if _, free := d.free[in]; !free || d.spread[in].Positive || slices.ContainsFunc(d.drawn[load.From], isNaN) {
			continue
		}
		before := slices.Clone(d.drawn[load.From])
		for i, x := range before {
			d.drawn[load.From][i] = math.Abs(x)
		}
		helped := !slices.ContainsFunc(d.value(v), isNaN)
		d.drawn[load.From] = before
		if helped {
			s := d.spread[in]
			s.Positive = true
			d.spread[in] = s
			return true
		}
	}
	return false
}

// source is the input that a value repeats, moved or cast, or the value itself.
func source(v *ir.Value) *ir.Value {
	for v.Body != nil && v.Reduce == nil {
		e := v.Body
		for e.Op == ir.OpCast {
			e = e.Args[0]
		}
		if e.Op != ir.OpLoad {
			return v
		}
		v = e.From
	}
	return v
}

// tooLarge is the root mean square of a sum of products that is above 1; 0 of all else.
func (d *drawing) tooLarge(v *ir.Value) float64 {
	if v.Reduce == nil || v.Reduce.Op != ir.Sum || !v.Type.IsFloat() {
		return 0
	}
	if size := rootMeanSquare(d.drawn[v]); size > nearOne && !math.IsInf(size, 0) {
		return size
	}
	return 0
}

// weight is the input to make smaller: among those that the sum multiplies with something
// else that varies along it, the last. nil where there is none.
func (d *drawing) weight(v *ir.Value) *ir.Value {
	var best *ir.Value
	factors := 0
	for _, load := range v.Loads() {
		free := ir.FreeRanges(load)
		if !slices.ContainsFunc(v.Reduce.Ranges, func(r *ir.Range) bool { return free[r] }) {
			continue
		}
		factors++
		in := source(load.From)
		at, ok := d.free[in]
		if ok && d.spread[in].Scale == 1 && (best == nil || at > d.free[best]) {
			best = in
		}
	}
	if factors < 2 {
		return nil
	}
	return best
}

// scaledDown reports whether the only reader of v divides it to what is near 1, as an
// attention does with its scores.
func (d *drawing) scaledDown(g *ir.Graph, v *ir.Value) bool {
	var reader *ir.Value
	for _, r := range g.Values {
		for _, load := range r.Loads() {
			if load.From == v && r != reader {
				if reader != nil {
					return false
				}
				reader = r
			}
		}
	}
	if reader == nil || reader.Reduce != nil {
		return false
	}
	linear := true
	ir.Walk(reader.Body, func(e *ir.Expr) bool {
		switch e.Op {
		case ir.OpMul, ir.OpDiv, ir.OpNeg, ir.OpCast, ir.OpConst, ir.OpSym, ir.OpSqrt, ir.OpRsqrt, ir.OpRecip:
			return true
		case ir.OpLoad:
			linear = linear && e.From == v
			return false
		}
		linear = false
		return false
	})
	return linear && rootMeanSquare(d.value(reader)) <= nearOne
}
