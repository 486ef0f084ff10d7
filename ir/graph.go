package ir

import (
	"fmt"
	"slices"

	"github.com/fusec/fusec/ir/diag"
)

// Origin is where a value comes from, in the user's words.
type Origin struct {
	Span diag.Span
	Call string // the library functions it was expanded from, outermost first: "gelu", "layer_norm/mean"
}

// Value is a tensor as a function of its indices.
//
//	pointwise   v[Axes] = Body
//	reduction   v[Axes] = Reduce.Op over Reduce.Ranges where Reduce.Where of Body
//	order       the same with Reduce.Rank
//	input       v[Axes], given by the caller
//
// Body reads other values through OpLoad and holds no OpReduce: this is the
// normal form that Graph.Define establishes.
type Value struct {
	ID     int
	Name   string
	Type   DType
	Axes   []*Range
	Body   *Expr      // nil for an input
	Reduce *Reduction // nil for pointwise values
	Origin Origin
	Again  bool // its only reader computes it again instead of reading it from memory; it is never merged with equal values
	Parts  bool // holds parts of numbers of f32: sums of their products keep the precision of f32
}

// IsInput reports whether the caller provides v.
func (v *Value) IsInput() bool { return v.Body == nil }

// Shape returns the extents of v, outermost first.
func (v *Value) Shape() []*Expr {
	out := make([]*Expr, len(v.Axes))
	for i, r := range v.Axes {
		out[i] = r.Extent
	}
	return out
}

// Numerics says how roundings inside a kernel are treated.
type Numerics uint8

// The numerics modes.
const (
	Fast   Numerics = iota // intermediates stay f32 and storage rounds once
	Strict                 // each operation rounds to its type, as written
)

// String returns the annotation's name.
func (n Numerics) String() string {
	if n == Strict {
		return "strict"
	}
	return "fast"
}

// Output is a named result.
type Output struct {
	Name  string
	Value *Value
	Span  diag.Span
	// State names the input whose next value this is, with the same type and shape; "" for a
	// plain result.
	State string
}

// Symbol is a size bound when the graph is called.
type Symbol struct {
	Name    string
	Default int64 // from @bench, 0 where not given
	Span    diag.Span
}

// Constraint is a condition on the symbols that the program relies on, checked
// when they are bound: Cond is a bool expression over OpSym and constants.
type Constraint struct {
	Cond *Expr
	Why  string // "group_norm needs C divisible by 32"
	Span diag.Span
}

// Graph is a program: values in an order in which each is defined before use.
type Graph struct {
	Name        string
	Span        diag.Span
	Symbols     []Symbol
	Values      []*Value // inputs included
	Inputs      []*Value
	Outputs     []Output
	Constraints []Constraint
	Checks      []Check // of indices; each has two Outputs, after the others

	OneKernel bool // refusing to fuse into one kernel is an error
	Numerics  Numerics
	TF32      bool // f32 products may use tf32 tensor cores

	// For is a condition on the sizes for which this graph was rewritten. At other sizes the graph is also
	// right, but not as fast as it could be. It is nil if no rewrite depends on sizes.
	For *Expr

	nextRange, nextValue int
	names                map[string]int
	kept                 map[any]any // by key, what Kept returns
}

// NewGraph returns an empty graph.
func NewGraph(name string) *Graph { return &Graph{Name: name, names: map[string]int{}} }

// NewRange returns a fresh range of the given extent.
func (g *Graph) NewRange(name string, extent *Expr) *Range {
	g.nextRange++
	return &Range{ID: g.nextRange, Name: name, Extent: extent}
}

// NewAxes returns fresh ranges for a shape, named i, j, k, ...
func (g *Graph) NewAxes(shape []*Expr) []*Range {
	const names = "ijklmnpq"
	out := make([]*Range, len(shape))
	for d, extent := range shape {
		name := fmt.Sprintf("i%d", d)
		if d < len(names) {
			name = names[d : d+1]
		}
		out[d] = g.NewRange(name, extent)
	}
	return out
}

// Indices returns the expressions of the given ranges.
func Indices(ranges []*Range) []*Expr {
	out := make([]*Expr, len(ranges))
	for i, r := range ranges {
		out[i] = r.At()
	}
	return out
}

// Symbol returns the symbol with the given name, or nil.
func (g *Graph) Symbol(name string) *Symbol {
	for i := range g.Symbols {
		if g.Symbols[i].Name == name {
			return &g.Symbols[i]
		}
	}
	return nil
}

// Input adds a parameter.
func (g *Graph) Input(name string, t DType, shape []*Expr, span diag.Span) *Value {
	v := g.add(&Value{Name: name, Type: t, Axes: g.NewAxes(shape), Origin: Origin{Span: span}})
	g.Inputs = append(g.Inputs, v)
	return v
}

// Define adds the value name[axes] = body and returns it. Reductions inside body
// become values of their own over the ranges they depend on, so that every value
// is in normal form; a body that is one reduction becomes a reduction value.
func (g *Graph) Define(name string, axes []*Range, body *Expr, origin Origin) *Value {
	if body.Op == OpReduce {
		return g.defineReduction(name, axes, body, origin)
	}
	return g.add(&Value{Name: name, Type: body.Type, Axes: axes, Body: g.hoist(name, axes, body, origin), Origin: origin})
}

// Output names v as a result.
func (g *Graph) Output(name string, v *Value, span diag.Span) {
	g.Outputs = append(g.Outputs, Output{Name: name, Value: v, Span: span})
}

