package main

import (
	"fmt"
	"math"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/tensor"
)

// verify compares the outputs of a run with a reference and prints how each fared.
// It fails where an element lies outside the tolerance.
func (a *app) verify(p *fusec.Program, r *result, seed uint64) error {
	g := p.Graph()
	refs, err := a.references(p, r, seed)
	if err != nil {
		return fmt.Errorf("checking %s: %w", g.Name, err)
	}
	failed := false
	a.ui.printf("\n")
	for i, o := range g.Outputs {
		if refs[i] == nil {
			a.ui.printf("%s %s: not checked: the interpreter would take too long at these sizes\n",
				a.ui.style(cyan, "check"), o.Name)
			continue
		}
		c := refs[i].compare(r.outputs[i], reductionLength(g, r.args.sizes))
		if c.bad == 0 {
			a.ui.printf("%s %s: %s within %.2g of %s, largest error %.2g\n", a.ui.style(green, "check"), o.Name,
				count(refs[i].len(), "element"), c.tolerance, refs[i].name, c.worst)
			continue
		}
		failed = true
		a.ui.errorf("output %s%v: expected %v (by %s), found %v: more than %.2g apart; so are %d of %d elements",
			o.Name, c.index, c.want, refs[i].name, c.got, c.tolerance, c.bad, refs[i].len())
	}
	if failed {
		return errFailed
	}
	return nil
}

// reference holds what elements of one output should be.
type reference struct {
	name   string
	points [][]int   // nil: all elements, in order
	exact  []float64 // computed without rounding; of integers, exactly
	strict []float64 // with every operation rounded; nil where not known
}

func (r *reference) len() int { return len(r.exact) }

// comparison is the outcome for one output. The first bad element is kept.
type comparison struct {
	bad              int
	index            []int
	want, got        float64
	tolerance, worst float64
}

// compare measures got. A float may be off by some roundings of its own type and of
// the type sums are kept in, which grow with the root of their length, relative to
// it and to the size of its neighbours; and by roundingGap times what the program's own
// roundings do. Integers must be what they are in either arithmetic.
func (r *reference) compare(got *tensor.Tensor, length float64) comparison {
	relative := relativeTolerance(got.DType, length)
	absolute := relative*rootMeanSquare(r.exact) + roundingGap*largestGap(r.exact, r.strict)
	c := comparison{tolerance: absolute}
	if !got.DType.IsFloat() {
		absolute, relative, c.tolerance = 0, 0, 0
	}
	values := got.Floats()
	for i, want := range r.exact {
		at := i
		if r.points != nil {
			at = got.Offset(r.points[i]...)
		}
		found := values[at]
		gap := distance(found, want)
		ok := gap == 0 || !math.IsInf(gap, 1) && gap <= absolute+relative*math.Abs(want)
		if !ok && r.strict != nil && distance(found, r.strict[i]) == 0 {
			ok, gap = true, 0
		}
		c.worst = max(c.worst, gap)
		if ok {
			continue
		}
		if c.bad == 0 {
			c.index, c.want, c.got = got.Index(at), want, found
		}
		c.bad++
	}
	return c
}

// roundingGap: a device's functions are good to 2 units in the last place, four
// times the half that one rounding costs.
const roundingGap = 4

// distance is 0 between equal values, NaN and infinities included.
func distance(a, b float64) float64 {
	if a == b || a != a && b != b {
		return 0
	}
	if d := math.Abs(a - b); d == d {
		return d
	}
	return math.Inf(1)
}

func relativeTolerance(t ir.DType, length float64) float64 {
	own, compute := rounding(t), rounding(t.Info().Compute)
	return 2*own + 32*compute + 4*compute*math.Sqrt(length)
}

// rounding is half the distance from 1 to the next number of a float type.
func rounding(t ir.DType) float64 { return math.Ldexp(1, -t.Info().Mantissa-1) }

func rootMeanSquare(values []float64) float64 {
	sum, n := 0.0, 0
	for _, v := range values {
		if v-v == 0 {
			sum, n = sum+v*v, n+1
		}
	}
	return math.Sqrt(sum / float64(max(n, 1)))
}

// largestGap is the largest finite difference.
func largestGap(exact, strict []float64) float64 {
	most := 0.0
	for i := range strict {
		if d := distance(exact[i], strict[i]); !math.IsInf(d, 1) {
			most = max(most, d)
		}
	}
	return most
}

// reductionLength is the number of terms of the longest reduction.
func reductionLength(g *ir.Graph, sizes map[string]int64) float64 {
	most := 1.0
	for _, v := range g.Values {
		if v.Reduce != nil {
			most = max(most, points(v.Reduce.Ranges, sizes))
		}
	}
	return most
}

func points(ranges []*ir.Range, sizes map[string]int64) float64 {
	n := 1.0
	for _, r := range ranges {
		if extent, ok := ir.EvalSize(r.Extent, sizes); ok {
			n *= float64(extent)
		}
	}
	return n
}

// engineReference computes the outputs on the embedded engine, for a GPU's results
// that the interpreter cannot reach.
func (a *app) engineReference(p *fusec.Program, r *result) (map[string]*tensor.Tensor, error) {
	d, err := runtime.Open("cpu", runtime.Options{})
	if err != nil {
		return nil, err
	}
	defer d.Close()
	f, err := p.Load(a.ctx, d)
	if err != nil {
		return nil, err
	}
	call := runtime.Args{}
	for i, v := range p.Graph().Inputs {
		call[v.Name] = r.args.inputs[i]
	}
	return f.Call(a.ctx, call)
}

func interpInputs(inputs []*tensor.Tensor) []*interp.Tensor {
	out := make([]*interp.Tensor, len(inputs))
	for i, x := range inputs {
		out[i] = interp.FromBytes(x.DType, x.Shape, x.Data)
	}
	return out
}
