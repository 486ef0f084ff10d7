package passes

import (
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// A softmax over scores and one more number, as softmax(concat(s, sink))[..., :-1], is written as one of a longer row, so that the scores are no longer a
// product. The maximum of the row is that of the scores and of the number, its sum the sum of both, and what is read of the row are scores.

// takeEnds takes the one element that a concatenation adds before or behind a row out of reductions over it, and reads the parts of concatenations
// where a reader is inside of one of them.
func takeEnds(g *ir.Graph) {
	if !mayAddKernels(g) {
		return
	}
	j := &joinedRows{g: g, cuts: map[joinedAxis]*ir.Expr{}}
	insertBefore(g, func(v *ir.Value) (made []*ir.Value) {
		if v.IsInput() {
			return nil
		}
		if inner := j.split(v); inner != nil {
			made = append(made, inner)
		}
		if !j.any {
			return made
		}
		v.Body = j.inParts(v.Body)
		return made
	})
	DropDead(g)
}

type joinedAxis struct {
	v    *ir.Value
	axis int
}

// joinedRows knows where values that are computed element by element from concatenations are cut.
type joinedRows struct {
	g    *ir.Graph
	cuts map[joinedAxis]*ir.Expr // nil for axes that are not cut
	any  bool                    // whether one is
}

// cut is the index along an axis of a value at which its second part begins, where one of the two parts is one element; nil for others.
func (j *joinedRows) cut(v *ir.Value, axis int) *ir.Expr {
	key := joinedAxis{v, axis}
	if c, known := j.cuts[key]; known {
		return c
	}
	j.cuts[key] = nil
	if v.IsInput() || v.Reduce != nil {
		return nil
	}
	r := v.Axes[axis]
	var found *ir.Expr
	ir.Walk(v.Body, func(e *ir.Expr) bool {
		if found != nil {
			return false
		}
		switch e.Op {
		case ir.OpSelect:
			if parts, ends := form.Segments(e, r); len(parts) == 2 && j.isEnd(r, ends[0]) {
				found = ends[0]
			}
		case ir.OpLoad:
			for d, at := range e.Args {
				if at.Op == ir.OpRange && at.Range == r && ir.SameSize(r.Extent, e.From.Axes[d].Extent) {
					found = j.cut(e.From, d)
				}
			}
		}
		return found == nil
	})
	j.cuts[key], j.any = found, j.any || found != nil
	return found
}

// isEnd reports whether one of the parts before and behind a cut of a range is one element, and the other one is longer.
func (j *joinedRows) isEnd(r *ir.Range, cut *ir.Expr) bool {
	rest := ir.Simplify(ir.Apply(ir.OpSub, r.Extent, cut), j.g.Facts())
	return cut.IsConst(1) != rest.IsConst(1)
}

// split makes a reduction over a row that is cut one over its longer part, and combines its result with the one element; it returns the reduction, nil
// where there is none.
func (j *joinedRows) split(v *ir.Value) *ir.Value {
	if v.Reduce == nil || len(v.Reduce.Ranges) != 1 || v.Reduce.Where != nil || v.Reduce.Rank != nil || v.Reduce.Op.IsArg() || form.ScanOf(v) != nil {
		return nil
	}
	if len(form.FactorsOf(v.Body)) > 1 { // products read what is joined where it lies
		return nil
	}
	r := v.Reduce.Ranges[0]
	var cut *ir.Expr
	for _, l := range ir.Loads(v.Body) {
		for d, at := range l.Args {
			if cut == nil && at.Op == ir.OpRange && at.Range == r && ir.SameSize(r.Extent, l.From.Axes[d].Extent) {
				cut = j.cut(l.From, d)
			}
		}
	}
	if cut == nil {
		return nil
	}
	one, start, length := cut, ir.IntConst(0), cut
	if cut.IsConst(1) {
		one, start, length = ir.IntConst(0), cut, ir.Simplify(ir.Apply(ir.OpSub, r.Extent, cut), j.g.Facts())
	}
	k := j.g.NewRange(r.Name, length)
	at := func(e *ir.Expr) *ir.Expr {
		return j.inParts(ir.Substitute(v.Body, map[*ir.Range]*ir.Expr{r: ir.Simplify(e, j.g.Facts())}))
	}
	reduce := *v.Reduce
	reduce.Ranges = []*ir.Range{k}
	inner := freshAxes(j.g, &ir.Value{Name: v.Name + "_row", Type: v.Body.Type, Axes: v.Axes, Body: at(ir.Apply(ir.OpAdd, k.At(), start)), Reduce: &reduce, Origin: v.Origin})
	combine := v.Reduce.Op.Info().Combine
	v.Body = ir.Cast(ir.Apply(combine, ir.Load(inner, ir.Indices(v.Axes), nil), at(one)), v.Type).At(v.Body.Span)
	v.Reduce = nil
	return inner
}

// inParts replaces loads of values that are cut by what their elements are in the part that the index is in, where that is one part.
func (j *joinedRows) inParts(e *ir.Expr) *ir.Expr {
	return ir.Rewrite(e, func(e *ir.Expr) *ir.Expr {
		if e.Op != ir.OpLoad || e.From.IsInput() || e.From.Reduce != nil {
			return e
		}
		for d, at := range e.Args {
			cut := j.cut(e.From, d)
			if cut == nil || form.CostOf(e.From.Body).Nodes > largestNodes {
				continue
			}
			if ir.Decide(ir.Apply(ir.OpLt, at, cut), j.g.Facts()) != ir.Unknown {
				return j.inParts(j.decided(form.BodyAt(e)))
			}
		}
		return e
	})
}

// decided is an expression without the cases that never hold.
func (j *joinedRows) decided(e *ir.Expr) *ir.Expr {
	return ir.Rewrite(e, func(e *ir.Expr) *ir.Expr {
		if e.Op != ir.OpSelect {
			return e
		}
		switch ir.Decide(e.Args[0], j.g.Facts()) {
		case ir.True:
			return e.Args[1]
		case ir.False:
			return e.Args[2]
		}
		return e
	})
}
