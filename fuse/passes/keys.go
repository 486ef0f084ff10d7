package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// joinKeys makes one axis of the axes whose places keys give together: what goes to row a[n] and column b[n] of a matrix
// goes to place a[n]*columns + b[n] of its elements. So do the gradient of reads at points of an image, and counts of
// pairs. Kernels find the columns of a place by one key alone, and would look at all of them for each place of the
// other axes.
func joinKeys(g *ir.Graph) {
	if g.OneKernel {
		return
	}
	insertBefore(g, func(v *ir.Value) []*ir.Value {
		where := form.ConditionOf(v)
		if where == nil {
			return nil
		}
		places := form.PlacesOf(where, v.Axes, v.Reduce.Ranges)
		if len(places) < 2 {
			return nil
		}
		return []*ir.Value{joinPlaces(g, v, places)}
	})
}

// joinPlaces moves a reduction to a value with one axis for all places, which v then reads, and returns it.
func joinPlaces(g *ir.Graph, v *ir.Value, places []form.Place) *ir.Value {
	r := *v.Reduce
	u := &ir.Value{Name: v.Name + "_places", Type: v.Type, Reduce: &r, Origin: v.Origin}
	r.Where, u.Body = conditionAndTerm(v)
	var to []*ir.Range
	var keys, shape []*ir.Expr
	for _, p := range places {
		to, keys, shape = append(to, p.To), append(keys, ir.Cast(p.Key, ir.Index)), append(shape, p.To.Extent)
	}
	whole := g.NewRange(to[0].Name, ir.Simplify(algebra.Product(to), g.Facts()))
	var index []*ir.Expr
	at := map[*ir.Range]*ir.Expr{} // where a column is taken, its keys are the places
	for i, r := range to {
		at[r] = keys[i]
	}
	atKeys := func(e *ir.Expr) *ir.Expr {
		if !algebra.DependsOnAny(e, algebra.RangeSet(to)) {
			return e
		}
		return form.GuardLoads(ir.Substitute(e, at)) // keys of other columns may be no places
	}
	for _, a := range v.Axes {
		switch {
		case a == to[0]:
			u.Axes, index = append(u.Axes, whole), append(index, ir.FlatOffset(shape, ir.Indices(to)))
		case !slices.Contains(to, a):
			u.Axes, index = append(u.Axes, a), append(index, a.At())
		}
	}
	conditions := []*ir.Expr{ir.Apply(ir.OpEq, whole.At(), ir.FlatOffset(shape, keys))}
	for i, key := range keys {
		conditions = append(conditions, ir.Apply(ir.OpLe, ir.IntConst(0), key), ir.Apply(ir.OpLt, key, shape[i]))
	}
	for _, c := range form.Conditions(r.Where) {
		if !slices.ContainsFunc(places, func(p form.Place) bool { return p.Condition == c }) {
			conditions = append(conditions, atKeys(c))
		}
	}
	r.Where = nil
	for _, c := range conditions {
		r.Where = ir.Join(ir.OpAnd, r.Where, c)
	}
	u.Body = atKeys(u.Body)
	u = freshAxes(g, u)
	v.Reduce, v.Body = nil, ir.Load(u, index, nil).At(v.Body.Span)
	return u
}
