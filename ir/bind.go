package ir

import (
	"errors"
	"fmt"
	"strings"
)

// Declared is a tensor parameter as the program declares it.
type Declared struct {
	Name  string
	Shape []Size // over symbols by position
}

// DeclaredShapes compiles the shapes of values for Bind; symbols gives the
// positions.
func DeclaredShapes(values []*Value, symbols []string) []Declared {
	position := map[string]int{}
	for i, name := range symbols {
		position[name] = i
	}
	out := make([]Declared, len(values))
	for i, v := range values {
		out[i].Name = v.Name
		for _, extent := range v.Shape() {
			out[i].Shape = append(out[i].Shape, SizeOf(extent, position))
		}
	}
	return out
}

// Bind finds the symbol values, in the order of symbols, for which tensors of
// the declared shapes have the actual shapes. A dimension determines a symbol
// where it is the only unknown of a linear form a*K + b; plain symbols are read
// first. Errors name the tensor, what was expected, why, and what was found.
func Bind(symbols []string, declared []Declared, actual [][]int) ([]int64, error) {
	if len(actual) != len(declared) {
		return nil, fmt.Errorf("expected %d inputs, found %d", len(declared), len(actual))
	}
	b := newBinder(symbols)
	for i, d := range declared {
		if found := len(actual[i]); found != len(d.Shape) {
			if len(d.Shape) == 0 {
				return nil, fmt.Errorf("input %s: expected a scalar, which has no dimensions, found %d: shape %v", d.Name, found, actual[i])
			}
			return nil, fmt.Errorf("input %s: expected %d dimensions, found %d: shape %v", d.Name, len(d.Shape), found, actual[i])
		}
		for axis, size := range d.Shape {
			b.dims = append(b.dims, boundDim{d.Name, axis, size, int64(actual[i][axis])})
		}
	}
	return b.bind()
}

