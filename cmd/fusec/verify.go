package main

import (
	"fmt"
	"math"
	"slices"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/tensor"
)

// verify compares the outputs of a run with a reference and prints how each fared. It fails
// where an element lies outside the tolerance, and where the comparison can tell nothing.
func (a *app) verify(p *fusec.Program, r *result, how checking) error {
	g := p.Graph()
	refs, err := a.references(p, r, how)
	if err != nil {
		return fmt.Errorf("checking %s: %w", g.Name, err)
	}
	failed, checked := false, 0
	a.ui.printf("\n")
	length := reductionLength(g, r.args.sizes)
	for i, o := range g.Outputs {
		if refs[i] == nil {
			a.ui.printf("%s %s: not checked: %s (--all lets it)\n", a.ui.style(cyan, "check"), o.Name, tooLong(sampleCost(g, i, 1, r.args.sizes)*plainSeconds))
			continue
		}
		checked++
		if err := refs[i].sampleDoubtful(r.outputs[i], length); err != nil {
			return fmt.Errorf("checking %s: %w", g.Name, err)
		}
		if !a.reportCheck(o.Name, r.outputs[i], refs[i], length) {
			failed = true
		}
	}
	if checked == 0 && len(g.Outputs) > 0 {
		a.ui.errorf("nothing was checked: choose smaller sizes, or --all")
		return errFailed
	}
	if failed {
		return errWrongResult
	}
	return nil
}

// tooLong says why nothing was computed of an output of which one element may take so many seconds.
func tooLong(seconds float64) string {
	if seconds <= sampleSeconds {
		return fmt.Sprintf("the %d seconds that a check takes were over before the interpreter had one element", sampleSeconds)
	}
	return fmt.Sprintf("the interpreter would take too long at these sizes, about %s for one element", roughTime(seconds))
}

// reportCheck compares one output, prints how it fared, and returns whether it is right.
func (a *app) reportCheck(name string, got *tensor.Tensor, ref *reference, length float64) bool {
	c := ref.compare(got, length)
	of := fmt.Sprintf("all %s", countOf(ref.len(), "element"))
	if ref.len() < got.Len() {
		of = fmt.Sprintf("%s of %s", thousands(ref.len()), countOf(got.Len(), "element"))
	}
	if ref.len() < ref.chosen {
		of += fmt.Sprintf(" (%d of %s, as time ended)", ref.len(), countOf(ref.chosen, "sample"))
	}
	switch {
	case c.bad > 0:
		a.ui.errorf("output %s%v: expected %v (by %s), found %v: %s; so are %s of %s", name, c.index, c.want, ref.name, c.got,
			c.offText(got.DType), thousands(c.bad), countOf(ref.len(), "element"))
	case c.undecided > ref.len()/mostUndecided:
		a.ui.errorf("output %s: the check cannot tell: %s of %s depend on rounding alone, by half of their size or more: "+
			"choose inputs that keep values near 1 (--in), or another --seed", name, thousands(c.undecided),
			countOf(ref.len(), "element"))
	case c.finite == 0 && ref.len() > 0:
		a.ui.errorf("output %s: the check cannot tell: no element of %s is a finite number: choose other inputs (--in)", name, of)
	default:
		a.ui.printf("%s %s: %s agree with %s%s\n", a.ui.style(green, "check"), name, of, ref.name, c.errorText(got.DType))
		if text := c.toleranceText(got.DType, length); text != "" {
			a.ui.printf("      %s\n", a.ui.style(faint, text))
		}
		if c.illConditioned > 0 {
			a.ui.printf("      %s\n", a.ui.style(yellow, c.illText()))
		}
		return true
	}
	if text := c.toleranceText(got.DType, length); text != "" {
		a.ui.notef("%s", text)
	}
	return false
}

// mostUndecided: a check where one in so many elements depends on rounding is none.
const mostUndecided = 10

// reference holds what elements of one output should be.
type reference struct {
	name    string
	points  [][]int     // nil: all elements, in order
	chosen  int         // how many points there were to be, where time ended before all were computed
	exact   []float64   // computed in f64 without rounding; of integers, exactly
	strict  []float64   // with every operation rounded, as unfused; nil where not known
	sampled [][]float64 // other results that roundings may give

	plain    bool                                                        // the run whose roundings are drawn took too long
	tf32     bool                                                        // some of these round the factors of products to tf32
	doubtful map[int]float64                                             // errors that further roundings make in elements found wrong
	resample func(points [][]int, how interp.Options) ([]float64, error) // computes elements again; nil where that costs too much
}

func (r *reference) len() int { return len(r.exact) }

// comparison is the outcome for one output. The first bad element is kept.
type comparison struct {
	bad       int
	badAt     []int // the first mostDoubtful of them, by their places in the reference
	undecided int   // elements that rounding decides, and that are not what f64 gives
	finite    int
	index     []int
	want, got float64
	off       float64 // of the first bad element, in units in the last place
	allowed   float64 // there, likewise

	nearest
	strict         float64 // the largest error of strict, in units in the last place
	known          bool    // strict is known
	tf32, plain    bool    // of the reference
	illConditioned int     // elements of which roundings allow more than a tenth
}

// nearest is the finite element of which the error is the largest part of what is allowed for it. Each element has a limit of its own, so
// that the largest error and the largest limit may be of two.
type nearest struct {
	part             float64 // of what is allowed
	worst, relative  float64 // its error, in units in the last place, and relative to the element and its neighbours
	tolerance        float64 // what is allowed, likewise relative
	roundings, drift float64 // what is allowed for roundings of the types, and for the operations', in units in the last place
	own              bool    // the latter is what roundings do to this element, which is more than they do to most
}

