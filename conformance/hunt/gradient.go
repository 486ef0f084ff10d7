package hunt

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/fusec/fusec/conformance/gen"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp"
	"github.com/fusec/fusec/parser"
)

// errNoGradient is of programs with nothing to differentiate.
var errNoGradient = errors.New("the program has no gradient")

// sourceOf is the text that is run: the program's, or its derivative's as it is printed.
func sourceOf(p *gen.Program) (string, error) {
	if !p.Gradient && !p.Tangent {
		return p.Source(), nil
	}
	g, err := derivativeOf(p, parser.GradOptions{Forward: p.Tangent})
	if err != nil {
		return "", err
	}
	return ir.Print(g), nil
}

func derivativeOf(p *gen.Program, ask parser.GradOptions) (*ir.Graph, error) {
	file, err := parser.Parse("g.fuse", []byte(p.Source()), parser.Options{})
	if err != nil {
		return nil, err
	}
	with, err := file.Grad("", ask)
	if err == nil {
		g := with.Graphs[len(with.Graphs)-1]
		return g, ir.Verify(g)
	}
	for _, nothing := range []string{"no result depends on", "has no float input"} {
		if strings.Contains(err.Error(), nothing) {
			return nil, errNoGradient
		}
	}
	return nil, err
}

// checkDelta compares a gradient with the one in which no equation of indices is solved.
func (r *Reference) checkDelta(p *gen.Program) error {
	if r.Fault != nil { // which is that of the values, before any of the adjoints
		return nil
	}
	g, err := derivativeOf(p, parser.GradOptions{Delta: true})
	if err != nil {
		return err
	}
	cost := map[string]int64{}
	for name, n := range p.Sizes {
		cost[name] = n
	}
	if p.Hostile || interp.Cost(g, cost) > 2e7 { // every adjoint is a sum over all points of its reader
		return nil
	}
	out, err := interp.Run(g, r.Inputs, interp.Options{Mode: modeOf(g), MaxBytes: 1 << 28})
	if errors.As(err, new(*ir.IndexError)) {
		return nil // of a read that the solved form leaves out, as nothing is added to an element that does not exist
	}
	if err != nil {
		return err
	}
	for i, x := range out {
		err := close(g.Outputs[i].Name, x, r.Want[i], true)
		if err != nil && !(allFinite(g, r.Inputs) && allFinite(r.Graph, r.Inputs)) { // either form may read what the other leaves out
			err = close(g.Outputs[i].Name, x, r.Want[i], false)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// allFinite reports whether all floats on the way to a graph's results are finite, and those that it names.
func allFinite(g *ir.Graph, inputs []*interp.Tensor) bool {
	finite := true
	for _, v := range g.Values {
		if v.IsInput() {
			continue
		}
		ir.Walk(v.Body, func(e *ir.Expr) bool {
			finite = finite && !(e.Op == ir.OpConst && e.Val-e.Val != 0)
			return finite
		})
	}
	if !finite {
		return false
	}
	every := *g
	every.Outputs, every.Checks = nil, nil
	ends := map[*ir.Value]bool{}
	for _, o := range g.Outputs {
		ends[o.Value] = true
	}
	for _, v := range g.Values {
		if v.Type.IsFloat() && !ends[v] {
			every.Outputs = append(every.Outputs, ir.Output{Name: v.Name, Value: v})
		}
	}
	values, err := interp.Run(&every, inputs, interp.Options{Mode: modeOf(g), MaxBytes: 1 << 28})
	if err != nil {
		return false
	}
	return !slices.ContainsFunc(values, func(x *interp.Tensor) bool {
		return slices.ContainsFunc(x.F, func(v float64) bool { return v-v != 0 })
	})
}

// close compares two ways of adding the same terms, a of the delta form: they differ by little beside the largest
// element, and are infinite together. NaN are not compared where a number on the way is not finite: the delta form
// adds the terms of what nothing reads, and the solved form products with what is outside, as 0 times what may be
// infinite. So may a be NaN where b is 0 for want of terms.
func close(name string, a, b *interp.Tensor, finite bool) error {
	largest := 0.0
	for _, v := range b.F {
		if v-v == 0 {
			largest = max(largest, math.Abs(v))
		}
	}
	allowed := 1e-9 * max(largest, 1)
	if eps := b.Type.Info().Epsilon; b.Type.Size() < 8 {
		allowed = 64 * eps * max(largest, 1)
	}
	for i, v := range b.F {
		w := a.F[i]
		if (v != v || w != w) && (!finite || v != v && w != w || v == 0) {
			continue
		}
		if v != w && !(math.Abs(v-w) <= allowed) {
			return fmt.Errorf("%s at %d is %v, not %v", name, i, w, v)
		}
	}
	return nil
}
