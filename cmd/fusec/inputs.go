package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/tensor"
)

// unknownSize stands for a symbol that nothing gives a size.
const unknownSize = 1024

// inputSpec says where a graph's inputs come from.
type inputSpec struct {
	files map[string]string // .npy by input
	sizes map[string]int64  // of symbols, as the user gave them
	seed  uint64
}

// arguments are a graph's inputs, in its order, and the sizes they imply.
type arguments struct {
	inputs []*tensor.Tensor
	sizes  map[string]int64
}

// arguments reads the inputs that files are given for and makes the others up. The
// same seed gives the same numbers for the same sizes.
func (s inputSpec) arguments(g *ir.Graph) (arguments, error) {
	out := arguments{inputs: make([]*tensor.Tensor, len(g.Inputs))}
	if err := checkNames("--in", s.files, inputNames(g)); err != nil {
		return out, err
	}
	for i, v := range g.Inputs {
		path, given := s.files[v.Name]
		if !given {
			continue
		}
		x, err := tensor.ReadNPYFile(path, v.Type)
		if err != nil {
			return out, fmt.Errorf("input %s: expected %s: %w", v.Name, v.Type, plainPathError(err))
		}
		out.inputs[i] = x
	}
	sizes := s.chooseSizes(g, out.inputs)
	if err := s.fill(g, out.inputs, sizes); err != nil {
		return out, err
	}
	var err error
	out.sizes, err = bindInputs(g, out.inputs)
	if err != nil {
		return out, err
	}
	for _, name := range sortedNames(s.sizes) {
		if out.sizes[name] != s.sizes[name] {
			return out, fmt.Errorf("--size %s=%d: the inputs have %s=%d", name, s.sizes[name], name, out.sizes[name])
		}
	}
	return out, nil
}

// checkNames refuses files for names that the graph does not have.
func checkNames(flag string, files map[string]string, known []string) error {
	for _, name := range sortedNames(files) {
		if !slices.Contains(known, name) {
			return fmt.Errorf("%s %s=%s: the graph has no %s, it has %s", flag, name, files[name], name, strings.Join(known, ", "))
		}
	}
	return nil
}

func inputNames(g *ir.Graph) []string {
	var out []string
	for _, v := range g.Inputs {
		out = append(out, v.Name)
	}
	return out
}

func outputNames(g *ir.Graph) []string {
	var out []string
	for _, o := range g.Outputs {
		out = append(out, o.Name)
	}
	return out
}

// chooseSizes settles every symbol: what the files have, else what the user asked
// for, else the @bench default.
func (s inputSpec) chooseSizes(g *ir.Graph, given []*tensor.Tensor) map[string]int64 {
	out := map[string]int64{}
	for _, sym := range g.Symbols {
		out[sym.Name] = unknownSize
		if sym.Default > 0 {
			out[sym.Name] = sym.Default
		}
		if v, ok := s.sizes[sym.Name]; ok {
			out[sym.Name] = v
		}
	}
	for i, x := range given {
		if x == nil || len(x.Shape) != len(g.Inputs[i].Axes) {
			continue
		}
		for d, extent := range g.Inputs[i].Shape() {
			if extent.Op == ir.OpSym {
				out[extent.Name] = int64(x.Shape[d])
			}
		}
	}
	return out
}

// fill makes up the inputs that are missing: normal floats, small integers, and
// where the graph indexes with an input, integers inside what they index.
func (s inputSpec) fill(g *ir.Graph, inputs []*tensor.Tensor, sizes map[string]int64) error {
	bounds := indexBounds(g, sizes)
	for i, v := range g.Inputs {
		if inputs[i] != nil {
			continue
		}
		shape, err := shapeOf(v, sizes)
		if err != nil {
			return err
		}
		seed := s.seed + uint64(i)*0x9e3779b97f4a7c15 // so that no two inputs are alike
		if bound, indexes := bounds[v]; indexes {
			inputs[i], err = tensor.RandomInts(v.Type, seed, 0, max(1, bound), shape...)
		} else {
			inputs[i], err = tensor.Random(v.Type, seed, shape...)
		}
		if err != nil {
			return fmt.Errorf("input %s: %w", v.Name, err)
		}
	}
	return nil
}

func shapeOf(v *ir.Value, sizes map[string]int64) ([]int, error) {
	shape := make([]int, len(v.Axes))
	for d, extent := range v.Shape() {
		n, ok := ir.EvalSize(extent, sizes)
		if !ok || n < 0 || int64(int(n)) != n {
			return nil, fmt.Errorf("%s: dimension %d, %s, is no size at %s", v.Name, d, extent, sizesText(sizes))
		}
		shape[d] = int(n)
	}
	return shape, nil
}

// bindInputs finds the symbols from the inputs' shapes and checks all constraints.
func bindInputs(g *ir.Graph, inputs []*tensor.Tensor) (map[string]int64, error) {
	shapes := make([][]int, len(inputs))
	for i, x := range inputs {
		shapes[i] = x.Shape
	}
	return ir.BindGraph(g, shapes)
}

// indexBounds finds the inputs whose elements are used as indices, and the smallest
// extent among the axes they index.
func indexBounds(g *ir.Graph, sizes map[string]int64) map[*ir.Value]int64 {
	bounds := map[*ir.Value]int64{}
	for _, v := range g.Values {
		for _, load := range v.Loads() {
			for d, index := range load.Args {
				extent, ok := ir.EvalSize(load.From.Shape()[d], sizes)
				if !ok {
					continue
				}
				for in := range integerInputs(index) {
					if old, known := bounds[in]; !known || extent < old {
						bounds[in] = extent
					}
				}
			}
		}
	}
	return bounds
}

// integerInputs are the inputs that an index depends on, through integer values.
func integerInputs(e *ir.Expr) map[*ir.Value]bool {
	found, seen := map[*ir.Value]bool{}, map[*ir.Value]bool{}
	var visit func(loads []*ir.Expr)
	visit = func(loads []*ir.Expr) {
		for _, l := range loads {
			v := l.From
			if seen[v] || !v.Type.IsInt() {
				continue
			}
			seen[v] = true
			if v.IsInput() {
				found[v] = true
			}
			visit(v.Loads())
		}
	}
	visit(ir.Loads(e))
	return found
}