// HasState reports whether some input of g is state.
func (g *Graph) HasState() bool {
	return slices.ContainsFunc(g.Outputs, func(o Output) bool { return o.State != "" })
}

// InputNamed returns the input with the given name, or nil.
func (g *Graph) InputNamed(name string) *Value {
	for _, v := range g.Inputs {
		if v.Name == name {
			return v
		}
	}
	return nil
}

func (g *Graph) add(v *Value) *Value {
	g.Values = append(g.Values, g.Adopt(v))
	return v
}

// unique keeps printed graphs unambiguous: a second t becomes t_2.
func (g *Graph) unique(name string) string {
	if name == "" {
		name = "t"
	}
	for {
		g.names[name]++
		if g.names[name] == 1 {
			return name
		}
		name = fmt.Sprintf("%s_%d", name, g.names[name])
	}
}

func (g *Graph) defineReduction(name string, axes []*Range, e *Expr, origin Origin) *Value {
	inner := append(append([]*Range(nil), axes...), e.Reduce.Ranges...)
	r := *e.Reduce
	if r.Where != nil {
		r.Where = g.hoist(name, inner, r.Where, origin)
	}
	if r.Rank != nil {
		r.Rank = g.hoist(name, axes, r.Rank, origin)
	}
	body := g.hoist(name, inner, e.Args[0], origin)
	return g.add(&Value{Name: name, Type: e.Type, Axes: axes, Body: body, Reduce: &r, Origin: origin})
}

// hoist replaces every reduction in body by a load of a new value whose axes
// are those of the ranges in scope that the reduction depends on.
func (g *Graph) hoist(name string, scope []*Range, body *Expr, origin Origin) *Expr {
	return Replace(body, func(e *Expr) *Expr {
		if e.Op != OpReduce {
			return e
		}
		free := FreeRanges(e)
		var outer, axes []*Range
		subst := map[*Range]*Expr{}
		for _, r := range scope {
			if free[r] {
				fresh := g.NewRange(r.Name, r.Extent)
				outer, axes = append(outer, r), append(axes, fresh)
				subst[r] = fresh.At()
			}
		}
		if e.Span != (diag.Span{}) {
			origin.Span = e.Span
		}
		v := g.defineReduction(name+"_"+e.Reduce.Op.String(), axes, Substitute(e, subst), origin)
		return Load(v, Indices(outer), nil).At(e.Span)
	})
}

// Adopt gives a value made by a pass its identity and a unique name. The caller
// puts it into Values, after what it reads.
func (g *Graph) Adopt(v *Value) *Value {
	g.nextValue++
	v.ID = g.nextValue
	v.Name = g.unique(v.Name)
	return v
}

// Rename gives v another name, made unique among the graph's.
func (g *Graph) Rename(v *Value, name string) {
	if v.Name != name {
		v.Name = g.unique(name)
	}
}

// Facts is what the graph's constraints say about its symbols.
func (g *Graph) Facts() Facts {
	f := Facts{Divisible: map[string]int64{}}
	for _, c := range g.Constraints {
		if name, n, ok := divisibility(c.Cond); ok {
			f.Divisible[name] = multipleOfBoth(f.Divisible[name], n)
		}
		if e := atLeast0(c.Cond); e != nil {
			f.AtLeast0 = append(f.AtLeast0, e)
		}
	}
	return f
}

// multipleOfBoth is the least number that a and b divide, where a may be 0 for nothing known; the larger
// of the two where that number is too large.
func multipleOfBoth(a, b int64) int64 {
	if a == 0 {
		return b
	}
	if n := a / gcd(a, b); mulFits(n, b) {
		return n * b
	}
	return max(a, b)
}

// divisibility recognises the conditions symbol % n == 0 and symbol == symbol / n * n.
func divisibility(cond *Expr) (name string, n int64, ok bool) {
	if cond.Op != OpEq {
		return "", 0, false
	}
	a, b := cond.Args[0], cond.Args[1]
	switch {
	case a.Op == OpMod && b.IsConst(0):
		return symbolBy(a)
	case b.Op == OpMul && b.Args[0].Op == OpFloorDiv && Equal(a, b.Args[0].Args[0]) && Equal(b.Args[0].Args[1], b.Args[1]):
		return symbolBy(b.Args[0])
	}
	return "", 0, false
}

// atLeast0 is the expression that an inequality of integers says is not negative: b - a for a <= b;
// nil for other conditions.
func atLeast0(cond *Expr) *Expr {
	var low, high *Expr
	switch cond.Op {
	case OpLe, OpLt:
		low, high = cond.Args[0], cond.Args[1]
	case OpGe, OpGt:
		low, high = cond.Args[1], cond.Args[0]
	default:
		return nil
	}
	if low.Type != Index {
		return nil
	}
	e := high
	if !low.IsConst(0) {
		e = Apply(OpSub, high, low)
	}
	if cond.Op == OpLt || cond.Op == OpGt {
		e = Apply(OpSub, e, IntConst(1))
	}
	return e
}

// symbolBy matches symbol / n or symbol % n.
func symbolBy(e *Expr) (name string, n int64, ok bool) {
	if e.Args[0].Op != OpSym || e.Args[1].Op != OpConst || e.Args[1].Int < 1 {
		return "", 0, false
	}
	return e.Args[0].Name, e.Args[1].Int, true
}
