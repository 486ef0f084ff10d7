package ir

import (
	"fmt"

	"github.com/fusec/fusec/ir/diag"
)

// Verify checks every invariant of a Graph and returns the first that does not
// hold, naming the value. A graph that fails is a bug of the stage that made it,
// never of the user's program.
//
//   - values come after what they read, with names and IDs of their own
//   - types follow from the op table, and conversions are explicit
//   - loads have one Index argument an axis and fills of the value's type
//   - every range in an expression is an axis of its value or bound by its reduction
//   - reductions stand only at the top of a value
//   - extents and constraints are over known symbols
//   - outputs are values of the graph, the last two a check its results
func Verify(g *Graph) error {
	v := &verifier{g: g, symbols: map[string]bool{}, defined: map[*Value]bool{}}
	for _, s := range g.Symbols {
		if v.symbols[s.Name] {
			return v.fail(nil, "symbol %s is listed twice", s.Name)
		}
		v.symbols[s.Name] = true
	}
	if err := v.values(); err != nil {
		return err
	}
	if err := v.constraints(); err != nil {
		return err
	}
	return v.ends()
}

type verifier struct {
	g       *Graph
	symbols map[string]bool
	defined map[*Value]bool
	scope   map[*Range]bool
}

func (v *verifier) fail(x *Value, format string, args ...any) error {
	msg := fmt.Sprintf(format, args...)
	if x == nil {
		return fmt.Errorf("graph %s: %s", v.g.Name, msg)
	}
	where := ""
	if x.Origin.Span != (diag.Span{}) {
		where = " (" + x.Origin.Span.String() + ")"
	}
	return fmt.Errorf("graph %s: value %s%s: %s", v.g.Name, x.Name, where, msg)
}

func (v *verifier) values() error {
	names, ids, taken := map[string]bool{}, map[int]bool{}, map[int]bound{}
	for _, x := range v.g.Values {
		switch {
		case names[x.Name]:
			return v.fail(x, "name is taken")
		case ids[x.ID]:
			return v.fail(x, "ID %d is taken", x.ID)
		case x.Type == Invalid || x.Type == Index || x.Type >= numDTypes:
			return v.fail(x, "type %s cannot be stored", x.Type)
		}
		names[x.Name], ids[x.ID] = true, true
		if err := v.ranges(x, taken); err != nil {
			return err
		}
		if err := v.body(x); err != nil {
			return err
		}
		v.defined[x] = true
	}
	return nil
}

// A bound is a range and the value that binds it.
type bound struct {
	r  *Range
	by *Value
}

// ranges checks the axes and the reduced ranges of x and puts them in scope. Each range must have its own
// number, because the algebra distinguishes ranges by their numbers.
func (v *verifier) ranges(x *Value, taken map[int]bound) error {
	v.scope = map[*Range]bool{}
	all := x.Axes
	if x.Reduce != nil {
		all = append(append([]*Range(nil), all...), x.Reduce.Ranges...)
	}
	for _, r := range all {
		switch other := taken[r.ID]; other.r {
		case nil:
		case r:
			return v.fail(x, "range %s is bound by %s too", r.Name, other.by.Name)
		default:
			return v.fail(x, "ranges %s and %s have the number %d both", other.r.Name, r.Name, r.ID)
		}
		taken[r.ID], v.scope[r] = bound{r, x}, true
		if r.Extent == nil {
			return v.fail(x, "range %s has no extent", r.Name)
		}
		if err := v.size(r.Extent); err != nil {
			return v.fail(x, "extent of %s: %s", r.Name, err)
		}
	}
	return nil
}

// size checks an expression over symbols.
func (v *verifier) size(e *Expr) error {
	if e.Type != Index {
		return fmt.Errorf("type %s, want index", e.Type)
	}
	return v.overSymbols(e)
}

