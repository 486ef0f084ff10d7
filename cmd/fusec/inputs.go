package main

import (
	"fmt"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/tensor"
)

// unknownSize stands for a symbol that nothing gives a size.
const unknownSize = 1024

// inputSpec says where a graph's inputs come from.
type inputSpec struct {
	given []string         // of --in: files and numbers
	sizes map[string]int64 // of symbols, as the user gave them
	seed  uint64
	plain bool // random floats are standard normal, whatever the graph does with them
}

// signature is what a graph takes, and the graph itself where it is needed: a
// program that comes from the cache has not been parsed.
type signature struct {
	symbols  []string
	defaults map[string]int64
	inputs   []ir.Param
	outputs  []ir.Param
	graph    func() (*ir.Graph, error)
}

func signatureOf(f *runtime.Function, graph func() (*ir.Graph, error)) signature {
	s := signature{symbols: f.Symbols(), defaults: f.Defaults(), graph: graph}
	for _, p := range f.Params() {
		if p.Output {
			s.outputs = append(s.outputs, p.Param)
		} else {
			s.inputs = append(s.inputs, p.Param)
		}
	}
	return s
}

// arguments are a graph's inputs, in its order, and the sizes they imply.
type arguments struct {
	inputs []*tensor.Tensor
	random []randomInput
	sizes  map[string]int64
}

// arguments reads the inputs that are given and makes the others up. The
// same seed gives the same numbers for the same sizes.
func (s inputSpec) arguments(sig signature) (arguments, error) {
	var out arguments
	var err error
	if out.inputs, err = readInputs(s.given, sig.inputs); err != nil {
		return out, err
	}
	if err := s.fill(sig, &out, s.chooseSizes(sig, out.inputs)); err != nil {
		return out, err
	}
	if out.sizes, err = bindInputs(sig, out.inputs); err != nil {
		return out, err
	}
	for _, name := range sortedNames(s.sizes) {
		if out.sizes[name] != s.sizes[name] {
			return out, fmt.Errorf("--size %s=%d: the inputs have %s=%d", name, s.sizes[name], name, out.sizes[name])
		}
	}
	return out, nil
}

func paramNames(params []ir.Param) []string {
	var out []string
	for _, p := range params {
		out = append(out, p.Name)
	}
	return out
}

// chooseSizes settles every symbol: what the files have, else what the user asked
// for, else the @bench default.
func (s inputSpec) chooseSizes(sig signature, given []*tensor.Tensor) map[string]int64 {
	out := map[string]int64{}
	for _, name := range sig.symbols {
		out[name] = unknownSize
		if v, ok := sig.defaults[name]; ok {
			out[name] = v
		}
		if v, ok := s.sizes[name]; ok {
			out[name] = v
		}
	}
	for i, x := range given {
		if x == nil || len(x.Shape) != len(sig.inputs[i].Shape) {
			continue
		}
		for d, size := range sig.inputs[i].Shape {
			if len(size) == 1 && size[0].Op == ir.OpSym {
				out[sig.symbols[size[0].Val]] = int64(x.Shape[d])
			}
		}
	}
	return out
}

// fill makes the inputs that no file was read for: those that a number is given for, and
// the others at random.
func (s inputSpec) fill(sig signature, args *arguments, sizes map[string]int64) error {
	named, _, err := givenInputs(s.given, sig.inputs)
	if err != nil {
		return err
	}
	made := maker{sig: sig, sizes: sizes, seed: s.seed}
	if !s.plain {
		made.spread = spreadsOf(sig, sizes, func(i int) bool {
			_, number := named[sig.inputs[i].Name]
			return number || args.inputs[i] != nil
		})
	}
	for i, p := range sig.inputs {
		if args.inputs[i] != nil {
			continue
		}
		shape, err := sig.shape(p, sizes)
		if err != nil {
			return err
		}
		if at, ok := named[p.Name]; ok {
			args.inputs[i], err = at.filled(p.DType, shape)
		} else {
			args.random = append(args.random, randomInput{p.Name, made.spread[p.Name]})
			args.inputs[i], err = made.random(i, shape)
		}
		if err != nil {
			return fmt.Errorf("input %s: %w", p.Name, err)
		}
	}
	return nil
}

// maker makes inputs up.
type maker struct {
	sig    signature
	sizes  map[string]int64
	seed   uint64
	bounds map[string]int64 // of inputs that the graph indexes with; nil until one is needed
	spread map[string]tensor.Spread
}

// randomInput is an input that was made up.
type randomInput struct {
	name   string
	spread tensor.Spread // of floats; empty if they are standard normal
}

