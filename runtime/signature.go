package runtime

import (
	"fmt"
	"math"
	"strings"

	"github.com/fusec/fusec/ir"
)

// signature is the inputs and outputs of a function.
type signature struct {
	name        string
	symbols     []string
	defaults    []int64
	params      []ir.Param // inputs, then outputs
	inputs      int
	states      []int         // of each parameter, the place of the input whose next value it is; -1 for none
	declared    []ir.Declared // the inputs
	constraints []ir.SizeCheck
}

func programSignature(p *ir.Program) signature {
	s := newSignature(p.Name, p.Symbols, p.Params, p.Constraints)
	s.defaults = p.Defaults
	return s
}

func newSignature(name string, symbols []string, params []ir.Param, checks []ir.SizeCheck) signature {
	s := signature{name: name, symbols: symbols, params: params, constraints: checks}
	for _, p := range params {
		if !p.Output {
			s.inputs++
			s.declared = append(s.declared, ir.Declared{Name: p.Name, Shape: p.Shape})
		}
	}
	at := map[string]int{}
	for i, p := range params[:s.inputs] {
		at[p.Name] = i
	}
	for _, p := range params {
		input, ok := at[p.State]
		if !ok || !p.Output {
			input = -1
		}
		s.states = append(s.states, input)
	}
	return s
}

func planSignature(p *ir.Plan) signature {
	position := map[string]int{}
	var symbols []string
	var defaults []int64
	for i, s := range p.Graph.Symbols {
		position[s.Name] = i
		symbols, defaults = append(symbols, s.Name), append(defaults, s.Default)
	}
	var params []ir.Param
	for _, b := range p.Buffers {
		if b.Kind == ir.TempBuffer || b.Kind == ir.CheckBuffer {
			continue
		}
		param := b.Param()
		for _, extent := range b.Shape {
			param.Shape = append(param.Shape, ir.SizeOf(extent, position))
		}
		params = append(params, param)
	}
	var checks []ir.SizeCheck
	for _, c := range p.Graph.Constraints {
		checks = append(checks, ir.SizeCheckOf(c, position))
	}
	s := newSignature(p.Graph.Name, symbols, params, checks)
	s.defaults = defaults
	return s
}

// binding is a function at known sizes. The shapes of the inputs decide it. It is
// immutable once made.
type binding struct {
	symbols []int64
	dims    [][]int // of every parameter
	bytes   []int64 // of every parameter
	work    any     // what the engine has made for it
	kernels int     // that a run launches, as far as the engine tells
	moved   int64   // bytes that they have to move
}

// bind finds the symbols for the shapes of the inputs and checks everything that depends on
// them.
func (s *signature) bind(shapes [][]int) (*binding, error) {
	symbols, err := ir.Bind(s.symbols, s.declared, shapes)
	if err != nil {
		return nil, fmt.Errorf("graph %s: %w", s.name, err)
	}
	return s.bindSymbols(symbols)
}

// bindSymbols makes the binding of symbol values.
func (s *signature) bindSymbols(symbols []int64) (*binding, error) {
	for _, c := range s.constraints {
		if err := c.Check(s.symbols, s.declared, symbols); err != nil {
			return nil, fmt.Errorf("graph %s: %w", s.name, err)
		}
	}
	b := &binding{symbols: symbols, dims: make([][]int, len(s.params)), bytes: make([]int64, len(s.params))}
	for i, p := range s.params {
		b.dims[i] = make([]int, len(p.Shape))
		for axis, size := range p.Shape {
			v, ok := size.Eval(symbols)
			if !ok || v < 0 || v > math.MaxInt {
				return nil, fmt.Errorf("graph %s: %s: dimension %d is %d: expected 0 or more, that fits in 64 bits; "+
					"found sizes %s", s.name, describe(&p), axis, v, s.sizes(symbols))
			}
			b.dims[i][axis] = int(v)
		}
		var err error
		if b.bytes[i], err = byteSize(p.DType, b.dims[i]); err != nil {
			return nil, fmt.Errorf("graph %s: %s: %w", s.name, describe(&p), err)
		}
	}
	return b, nil
}

// sizes spells symbol values.
func (s *signature) sizes(symbols []int64) string {
	var parts []string
	for i, name := range s.symbols {
		parts = append(parts, fmt.Sprintf("%s=%d", name, symbols[i]))
	}
	return strings.Join(parts, " ")
}

// describe names a parameter in messages.
// typeText is a parameter's type as the program declares it.
func (s *signature) typeText(p *ir.Param) string {
	var dims []string
	for _, size := range p.Shape {
		dims = append(dims, size.Text(s.symbols))
	}
	return fmt.Sprintf("%s[%s]", p.DType, strings.Join(dims, ", "))
}

func describe(p *ir.Param) string {
	if p.Output {
		return "output " + p.Name
	}
	return "input " + p.Name
}
