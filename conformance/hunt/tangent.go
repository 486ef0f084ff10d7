package hunt

import (
	"fmt"
	"math"

	"github.com/fusec/fusec/conformance/gen"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp"
	"github.com/fusec/fusec/parser"
)

// checkProduct compares the tangents J v of a program with its gradients J' u, both in f64: the
// products u . (J v) and (J' u) . v are equal, whatever u and v are. r holds the tangents' graph.
func (r *Reference) checkProduct(p *gen.Program) error {
	gradient, err := derivativeOf(p, parser.GradOptions{})
	if err != nil || p.Hostile || r.Fault != nil {
		return err
	}
	along, err := derivativeOf(p, parser.GradOptions{Forward: true})
	if err != nil {
		return err
	}
	own := len(p.Inputs)
	drawn, err := gen.Inputs(gradient, p.Sizes, p.Seed+1, false)
	if err != nil {
		return err
	}
	weights, directions := drawn[own:], r.Inputs[own:]
	tangents, err := inF64(along, r.Inputs)
	if err != nil {
		return err
	}
	gradients, err := inF64(gradient, append(append([]*interp.Tensor(nil), r.Inputs[:own]...), weights...))
	if err != nil {
		return err
	}
	if len(weights) == 0 { // of one result, a scalar
		one := interp.New(ir.F64)
		one.F[0] = 1
		weights = []*interp.Tensor{one}
	}
	left, size := product(weights, tangents)
	right, other := product(directions, gradients)
	size += other + 1e-3*(magnitude(weights)+magnitude(directions)) // a derivative of 0 may be a difference of others
	if !(math.Abs(left-right) <= 1e-9*size) && !math.IsNaN(size) && !math.IsInf(size, 0) {
		return fmt.Errorf("u . (J v) is %v, (J' u) . v is %v", left, right)
	}
	return nil
}

// inF64 runs a graph without any rounding to narrower types.
func inF64(g *ir.Graph, inputs []*interp.Tensor) ([]*interp.Tensor, error) {
	for _, o := range g.Outputs {
		o.Value.Type = ir.F64
	}
	return interp.Run(g, inputs, interp.Options{MaxBytes: 1 << 28})
}

// product is the sum of the products of the elements of two lists of tensors, and of their sizes.
func product(a, b []*interp.Tensor) (sum, size float64) {
	for i := range a {
		for k, x := range a[i].F {
			sum += x * b[i].F[k]
			size += math.Abs(x * b[i].F[k])
		}
	}
	return sum, size
}

// magnitude is the sum of the sizes of all elements.
func magnitude(tensors []*interp.Tensor) (sum float64) {
	for _, t := range tensors {
		for _, x := range t.F {
			sum += math.Abs(x)
		}
	}
	return sum
}
