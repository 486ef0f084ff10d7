package conformance

import (
	"fmt"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/tensor"
)

// Sizes gives the symbols of a graph sizes in turn, over again where there are fewer sizes than
// symbols. fit is false where the graph's constraints do not hold for them.
func Sizes(g *ir.Graph, set []int64) (sizes map[string]int64, fit bool) {
	sizes = map[string]int64{}
	for i, s := range g.Symbols {
		sizes[s.Name] = set[i%len(set)]
	}
	for _, c := range g.Constraints {
		if v, ok := ir.EvalSize(c.Cond, sizes); !ok || v == 0 {
			return nil, false
		}
	}
	return sizes, true
}

// Work is how many points the interpreter visits at sizes.
func Work(g *ir.Graph, sizes map[string]int64) int64 {
	total := int64(0)
	for _, v := range g.Values {
		points := int64(1)
		ranges := append([]*ir.Range(nil), v.Axes...)
		if v.Reduce != nil {
			ranges = append(ranges, v.Reduce.Ranges...)
		}
		for _, r := range ranges {
			extent, _ := ir.EvalSize(r.Extent, sizes)
			points *= min(extent, 1<<20)
		}
		total += points
	}
	return total
}

// Shape is the shape of a value at sizes; an error where one of its symbols has no size.
func Shape(v *ir.Value, sizes map[string]int64) ([]int, error) {
	shape := make([]int, len(v.Axes))
	for i, r := range v.Axes {
		extent, ok := ir.EvalSize(r.Extent, sizes)
		if !ok {
			return nil, fmt.Errorf("axis %d of %s has no size at %v", i, v.Name, sizes)
		}
		shape[i] = int(extent)
	}
	return shape, nil
}

// A Fill makes the tensor of an input; place is that of the input in its graph.
type Fill func(v *ir.Value, place int, shape []int) (*tensor.Tensor, error)

// Inputs gives every input of a graph random numbers that depend on its place alone: floats are
// standard normal, integers are 0 and 1, because they are indices more often than not.
func Inputs(g *ir.Graph, sizes map[string]int64) (runtime.Args, error) {
	return InputsBy(g, sizes, Random)
}

// InputsBy is Inputs with numbers by another rule.
func InputsBy(g *ir.Graph, sizes map[string]int64, fill Fill) (runtime.Args, error) {
	args := runtime.Args{}
	for i, v := range g.Inputs {
		shape, err := Shape(v, sizes)
		if err != nil {
			return nil, err
		}
		x, err := fill(v, i, shape)
		if err != nil {
			return nil, fmt.Errorf("input %s: %w", v.Name, err)
		}
		args[v.Name] = x
	}
	return args, nil
}

// Random is the Fill of Inputs.
func Random(v *ir.Value, place int, shape []int) (*tensor.Tensor, error) {
	if !v.Type.IsFloat() {
		return tensor.RandomInts(v.Type, uint64(place+1), 0, 2, shape...)
	}
	return tensor.Random(v.Type, uint64(place+1), shape...)
}

// Integers is a Fill of integers from lo to hi-1, of floats from -8 to 7 at most, as far as the
// type holds them: their sums of products are exact in any order.
func Integers(lo, hi int64) Fill {
	return func(v *ir.Value, place int, shape []int) (*tensor.Tensor, error) {
		from, to := lo, hi
		if v.Type.IsFloat() {
			from, to = max(lo, -8), min(hi, 8)
		} else if most := int64(v.Type.Info().Max); v.Type.Info().Signed {
			from, to = max(lo, -most-1), min(hi, most+1)
		} else {
			from, to = max(lo, 0), min(hi, most+1)
		}
		return tensor.RandomInts(v.Type, uint64(place+1), from, to, shape...)
	}
}
