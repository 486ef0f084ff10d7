package simtest

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/internal/fakecuda"
	"github.com/fusec/fusec/runtime/internal/ptxsim"
)

// A unit is a unit of a program. It says what the arguments of its launches are, and so which
// memory they may touch. If the unit is not known, a launch may touch all allocated memory, in
// which the tensors of a run are side by side.
type unit struct {
	program *ir.Program
	index   int
}

// A tensor is an argument and its memory.
type tensor struct {
	name string
	fakecuda.Allocation
}

// tensors are the arguments of a launch with these parameters. ok is false if their sizes do
// not follow from the parameters.
func (u unit) tensors(e *ptxsim.Entry, params []byte) (out []tensor, ok bool) {
	for _, l := range u.program.Launches {
		for _, v := range l.Variants {
			if v.Unit != u.index || len(v.Args) != len(e.Params) {
				continue
			}
			own, known := u.tensorsOf(v.Args, e, params)
			if !known {
				return nil, false
			}
			out, ok = larger(out, own), true
		}
	}
	return out, ok
}

// larger joins the tensors of two launches of one unit, because it is not known which of them
// runs.
func larger(a, b []tensor) []tensor {
	for i := range a {
		b[i].Bytes = max(a[i].Bytes, b[i].Bytes)
	}
	return b
}

// tensorsOf is tensors for one list of arguments.
func (u unit) tensorsOf(args []ir.LaunchArg, e *ptxsim.Entry, params []byte) (out []tensor, ok bool) {
	symbols := map[int64]int64{} // by their place in the program
	for i, a := range args {
		if a.Kind == ir.ArgSize {
			symbols[int64(a.Index)] = int64(binary.LittleEndian.Uint64(params[e.Params[i].Offset:]))
		}
	}
	for i, a := range args {
		if a.Kind == ir.ArgSize || a.Kind == ir.ArgFactor {
			continue
		}
		t := tensor{name: e.Params[i].Name}
		if t.Address, ok = u.address(a, symbols, params[e.Params[i].Offset:]); ok {
			t.Bytes, ok = u.bytes(a, symbols)
		}
		if !ok {
			return nil, false
		}
		out = append(out, t)
	}
	return out, true
}

// address is where the tensor of a parameter begins.
func (u unit) address(a ir.LaunchArg, symbols map[int64]int64, param []byte) (uint64, bool) {
	if a.Kind != ir.ArgTensorMap {
		return binary.LittleEndian.Uint64(param), true
	}
	m, err := ptxsim.DecodeTensorMap(param)
	if err != nil {
		return 0, false
	}
	view := u.program.TensorMaps[a.Index]
	if len(view.Offset) == 0 {
		return m.Address, true
	}
	elements, ok := eval(view.Offset, symbols)
	return m.Address - uint64(elements*int64(view.DType.Size())), ok
}

// bytes is the size of an argument's tensor.
func (u unit) bytes(a ir.LaunchArg, symbols map[int64]int64) (bytes uint64, known bool) {
	p, n := u.program, int64(1)
	var factors []ir.Size
	switch a.Kind {
	case ir.ArgParam:
		n, factors = int64(p.Params[a.Index].DType.Size()), p.Params[a.Index].Shape
	case ir.ArgTemp:
		factors = []ir.Size{p.Temps[a.Index].Bytes}
	case ir.ArgCounters:
		n, factors = 4, []ir.Size{p.Counters[a.Index]}
	case ir.ArgCheck:
		n = ir.CheckBytes / 2
	case ir.ArgTensorMap:
		return u.bytes(p.TensorMaps[a.Index].Of, symbols)
	}
	for _, f := range factors {
		v, ok := eval(f, symbols)
		if !ok {
			return 0, false
		}
		n *= v
	}
	return uint64(n), true
}

// eval computes a size; false where it takes a symbol that is not known.
func eval(s ir.Size, symbols map[int64]int64) (int64, bool) {
	var known []int64
	for _, step := range s {
		if step.Op != ir.OpSym {
			continue
		}
		v, ok := symbols[step.Val]
		if !ok {
			return 0, false
		}
		known = append(known, make([]int64, max(0, int(step.Val)+1-len(known)))...)
		known[step.Val] = v
	}
	return s.Eval(known)
}

// within is the tensors' memory; an error where it is not allocated.
func within(tensors []tensor, allocated []fakecuda.Allocation) ([]fakecuda.Allocation, error) {
	var out []fakecuda.Allocation
	for _, t := range tensors {
		holds := func(a fakecuda.Allocation) bool { return holds(a, t.Address, int(t.Bytes)) }
		if t.Bytes > 0 && !slices.ContainsFunc(allocated, holds) {
			return nil, fmt.Errorf("%s, %d bytes at %#x, is not allocated", t.name, t.Bytes, t.Address)
		}
		out = append(out, t.Allocation)
	}
	return out, nil
}

// list names tensors and their places, for errors.
func list(tensors []tensor) string {
	var b strings.Builder
	for _, t := range tensors {
		fmt.Fprintf(&b, "\n  %s: %d bytes at %#x", t.name, t.Bytes, t.Address)
	}
	return b.String()
}
