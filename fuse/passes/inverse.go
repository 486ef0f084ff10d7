package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// invertOrders finds orders of whole orders. Where at says which element comes to each place, at is a permutation, and its own order is
// the inverse: the place to which each element comes. The kernel that sorts the elements knows that too, so no second sort is
// needed.
func invertOrders(g *ir.Graph) {
	for _, v := range g.Values {
		if of, own := permutationOf(v); of != nil {
			takeOrder(g, v, of, own)
			v.Reduce.Inverse = !of.Reduce.Inverse
		} else if of, own := placesIn(v); of != nil { // as a result is, whose axes are in another order
			takeOrder(g, v, of, own)
			v.Origin = of.Origin
		}
	}
}

// takeOrder makes v the order that another value is, given which index of v each axis of that is.
func takeOrder(g *ir.Graph, v, of *ir.Value, own map[*ir.Range]*ir.Expr) {
	r := *of.Reduce
	over := g.NewRange(r.Ranges[0].Name, r.Ranges[0].Extent)
	own[r.Ranges[0]] = over.At()
	r.Ranges, r.Rank = []*ir.Range{over}, ir.Substitute(r.Rank, own)
	if v.Reduce != nil { // the place along which v was sorted is that of the element
		r.Rank = v.Reduce.Rank
	}
	v.Body, v.Reduce = ir.Substitute(of.Body, own), &r
}

// placesIn finds the places of elements of which v is a copy: the kernel that sorts stores them itself, as it does not know those of
// an element where a copy would need them.
func placesIn(v *ir.Value) (of *ir.Value, own map[*ir.Range]*ir.Expr) {
	if v.Reduce != nil || v.Body == nil || v.Body.Op != ir.OpLoad || v.Type != v.Body.Type {
		return nil, nil
	}
	if of = v.Body.From; of.Reduce == nil || !of.Reduce.Inverse || len(of.Axes) != len(v.Axes) {
		return nil, nil
	}
	if own = plainAxes(of, v.Body.Args); own == nil {
		return nil, nil
	}
	return of, own
}

// plainAxes is which range each axis of a value is read at, each its own and of the same extent; nil where others are among them.
func plainAxes(of *ir.Value, at []*ir.Expr) map[*ir.Range]*ir.Expr {
	own := map[*ir.Range]*ir.Expr{}
	var used []*ir.Range
	for d, axis := range of.Axes {
		if at[d].Op != ir.OpRange || slices.Contains(used, at[d].Range) || !ir.SameSize(at[d].Range.Extent, axis.Extent) {
			return nil
		}
		used = append(used, at[d].Range)
		own[axis] = at[d]
	}
	return own
}

// permutationOf finds the permutation that v is the ascending order of, and which range of v each of its axes is; nil where v is another
// value.
func permutationOf(v *ir.Value) (of *ir.Value, own map[*ir.Range]*ir.Expr) {
	s := form.SortOf(v)
	if s == nil || v.Reduce.Op != ir.ArgMin || v.Reduce.Inverse || v.Body.Op != ir.OpLoad || !s.EachRow(v) {
		return nil, nil
	}
	of = v.Body.From
	whole := form.SortOf(of)
	if whole == nil || !of.Reduce.Op.IsArg() || !ir.SameSize(whole.Place.Extent, whole.Over.Extent) ||
		!ir.SameSize(s.Over.Extent, whole.Place.Extent) || !ir.SameSize(s.Place.Extent, whole.Place.Extent) {
		return nil, nil
	}
	if own = plainAxes(of, v.Body.Args); own == nil || own[whole.Place].Range != s.Over {
		return nil, nil
	}
	return of, own
}
