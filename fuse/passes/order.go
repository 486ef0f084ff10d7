package passes

import (
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// rankAxes gives every sorted order an axis for its places. A value may pick at a rank that is not its
// axis, or its order may depend on that axis. Such a value then becomes a load of a new value that is
// the order itself.
func rankAxes(g *ir.Graph) {
	insertBefore(g, func(v *ir.Value) []*ir.Value {
		if v.Reduce == nil || v.Reduce.Rank == nil {
			return nil
		}
		if s := form.SortOf(v); s != nil && s.EachRow(v) {
			return nil
		}
		return []*ir.Value{wholeOrder(g, v)}
	})
}

// wholeOrder returns the order that v picks from, and makes v a load of it.
func wholeOrder(g *ir.Graph, v *ir.Value) *ir.Value {
	free := ir.FreeRanges(v.Body)
	var axes []*ir.Range
	var at []*ir.Expr
	own := map[*ir.Range]*ir.Expr{}
	for _, r := range v.Axes {
		if free[r] {
			fresh := g.NewRange(r.Name, r.Extent)
			axes, at = append(axes, fresh), append(at, r.At())
			own[r] = fresh.At()
		}
	}
	r := *v.Reduce
	over := g.NewRange(r.Ranges[0].Name, r.Ranges[0].Extent)
	own[r.Ranges[0]] = over.At()
	place := g.NewRange("place", placesOf(&r))
	rank := r.Rank
	r.Ranges, r.Rank = []*ir.Range{over}, place.At()
	s := g.Adopt(&ir.Value{Name: v.Name + "_order", Type: v.Type, Axes: append(axes, place),
		Body: ir.Substitute(v.Body, own), Reduce: &r, Origin: v.Origin})
	v.Body = ir.Load(s, append(at, rank), outOfOrder(v))
	v.Reduce = nil
	return s
}

// placesOf is how many places of an order are needed: up to the rank, if that is the same for all rows. A
// constant is at least two, because an axis of one place would be dropped.
func placesOf(r *ir.Reduction) *ir.Expr {
	last := r.Rank
	if len(ir.FreeRanges(last)) > 0 || len(ir.Loads(last)) > 0 {
		last = ir.Apply(ir.OpSub, r.Ranges[0].Extent, ir.IntConst(1))
	}
	n := ir.Simplify(ir.Apply(ir.OpAdd, last, ir.IntConst(1)), ir.Facts{})
	if n.Op == ir.OpConst {
		return ir.IntConst(max(n.Int, 2))
	}
	return n
}

// outOfOrder is the value at a place past the last element.
func outOfOrder(v *ir.Value) *ir.Expr {
	if v.Reduce.Op.IsArg() {
		return ir.IntNum(ir.I64, 0)
	}
	return ir.Cast(v.Reduce.Op.Identity(v.Body.Type), v.Type)
}