// BindGraph binds the symbols of g to the shapes of its inputs and checks the
// graph's constraints.
func BindGraph(g *Graph, actual [][]int) (map[string]int64, error) {
	symbols := make([]string, len(g.Symbols))
	position := map[string]int{}
	for i, s := range g.Symbols {
		symbols[i], position[s.Name] = s.Name, i
	}
	declared := DeclaredShapes(g.Inputs, symbols)
	values, err := Bind(symbols, declared, actual)
	if err != nil {
		return nil, err
	}
	out := map[string]int64{}
	for i, name := range symbols {
		out[name] = values[i]
	}
	for _, c := range g.Constraints {
		check := SizeCheckOf(c, position)
		if err := check.Check(symbols, declared, values); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// boundDim is one dimension to match.
type boundDim struct {
	input string
	axis  int
	size  Size
	found int64
}

type binder struct {
	symbols []string
	dims    []boundDim
	values  []int64
	source  []string // where each symbol was read; "" while unknown
}

func newBinder(symbols []string) *binder {
	return &binder{symbols: symbols, values: make([]int64, len(symbols)), source: make([]string, len(symbols))}
}

func (b *binder) bind() ([]int64, error) {
	for _, d := range b.dims {
		if len(d.size) == 1 && d.size[0].Op == OpSym {
			b.learn(int(d.size[0].Val), d.found, d)
		}
	}
	for progress := true; progress; {
		progress = false
		for _, d := range b.dims {
			learned, err := b.solve(d)
			if err != nil {
				return nil, err
			}
			progress = progress || learned
		}
	}
	for i, name := range b.symbols {
		if b.source[i] == "" {
			return nil, fmt.Errorf("no input determines the size %s", name)
		}
	}
	return b.values, b.check()
}

func (b *binder) learn(symbol int, v int64, d boundDim) {
	if b.source[symbol] == "" {
		b.values[symbol], b.source[symbol] = v, fmt.Sprintf("dimension %d of %s", d.axis, d.input)
	}
}

// solve reads the one unknown symbol of a linear dimension.
func (b *binder) solve(d boundDim) (learned bool, err error) {
	l, ok := b.linear(d.size)
	if !ok || l.symbol < 0 || l.scale == 0 {
		return false, nil
	}
	v := (d.found - l.offset) / l.scale
	if v*l.scale+l.offset != d.found || v < 0 {
		return false, fmt.Errorf("input %s: dimension %d should be %s for some %s, found %d",
			d.input, d.axis, b.text(d.size), b.symbols[l.symbol], d.found)
	}
	b.learn(l.symbol, v, d)
	return true, nil
}

func (b *binder) check() error {
	var errs []error
	for _, d := range b.dims {
		want, ok := d.size.Eval(b.values)
		if !ok {
			errs = append(errs, fmt.Errorf("input %s: dimension %d, %s, does not fit in 64 bits",
				d.input, d.axis, b.text(d.size)))
		} else if want != d.found {
			errs = append(errs, fmt.Errorf("input %s: dimension %d should be %s%s, found %d",
				d.input, d.axis, b.text(d.size), b.because(d.size, want), d.found))
		}
	}
	return errors.Join(errs...)
}

// because says where an expected size comes from.
func (b *binder) because(size Size, want int64) string {
	var parts []string
	for _, step := range size {
		if step.Op != OpSym {
			continue
		}
		part := b.symbols[step.Val] + " is " + fmt.Sprint(b.values[step.Val]) + " in " + b.source[step.Val]
		if len(parts) == 0 || parts[len(parts)-1] != part {
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf(" = %d (%s)", want, strings.Join(parts, ", "))
}

// linear is scale*symbol + offset; symbol is -1 for a constant.
type linear struct {
	symbol        int
	scale, offset int64
}

// linear analyses a size with the known symbols as constants.
func (b *binder) linear(size Size) (linear, bool) {
	var stack []linear
	for _, step := range size {
		switch {
		case step.Op == OpConst:
			stack = append(stack, linear{-1, 0, step.Val})
		case step.Op == OpSym && b.source[step.Val] != "":
			stack = append(stack, linear{-1, 0, b.values[step.Val]})
		case step.Op == OpSym:
			stack = append(stack, linear{int(step.Val), 1, 0})
		default:
			at := len(stack) - step.Op.Info().Arity
			next, ok := linearOp(step.Op, stack[at:])
			if !ok {
				return linear{}, false
			}
			stack = append(stack[:at], next)
		}
	}
	return stack[len(stack)-1], true
}

func linearOp(op Op, args []linear) (linear, bool) {
	constant := true
	var at [3]int64
	for i, a := range args {
		constant = constant && a.symbol < 0
		at[i] = a.offset
	}
	if constant {
		return linear{-1, 0, op.Info().Int(at[0], at[1], at[2])}, true
	}
	switch op {
	case OpNeg:
		return args[0].times(-1), true
	case OpAdd:
		return args[0].plus(args[1])
	case OpSub:
		return args[0].plus(args[1].times(-1))
	case OpMul:
		if args[0].symbol < 0 {
			return args[1].times(args[0].offset), true
		}
		return args[0].times(args[1].offset), args[1].symbol < 0
	}
	return linear{}, false
}

func (l linear) times(c int64) linear { return linear{l.symbol, l.scale * c, l.offset * c} }

func (l linear) plus(m linear) (linear, bool) {
	if l.symbol < 0 {
		l.symbol = m.symbol
	}
	fits := m.symbol < 0 || m.symbol == l.symbol
	return linear{l.symbol, l.scale + m.scale, l.offset + m.offset}, fits
}

// text prints a size in infix form, fully parenthesised below the top.
func (b *binder) text(size Size) string {
	var stack []string
	for _, step := range size {
		switch step.Op {
		case OpConst:
			stack = append(stack, fmt.Sprint(step.Val))
		case OpSym:
			stack = append(stack, b.symbols[step.Val])
		default:
			at := len(stack) - step.Op.Info().Arity
			stack = append(stack[:at], applyText(step.Op.Info(), stack[at:]))
		}
	}
	top := stack[len(stack)-1]
	if inner, ok := strings.CutPrefix(top, "("); ok {
		return strings.TrimSuffix(inner, ")")
	}
	return top
}

func applyText(op *OpInfo, args []string) string {
	if op.Infix != "" && len(args) == 2 {
		return "(" + args[0] + op.Infix + args[1] + ")"
	}
	return op.Name + "(" + strings.Join(args, ", ") + ")"
}