// text names the input and its distribution.
func (r randomInput) text() string {
	switch {
	case r.spread.Scale != 0 && r.spread.Scale != 1 && r.spread.Positive:
		return fmt.Sprintf("%s (scaled by %.2g, positive)", r.name, r.spread.Scale)
	case r.spread.Scale != 0 && r.spread.Scale != 1:
		return fmt.Sprintf("%s (scaled by %.2g)", r.name, r.spread.Scale)
	case r.spread.Positive:
		return r.name + " (positive)"
	}
	return r.name
}

// spreadsOf chooses the distributions of the inputs that are made up. Without a graph, as for a bundle
// without its text, all are standard normal.
func spreadsOf(sig signature, sizes map[string]int64, given func(input int) bool) map[string]tensor.Spread {
	made := false
	for i, p := range sig.inputs {
		made = made || p.DType.IsFloat() && !given(i)
	}
	if !made {
		return nil
	}
	g, err := sig.graph()
	if err != nil {
		return nil
	}
	return spreads(g, sizes, given)
}

// random makes an input up: normal floats, small integers, and where the graph indexes
// with it, integers inside what they index.
func (m *maker) random(input int, shape []int) (*tensor.Tensor, error) {
	p := m.sig.inputs[input]
	if p.DType.IsInt() && m.bounds == nil {
		g, err := m.sig.graph()
		if err != nil {
			return nil, err
		}
		m.bounds = indexBounds(g, m.sizes)
	}
	seed := m.seed + uint64(input)*0x9e3779b97f4a7c15 // so that no two inputs are alike
	if bound, indexes := m.bounds[p.Name]; indexes {
		return tensor.RandomInts(p.DType, seed, 0, max(1, bound), shape...)
	}
	if s, ok := m.spread[p.Name]; ok {
		return tensor.RandomFloats(p.DType, seed, s, shape...)
	}
	return tensor.Random(p.DType, seed, shape...)
}

func (sig signature) shape(p ir.Param, sizes map[string]int64) ([]int, error) {
	values := make([]int64, len(sig.symbols))
	for i, name := range sig.symbols {
		values[i] = sizes[name]
	}
	shape := make([]int, len(p.Shape))
	for d, size := range p.Shape {
		n, ok := size.Eval(values)
		if !ok || n < 0 || int64(int(n)) != n {
			return nil, fmt.Errorf("input %s: dimension %d is no size at %s", p.Name, d, sizesText(sizes))
		}
		shape[d] = int(n)
	}
	return shape, nil
}

// bindInputs finds the symbols from the inputs' shapes.
func bindInputs(sig signature, inputs []*tensor.Tensor) (map[string]int64, error) {
	shapes, declared := make([][]int, len(inputs)), make([]ir.Declared, len(inputs))
	for i, x := range inputs {
		shapes[i], declared[i] = x.Shape, ir.Declared{Name: sig.inputs[i].Name, Shape: sig.inputs[i].Shape}
	}
	values, err := ir.Bind(sig.symbols, declared, shapes)
	if err != nil {
		return nil, err
	}
	out := map[string]int64{}
	for i, name := range sig.symbols {
		out[name] = values[i]
	}
	return out, nil
}

// indexBounds finds the inputs whose elements are used as indices, or compared with one,
// and the smallest extent among those of the axes.
func indexBounds(g *ir.Graph, sizes map[string]int64) map[string]int64 {
	bounds := map[string]int64{}
	note := func(index, size *ir.Expr) {
		extent, ok := ir.EvalSize(size, sizes)
		if !ok {
			return
		}
		for in := range integerInputs(index) {
			if old, known := bounds[in.Name]; !known || extent < old {
				bounds[in.Name] = extent
			}
		}
	}
	for _, v := range g.Values {
		for _, load := range v.Loads() {
			for d, index := range load.Args {
				note(index, load.From.Shape()[d])
			}
		}
		comparisons(v, func(index *ir.Expr, with *ir.Range) { note(index, with.Extent) })
	}
	return bounds
}

// comparisons finds what a value's definition asks to be equal to a range.
func comparisons(v *ir.Value, found func(index *ir.Expr, with *ir.Range)) {
	roots := []*ir.Expr{v.Body}
	if v.Reduce != nil {
		roots = append(roots, v.Reduce.Where)
	}
	for _, root := range roots {
		if root == nil {
			continue
		}
		ir.Walk(root, func(e *ir.Expr) bool {
			if e.Op == ir.OpEq {
				for i, side := range e.Args {
					for side.Op == ir.OpCast {
						side = side.Args[0]
					}
					if side.Op == ir.OpRange {
						found(e.Args[1-i], side.Range)
					}
				}
			}
			return true
		})
	}
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