func (v *verifier) overSymbols(e *Expr) (err error) {
	Walk(e, func(e *Expr) bool {
		switch {
		case err != nil:
		case e.Op == OpSym && !v.symbols[e.Name]:
			err = fmt.Errorf("unknown symbol %s", e.Name)
		case e.Op == OpRange || e.Op == OpLoad || e.Op == OpReduce || e.Op >= OpLocal && e.Op <= OpRandom16:
			err = fmt.Errorf("%s in an expression over symbols", e.Op)
		default:
			err = checkType(e)
		}
		return err == nil
	})
	return err
}

func (v *verifier) body(x *Value) error {
	if x.IsInput() {
		if x.Reduce != nil {
			return v.fail(x, "an input with a reduction")
		}
		return nil
	}
	want := x.Type
	if r := x.Reduce; r != nil {
		if err := v.reduction(x); err != nil {
			return err
		}
		want = x.Body.Type
	}
	if x.Body.Type != want {
		return v.fail(x, "body has type %s, want %s", x.Body.Type, want)
	}
	return v.expr(x, x.Body)
}

func (v *verifier) reduction(x *Value) error {
	r := x.Reduce
	if !r.Op.Info().On.Has(x.Body.Type.Info().Kind) {
		return v.fail(x, "%s does not take %s", r.Op, x.Body.Type)
	}
	if got := r.Op.Result(x.Body.Type); got != x.Type {
		return v.fail(x, "%s of %s gives %s, want %s", r.Op, x.Body.Type, got, x.Type)
	}
	if r.Inverse && (r.Rank == nil || !r.Op.IsArg()) {
		return v.fail(x, "the place of an element in no order")
	}
	if r.Rank != nil {
		if err := v.rank(x); err != nil {
			return err
		}
	}
	if r.Where == nil {
		return nil
	}
	if r.Where.Type != Bool {
		return v.fail(x, "predicate has type %s", r.Where.Type)
	}
	return v.expr(x, r.Where)
}

// rank checks a reduction that chooses by order.
func (v *verifier) rank(x *Value) error {
	r := x.Reduce
	switch {
	case !r.Op.Ordered():
		return v.fail(x, "%s at a rank", r.Op)
	case len(r.Ranges) != 1 || r.Where != nil:
		return v.fail(x, "a rank with %d ranges and the predicate %v, want one range and none", len(r.Ranges), r.Where)
	case r.Rank.Type != Index:
		return v.fail(x, "rank has type %s", r.Rank.Type)
	case DependsOn(r.Rank, r.Ranges[0]):
		return v.fail(x, "rank depends on the range %s", r.Ranges[0].Name)
	}
	return v.expr(x, r.Rank)
}

// expr checks every node of an expression of x.
func (v *verifier) expr(x *Value, e *Expr) error {
	var err error
	Walk(e, func(e *Expr) bool {
		if err == nil {
			err = v.node(e)
		}
		return err == nil
	})
	if err != nil {
		return v.fail(x, "%s", err)
	}
	return nil
}

func (v *verifier) node(e *Expr) error {
	switch e.Op {
	case OpReduce:
		return fmt.Errorf("a reduction inside an expression")
	case OpLocal, OpRead:
		return fmt.Errorf("%s belongs into plans", e.Op)
	case OpRange:
		if !v.scope[e.Range] {
			return fmt.Errorf("range %s is not in scope", e.Range.Name)
		}
	case OpSym:
		if !v.symbols[e.Name] {
			return fmt.Errorf("unknown symbol %s", e.Name)
		}
	case OpLoad:
		return v.load(e)
	}
	return checkType(e)
}

func (v *verifier) load(e *Expr) error {
	switch {
	case !v.defined[e.From]:
		return fmt.Errorf("reads %s, which is not defined before", e.From.Name)
	case len(e.Args) != len(e.From.Axes):
		return fmt.Errorf("reads %s at %d indices, want %d", e.From.Name, len(e.Args), len(e.From.Axes))
	case e.Type != e.From.Type:
		return fmt.Errorf("reads %s as %s, want %s", e.From.Name, e.Type, e.From.Type)
	case e.Fill != nil && (e.Fill.Op != OpConst || e.Fill.Type != e.Type):
		return fmt.Errorf("fill of %s is %s of type %s, want a constant of type %s",
			e.From.Name, e.Fill, e.Fill.Type, e.Type)
	}
	for _, a := range e.Args {
		if a.Type != Index {
			return fmt.Errorf("index of %s has type %s", e.From.Name, a.Type)
		}
	}
	return nil
}

