package fuse

import (
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/num"
)

// scope is where the expressions of a kernel are lowered: what its loads read, and what its members are.
type scope struct {
	*program
	r       *region
	buffers map[*ir.Value]*ir.Buffer
	args    map[*ir.Value]*ir.Arg
	value   map[*ir.Value]*ir.Expr // what a member is at the current point
	rounds  bool                   // whether each operation rounds to its type, whatever the graph's numerics
}

// arg returns the kernel's parameter for a value's buffer.
func (sc *scope) arg(v *ir.Value) *ir.Arg {
	a := sc.args[v]
	if a == nil {
		b := sc.buffers[v]
		a = &ir.Arg{Index: len(sc.args), Name: b.Name, Type: b.Type, Buffer: b}
		sc.args[v] = a
	}
	return a
}

// expr lowers an expression over the region's space.
func (sc *scope) expr(e *ir.Expr) *ir.Expr {
	return ir.Rewrite(e, sc.node)
}

// node lowers one node whose parts are lowered. Narrow floats become f32: under
// fast the rounding between operations is dropped, under strict it is written
// out after each of them.
func (sc *scope) node(e *ir.Expr) *ir.Expr {
	t := e.Type.Info().Compute
	switch e.Op {
	case ir.OpLoad:
		return sc.load(e)
	case ir.OpConst:
		return sc.constant(e)
	case ir.OpCast:
		from := e.Args[0]
		if t != e.Type && !from.Type.IsFloat() && sc.g.Numerics == ir.Strict {
			return ir.Cast(ir.Cast(from, e.Type), t).At(e.Span) // rounded once, straight from the integer
		}
		return sc.rounded(ir.Cast(from, t), e.Type).At(e.Span)
	case ir.OpRange, ir.OpSym, ir.OpLocal, ir.OpRead, ir.OpRandom, ir.OpRandom16:
		return e
	}
	return sc.rounded(inPositions(e), e.Type).At(e.Span)
}

// inPositions does an operation on integers that are casts of positions in the type of
// positions, if the result is the same. That is so for comparisons of positions, with each
// other and with constants, and for differences of ranges, which fit the type.
func inPositions(e *ir.Expr) *ir.Expr {
	compares := e.Op.Info().Result == ir.ToBool
	if !compares && e.Op != ir.OpSub {
		return ir.Apply(e.Op, e.Args...)
	}
	args, positions := make([]*ir.Expr, len(e.Args)), false
	for i, a := range e.Args {
		switch {
		case a.Op == ir.OpCast && a.Type == ir.I64 && a.Args[0].Type == ir.Index && (compares || a.Args[0].Op == ir.OpRange):
			args[i], positions = a.Args[0], true
		case compares && a.Op == ir.OpConst && a.Type == ir.I64 && int64(int32(a.Int)) == a.Int:
			args[i] = ir.IntConst(a.Int)
		default:
			return ir.Apply(e.Op, e.Args...)
		}
	}
	if !positions {
		return ir.Apply(e.Op, e.Args...)
	}
	return ir.Cast(ir.Apply(e.Op, args...), e.Type)
}

// constant is a constant in the type it is computed with: under strict the value
// that its own type holds.
func (sc *scope) constant(e *ir.Expr) *ir.Expr {
	t := e.Type.Info().Compute
	if t == e.Type || sc.g.Numerics == ir.Fast {
		return ir.Cast(e, t)
	}
	return ir.Num(t, num.Round(e.Type, num.Round(t, e.Val))).At(e.Span)
}

// rounded rounds a value to the type the program gives it where that matters.
func (sc *scope) rounded(e *ir.Expr, t ir.DType) *ir.Expr {
	c := t.Info().Compute
	if c == t || !t.IsFloat() {
		return ir.Cast(e, t)
	}
	if sc.g.Numerics == ir.Fast && !sc.rounds {
		return ir.Cast(e, c)
	}
	return ir.Cast(ir.Cast(e, t), c)
}

func (sc *scope) load(e *ir.Expr) *ir.Expr {
	v := e.From
	shape := v.Shape()
	var guard *ir.Expr
	if e.Fill != nil {
		guard = ir.Inside(shape, e.Args, sc.facts)
	}
	if sc.r.has(v) {
		if guard == nil {
			return sc.value[v]
		}
		return ir.Where(guard, sc.value[v], ir.Cast(e.Fill, sc.value[v].Type)) // a data-dependent index of an axis of extent 1
	}
	offset := ir.Simplify(ir.FlatOffset(shape, e.Args), sc.facts)
	if guard != nil && sc.r.inside != nil && ir.Implies(sc.r.inside, guard, sc.facts) {
		guard = nil
	}
	fill := e.Fill
	if guard == nil {
		fill = nil
	} else if fill.Type != v.Type {
		fill = ir.Cast(fill, v.Type) // lowered like any constant; storage keeps its own type
	}
	return ir.Cast(ir.Read(sc.arg(v), offset, guard, fill).At(e.Span), v.Type.Info().Compute).At(e.Span)
}
