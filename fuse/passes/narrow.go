package passes

import (
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/num"
)

// narrowStored gives values the narrowest type that holds all of their elements. A value that is converted from a
// narrower type takes that type, and its readers convert: logits that a program rounds to bf16 and then widens are
// written as bf16. A value that all readers round to one narrower type is rounded once, where it is computed, and
// not by each reader. Results are the same to the last bit, and fewer bytes are written and read.
func narrowStored(g *ir.Graph) {
	rounded, kept := roundings(g), stay(g)
	narrow := map[*ir.Value]ir.DType{} // the type that loads of a narrowed value had
	as := map[*ir.Value]*ir.Value{}    // the value that holds the results of a product, rounded
	copies := map[*ir.Value]bool{}     // values that only copy another one, now that they are not widened
	var out []*ir.Value
	for _, v := range g.Values {
		v.MapExprs(func(e *ir.Expr) *ir.Expr { return readNarrow(e, narrow, as) })
		out = append(out, v)
		switch t := rounded[v].to; {
		case kept[v]:
		case v.Reduce != nil:
			if t != ir.Invalid && form.Crosses(v) && !followedByOne(v, rounded[v].readers) && mayAddKernels(g) {
				r := roundedResult(g, v, t)
				as[v], narrow[v] = r, v.Type
				out = append(out, r)
			}
		case widens(v.Body) && fillsFit(rounded[v].fills, v.Body.Args[0].Type):
			narrow[v] = v.Type
			v.Body = v.Body.Args[0]
			v.Type, copies[v] = v.Body.Type, v.Body.Op == ir.OpLoad
		case t != ir.Invalid && fillsFit(rounded[v].fills, t):
			narrow[v] = v.Type
			v.Body, v.Type = ir.Cast(v.Body, t).At(v.Body.Span), t
		}
	}
	g.Values = out
	if len(copies) > 0 {
		inlineWhere(g, func(v *ir.Value) bool { return copies[v] })
	}
}

// stay is the values whose types must not change: inputs, results, values that are not written or are computed
// again where they are read, and the pointwise values that read those.
func stay(g *ir.Graph) map[*ir.Value]bool {
	out := form.NewRecogniser(g).Unwritten()
	for _, o := range g.Outputs {
		out[o.Value] = true
	}
	for _, v := range g.Values {
		out[v] = out[v] || v.IsInput() || v.Again || !v.Type.IsFloat()
		for _, l := range v.Loads() {
			if v.Reduce == nil && !l.From.IsInput() && (l.From.Again || l.From.Reduce != nil && out[l.From]) {
				out[v] = true
			}
		}
	}
	return out
}

// rounding is the first thing that the readers of a value do with it.
type rounding struct {
	to      ir.DType // the narrower type to which all of them round it; Invalid where they do not
	readers []*ir.Value
	fills   []*ir.Expr // what loads return outside of the value
	seen    bool
}

// asRounded is an expression whose value is rounded to a type.
type asRounded struct {
	e  *ir.Expr
	to ir.DType
}

// roundings finds, for each value, the type to which its readers round it.
func roundings(g *ir.Graph) map[*ir.Value]rounding {
	out := map[*ir.Value]rounding{}
	for _, v := range g.Values {
		reading := map[*ir.Value]bool{}
		visited := map[asRounded]bool{}
		var visit func(e *ir.Expr, to ir.DType)
		visit = func(e *ir.Expr, to ir.DType) {
			if visited[asRounded{e, to}] {
				return
			}
			visited[asRounded{e, to}] = true
			if e.Op == ir.OpLoad {
				r := out[e.From]
				if r.seen && r.to != to {
					to = ir.Invalid
				}
				r.to, r.seen = to, true
				if e.Fill != nil {
					r.fills = append(r.fills, e.Fill)
				}
				if !reading[e.From] {
					r.readers = append(r.readers, v)
				}
				reading[e.From], out[e.From] = true, r
			}
			for i, a := range e.Args {
				visit(a, roundedTo(e, i, to))
			}
		}
		v.MapExprs(func(e *ir.Expr) *ir.Expr { visit(e, ir.Invalid); return e })
	}
	return out
}

// roundedTo is the type to which an expression rounds an argument, if the expression itself is rounded to type to. The
// two branches of a choice are rounded as the choice is.
func roundedTo(e *ir.Expr, arg int, to ir.DType) ir.DType {
	switch {
	case e.Op == ir.OpCast && e.Type.IsFloat() && ir.Holds(e.Args[0].Type, e.Type):
		return e.Type
	case e.Op == ir.OpSelect && arg > 0:
		return to
	}
	return ir.Invalid
}

// widens reports whether an expression converts a float to a type that holds all numbers of the narrower one.
func widens(e *ir.Expr) bool {
	return e.Op == ir.OpCast && ir.Holds(e.Type, e.Args[0].Type)
}

// fillsFit reports whether a type holds what loads return outside.
func fillsFit(fills []*ir.Expr, t ir.DType) bool {
	for _, f := range fills {
		if num.Round(t, f.Val) != f.Val {
			return false
		}
	}
	return true
}

// followedByOne reports whether only one value reads the results of a reduction, element by element: it is then
// computed in the reduction's kernel.
func followedByOne(v *ir.Value, readers []*ir.Value) bool {
	return len(readers) == 1 && readers[0].Reduce == nil && followsOne(readers[0], map[*ir.Value]bool{v: true})
}

// roundedResult makes a value that holds the results of a reduction in a narrower type.
func roundedResult(g *ir.Graph, v *ir.Value, t ir.DType) *ir.Value {
	axes := g.NewAxes(v.Shape())
	for d, r := range axes {
		r.Name = v.Axes[d].Name
	}
	return g.Adopt(&ir.Value{Name: v.Name + "_rounded", Type: t, Axes: axes, Origin: v.Origin,
		Body: ir.Cast(ir.Load(v, ir.Indices(axes), nil), t).At(v.Body.Span)})
}

// readNarrow makes loads of narrowed values load the narrower type and convert it.
func readNarrow(e *ir.Expr, narrow map[*ir.Value]ir.DType, as map[*ir.Value]*ir.Value) *ir.Expr {
	if len(narrow) == 0 {
		return e
	}
	return ir.Rewrite(e, func(e *ir.Expr) *ir.Expr {
		if e.Op == ir.OpCast {
			return withoutRoundTrip(e)
		}
		wide, ok := narrow[e.From]
		if e.Op != ir.OpLoad || !ok {
			return e
		}
		from, fill := e.From, e.Fill
		if as[from] != nil {
			from = as[from]
		}
		if fill != nil {
			fill = ir.Num(from.Type, fill.Val)
		}
		l := ir.Load(from, e.Args, fill).At(e.Span)
		if e.NoElse {
			l = l.Bare()
		}
		return ir.Cast(l, wide).At(e.Span)
	})
}

// withoutRoundTrip drops a conversion to a wider type and back: the wider type holds all numbers of the narrower one,
// so the number stays the same.
func withoutRoundTrip(e *ir.Expr) *ir.Expr {
	if e.Op == ir.OpCast && e.Args[0].Op == ir.OpCast {
		if inner := e.Args[0].Args[0]; inner.Type == e.Type && ir.Holds(e.Args[0].Type, e.Type) {
			return inner
		}
	}
	return e
}