// illConditioned: a check that allows more than this part of an element because of the roundings of the operations says little of it.
const illConditioned = 0.1

// compare measures got against f64. A float may be off by some roundings of its own type and
// of the type sums are kept in, which grow with the root of their length, relative to it and
// to the size of its neighbours; and by roundingGap times what the roundings of the program's
// own operations do, to nine in ten of the elements or to this one. Integers must be what
// they are in either arithmetic.
func (r *reference) compare(got *tensor.Tensor, length float64) comparison {
	c := comparison{known: r.strict != nil, tf32: r.tf32, plain: r.plain, nearest: nearest{part: -1}}
	float := got.DType.IsFloat()
	relative, size := relativeTolerance(got.DType, length), rootMeanSquare(r.exact)
	gaps := r.gaps()
	most := roundingGap * quantile(gaps, 0.9)
	for i, want := range r.exact {
		found := r.element(got, i)
		gap := distance(found, want)
		scale, drift := math.Abs(want)+size, max(most, roundingGap*gaps[i])
		allowed := relative*scale + drift
		if !float {
			allowed = 0
		}
		if want-want == 0 {
			c.finite++
			unit, own := unitOf(got.DType, max(math.Abs(want), size)), max(math.Abs(want), size, math.SmallestNonzeroFloat64)
			if float && drift > illConditioned*own {
				c.illConditioned++
			}
			if part := partOf(gap, allowed); float && !math.IsInf(gap, 1) && part > c.part {
				c.nearest = nearest{part, gap / unit, gap / own, allowed / own, relative * scale / unit, drift / unit, drift > most}
			}
			if float && !math.IsInf(gap, 1) && c.known {
				c.strict = max(c.strict, finiteOrZero(distance(r.strict[i], want))/unit)
			}
		}
		if allowed > scale/2 && !(gap <= relative*scale) {
			c.undecided++
		}
		if gap == 0 || !math.IsInf(gap, 1) && gap <= allowed || r.isRounding(i, found) {
			continue
		}
		if c.bad == 0 {
			unit := unitOf(got.DType, max(math.Abs(want), size))
			c.index, c.want, c.got, c.off, c.allowed = r.index(got, i), want, found, gap/unit, allowed/unit
		}
		if c.bad++; c.bad <= mostDoubtful {
			c.badAt = append(c.badAt, i)
		}
	}
	return c
}

// partOf is how much of what is allowed an error takes.
func partOf(gap, allowed float64) float64 {
	if gap == 0 {
		return 0
	}
	return gap / allowed
}

func (r *reference) element(got *tensor.Tensor, i int) float64 { return got.At(r.index(got, i)...) }

func (r *reference) index(got *tensor.Tensor, i int) []int {
	if r.points != nil {
		return r.points[i]
	}
	return got.Index(i)
}

// gaps are, for each element, the largest finite error that roundings make.
func (r *reference) gaps() []float64 {
	out := make([]float64, len(r.exact))
	for _, other := range append([][]float64{r.strict}, r.sampled...) {
		for i := range other {
			out[i] = max(out[i], finiteOrZero(distance(r.exact[i], other[i])))
		}
	}
	for i := range out {
		if r.plain {
			out[i] *= drawnGap
		}
	}
	for i, gap := range r.doubtful {
		out[i] = max(out[i], gap)
	}
	return out
}

// drawnGap: what roundings do where they are drawn, up to a unit in the last place each, is about twice what half a unit does.
const drawnGap = 2

const (
	mostDoubtful      = 64 // with more elements outside the tolerance, a result is wrong
	doubtfulRoundings = 8
)

// sampleDoubtful computes elements that are outside the tolerance again, with other roundings of their
// operations. An element that cancels can be nearly exact in the few runs of a reference, by chance, and
// then says too little of what roundings do to it.
func (r *reference) sampleDoubtful(got *tensor.Tensor, length float64) error {
	if r.resample == nil || !got.DType.IsFloat() {
		return nil
	}
	c := r.compare(got, length)
	if c.bad == 0 || c.bad > mostDoubtful {
		return nil
	}
	points := make([][]int, len(c.badAt))
	for n, i := range c.badAt {
		points[n] = r.index(got, i)
	}
	r.doubtful = map[int]float64{}
	for seed := range uint64(doubtfulRoundings) {
		values, err := r.resample(points, interp.Options{Mode: interp.Sampled, Seed: 2 + seed})
		if err != nil {
			return err
		}
		for n, i := range c.badAt {
			r.doubtful[i] = max(r.doubtful[i], finiteOrZero(distance(r.exact[i], values[n])))
		}
	}
	return nil
}

// isRounding reports whether an element is what rounding every operation gives, or, where
// that is no finite number, what some roundings give.
func (r *reference) isRounding(i int, found float64) bool {
	if r.strict != nil && distance(found, r.strict[i]) == 0 {
		return true
	}
	for _, s := range r.sampled {
		if found-found != 0 && distance(found, s[i]) == 0 {
			return true
		}
	}
	return false
}

// roundingGap: a device's functions are good to 2 units in the last place, four
// times the half that one rounding costs.
const roundingGap = 4

// quantile is the value that a part of the list is not above.
func quantile(list []float64, part float64) float64 {
	if len(list) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(list))
	return sorted[min(int(part*float64(len(sorted))), len(sorted)-1)]
}

func finiteOrZero(x float64) float64 {
	if x-x != 0 {
		return 0
	}
	return x
}

// unitOf is the distance between neighbouring numbers of a type at x: a unit in the last place.
func unitOf(t ir.DType, x float64) float64 {
	if !t.IsFloat() || x == 0 || x-x != 0 {
		return 1
	}
	_, exponent := math.Frexp(x)
	return math.Ldexp(t.Info().Epsilon, exponent-1)
}

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
