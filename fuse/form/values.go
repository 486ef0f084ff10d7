// Package form recognises what values compute, from their definitions alone: products and their sides, scans,
// orders, scatters, weighted sums under exponentials (streams, as in attention), and reductions of products that
// tiles can fold. Nothing here knows a name or a device. Graph passes and the planner ask the same functions, so
// they cannot disagree. A matcher that gives up says what stood in the way (Refusal).
package form

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// Expand replaces loads of the given values by their bodies.
func Expand(e *ir.Expr, inlined map[*ir.Value]bool) *ir.Expr { return newViewer().expand(e, inlined) }

// BodyAt is the body of the value that a load reads, at the load's indices.
func BodyAt(load *ir.Expr) *ir.Expr { return newViewer().bodyAt(load) }

// viewer writes the bodies of values at the indices of loads. It remembers which loads are inside, and which conditions imply
// others.
type viewer struct{ inside, implied renamedAnswers }

func newViewer() viewer { return viewer{renamedAnswers{}, renamedAnswers{}} }

type viewerKey struct{}

// viewerOf is the viewer that a graph keeps.
func viewerOf(g *ir.Graph) viewer {
	vw, ok := ir.Kept[viewer](g, viewerKey{})
	if !ok {
		vw = newViewer()
		g.Keep(viewerKey{}, vw)
	}
	return vw
}

// ShareProofs lets a graph use what is proved about the indices of another one, and the other way round. What is proved depends on
// index expressions alone. Two graphs that share proofs must not be planned at the same time.
func ShareProofs(from, to *ir.Graph) { to.Keep(viewerKey{}, viewerOf(from)) }

// insideOf is the condition under which a load is inside its tensor; nil where it always is.
func (vw viewer) insideOf(load *ir.Expr) *ir.Expr {
	shape := load.From.Shape()
	return vw.inside.of(slices.Concat(shape, load.Args), func() *ir.Expr { return ir.Inside(shape, load.Args, ir.Facts{}) })
}

// implies reports whether a condition holds wherever another one does.
func (vw viewer) implies(condition, other *ir.Expr) bool {
	return vw.implied.of([]*ir.Expr{condition, other}, func() *ir.Expr {
		if ir.Implies(condition, other, ir.Facts{}) {
			return ir.IntNum(ir.Bool, 1)
		}
		return nil
	}) != nil
}

// expand is Expand.
func (vw viewer) expand(e *ir.Expr, inlined map[*ir.Value]bool) *ir.Expr {
	if len(inlined) == 0 {
		return e
	}
	return ir.Rewrite(e, func(e *ir.Expr) *ir.Expr {
		if e.Op == ir.OpLoad && inlined[e.From] {
			return vw.bodyAt(e)
		}
		return e
	})
}

// bodyAt is BodyAt.
func (vw viewer) bodyAt(load *ir.Expr) *ir.Expr {
	v := load.From
	at := map[*ir.Range]*ir.Expr{}
	for d, r := range v.Axes {
		at[r] = load.Args[d]
	}
	body := ir.Substitute(v.Body, at)
	if load.Fill == nil {
		return body
	}
	guard := vw.insideOf(load)
	if guard == nil {
		return body
	}
	if filled := vw.filledView(body, guard, load.Fill); filled != nil {
		return filled
	}
	return ir.Where(guard, GuardLoads(body), load.Fill)
}

// filledView writes a choice, between an element of a view and a fill, as one load with that fill. So the padding
// of a convolution stays a bound of its input, even if its groups of channels are a view of that. A negated view is loaded with the
// negated fill, as in erosion by the maxima of a negative. It is nil if the body is not such a choice, or if the condition excludes
// elements that exist.
func (vw viewer) filledView(body, guard, fill *ir.Expr) *ir.Expr {
	if body.Op == ir.OpNeg && body.Type.IsFloat() && fill.Op == ir.OpConst && fill.Val != 0 { // 0 would become -0
		inner := vw.filledView(body.Args[0], guard, ir.Num(body.Type, -fill.Val))
		if inner == nil {
			return nil
		}
		return ir.Apply(ir.OpNeg, inner).At(body.Span)
	}
	if body.Op != ir.OpLoad || body.Type != fill.Type || body.Fill != nil && !ir.Equal(body.Fill, fill) {
		return nil
	}
	if slices.ContainsFunc(body.Args, func(at *ir.Expr) bool { return !readsAnywhere(at, guard) }) {
		return nil
	}
	inside := vw.insideOf(body)
	if inside == nil || !vw.implies(inside, guard) {
		return nil
	}
	return ir.Load(body.From, body.Args, fill).At(body.Span)
}