// checkType compares a node's type with what its constructor gives.
func checkType(e *Expr) error {
	switch e.Op {
	case OpConst:
		if e.Type == Invalid || e.Type >= numDTypes {
			return fmt.Errorf("constant of type %s", e.Type)
		}
		return nil
	case OpRange, OpSym:
		if e.Type != Index {
			return fmt.Errorf("%s of type %s", e.Op, e.Type)
		}
		return nil
	case OpCast:
		if len(e.Args) != 1 || e.Type == Invalid {
			return fmt.Errorf("malformed cast to %s", e.Type)
		}
		return nil
	case OpRandom, OpRandom16:
		if len(e.Args) != 2 || !e.Args[0].Type.IsInt() || e.Args[1].Type != Index || e.Type != U32 {
			return fmt.Errorf("malformed %s", e.Op)
		}
		return nil
	}
	types := make([]DType, len(e.Args))
	for i, a := range e.Args {
		types[i] = a.Type
	}
	t, err := ResultType(e.Op, types...)
	if err != nil {
		return err
	}
	if t != e.Type {
		return fmt.Errorf("%s gives %s, not %s", e.Op, t, e.Type)
	}
	return nil
}

func (v *verifier) constraints() error {
	for _, c := range v.g.Constraints {
		if c.Cond.Type != Bool {
			return v.fail(nil, "constraint %q has type %s", c.Why, c.Cond.Type)
		}
		if err := v.overSymbols(c.Cond); err != nil {
			return v.fail(nil, "constraint %q: %s", c.Why, err)
		}
	}
	return nil
}

// ends checks inputs and outputs.
func (v *verifier) ends() error {
	inputs := map[*Value]bool{}
	for _, x := range v.g.Inputs {
		inputs[x] = true
		if !x.IsInput() || !v.defined[x] {
			return v.fail(x, "listed as an input, but is none")
		}
	}
	for _, x := range v.g.Values {
		if x.IsInput() && !inputs[x] {
			return v.fail(x, "has no body and is not listed as an input")
		}
	}
	if len(v.g.Outputs) < 2*len(v.g.Checks) {
		return v.fail(nil, "%d outputs for %d checks", len(v.g.Outputs), len(v.g.Checks))
	}
	for _, o := range v.g.Outputs[len(v.g.Results()):] {
		if o.Value.Type != I64 || len(o.Value.Axes) > 0 {
			return v.fail(o.Value, "result of a check is %s with %d axes, want an i64", o.Value.Type, len(o.Value.Axes))
		}
	}
	names := map[string]bool{}
	for _, o := range v.g.Outputs {
		if names[o.Name] {
			return v.fail(nil, "output %s is listed twice", o.Name)
		}
		names[o.Name] = true
		if !v.defined[o.Value] {
			return v.fail(o.Value, "output %s is not a value of the graph", o.Name)
		}
	}
	return v.states()
}

// states checks that each next value has the type and shape of its input, and that no input has
// two.
func (v *verifier) states() error {
	of := map[string]bool{}
	for _, o := range v.g.Outputs {
		if o.State == "" {
			continue
		}
		in := v.g.InputNamed(o.State)
		if in == nil || of[o.State] {
			return v.fail(o.Value, "next value of %s, which is no input or has another one", o.State)
		}
		of[o.State] = true
		same := in.Type == o.Value.Type && len(in.Axes) == len(o.Value.Axes)
		for d := 0; same && d < len(in.Axes); d++ {
			same = SameSize(in.Axes[d].Extent, o.Value.Axes[d].Extent)
		}
		if !same {
			return v.fail(o.Value, "next value of %s has another type or shape", o.State)
		}
	}
	return nil
}