// readsAnywhere reports whether an index may be evaluated where a condition does not hold: each of its loads is guarded itself, or the
// condition reads the same element.
func readsAnywhere(at, condition *ir.Expr) bool {
	return !ir.Contains(at, func(load *ir.Expr) bool {
		return load.Op == ir.OpLoad && load.Fill == nil && !ir.Contains(condition, func(read *ir.Expr) bool { return ir.Equal(read, load) })
	})
}

// GuardLoads gives every load a fill, so that it can be evaluated outside its tensor; the result is
// not used there.
func GuardLoads(e *ir.Expr) *ir.Expr {
	return ir.Rewrite(e, func(e *ir.Expr) *ir.Expr {
		if e.Op == ir.OpLoad && e.Fill == nil {
			return ir.Load(e.From, e.Args, ir.Num(e.Type, 0)).At(e.Span)
		}
		return e
	})
}

// CanonicalHash is equal for values that differ only in the names of ranges.
func CanonicalHash(v *ir.Value) uint64 {
	h := v.Body
	subst := map[*ir.Range]*ir.Expr{}
	n := noIndex
	for _, r := range algebra.AllRanges(v) {
		subst[r] = ir.IntConst(n)
		n++
	}
	return ir.Substitute(h, subst).Hash() ^ uint64(len(v.Axes))<<56 ^ uint64(v.Type)
}

// SameDefinition reports whether two values differ only in the names of ranges.
func SameDefinition(u, v *ir.Value) bool {
	ru, rv := algebra.AllRanges(u), algebra.AllRanges(v)
	if u.Type != v.Type || len(ru) != len(rv) || len(u.Axes) != len(v.Axes) || (u.Reduce == nil) != (v.Reduce == nil) {
		return false
	}
	rename := map[*ir.Range]*ir.Expr{}
	for i := range ru {
		if !ir.SameSize(ru[i].Extent, rv[i].Extent) {
			return false
		}
		rename[rv[i]] = ru[i].At()
	}
	if !ir.Equal(u.Body, ir.Substitute(v.Body, rename)) {
		return false
	}
	if u.Reduce == nil {
		return true
	}
	if u.Reduce.Op != v.Reduce.Op || u.Reduce.Inverse != v.Reduce.Inverse {
		return false
	}
	return samePart(u.Reduce.Where, v.Reduce.Where, rename) && samePart(u.Reduce.Rank, v.Reduce.Rank, rename)
}

// samePart compares optional parts of two definitions.
func samePart(u, v *ir.Expr, rename map[*ir.Range]*ir.Expr) bool {
	if u == nil || v == nil {
		return u == v
	}
	return ir.Equal(u, ir.Substitute(v, rename))
}

// Scaled multiplies an expression by a constant.
func Scaled(c float64, e *ir.Expr) *ir.Expr {
	if c == 1 {
		return e
	}
	return ir.Apply(ir.OpMul, ir.Num(e.Type, c), e)
}

// Unscaled writes e as c times the result, with c > 0. It takes c out of masked expressions too, because c
// times -inf is -inf.
func Unscaled(e *ir.Expr) (c float64, rest *ir.Expr) {
	switch {
	case e.Op == ir.OpCast && e.Type.IsFloat() && e.Args[0].Type.IsFloat():
		return Unscaled(e.Args[0])
	case e.Op == ir.OpMul:
		for i, a := range e.Args {
			if a.Op == ir.OpConst && a.Val > 0 {
				c, rest = Unscaled(e.Args[1-i])
				return c * a.Val, rest
			}
		}
	case e.Op == ir.OpSelect && IsMinusInfinity(e.Args[2]):
		c, rest = Unscaled(e.Args[1])
		return c, ir.Where(e.Args[0], rest, ir.Num(rest.Type, e.Args[2].Val)).At(e.Span)
	case e.Op == ir.OpSelect && IsMinusInfinity(e.Args[1]):
		c, rest = Unscaled(e.Args[2])
		return c, ir.Where(e.Args[0], ir.Num(rest.Type, e.Args[1].Val), rest).At(e.Span)
	}
	return 1, e
}

// IsMinusInfinity reports whether an expression is the constant -inf.
func IsMinusInfinity(e *ir.Expr) bool {
	e = Stripped(e)
	return e.Op == ir.OpConst && e.Type.IsFloat() && e.Val < 0 && e.Val*0 != 0
}
