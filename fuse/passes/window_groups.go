package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// In a grouped convolution each channel of the result reads only the channels of its group: the index of
// the input contains o / m where that of the weights contains o. So both sides of the product depend on o.
// Once the groups, and the channels of each, have an axis of their own, each group is a product like any
// other.

// leastGroup is the least channels in a group, of the result and of the input. With fewer, a group has too little work
// for tiles of a product.
const leastGroup = 4

// splitGroups splits the axis of such products into groups and the channels of each.
func splitGroups(g *ir.Graph) {
	if g.Numerics != ir.Fast {
		return
	}
	insertBefore(g, func(v *ir.Value) []*ir.Value {
		axis, size := groupsIn(v)
		if axis == nil {
			return nil
		}
		return groupedBy(g, v, axis, size)
	})
}

// groupsIn finds an axis of a sum of products from which one factor picks groups of size points and the
// other single points; nil where there is none.
func groupsIn(v *ir.Value) (axis *ir.Range, size int64) {
	if v.Reduce == nil || v.Reduce.Op != ir.Sum || v.Reduce.Rank != nil {
		return nil, 0
	}
	body := form.WithoutCasts(v.Body)
	if body.Op != ir.OpMul {
		return nil, 0
	}
	for _, a := range v.Axes {
		if a.Extent.Op != ir.OpConst {
			continue
		}
		first, second := groupSize(body.Args[0], a), groupSize(body.Args[1], a)
		m, weight := max(first, second), body.Args[0]
		if second == 1 {
			weight = body.Args[1]
		}
		if min(first, second) == 1 && m >= leastGroup && a.Extent.Int%m == 0 && m < a.Extent.Int &&
			summed(v) >= leastGroup && onlyAxis(v, weight, a) {
			return a, m
		}
	}
	return nil, 0
}

// onlyAxis reports whether an expression depends on no other axis of a value, as weights do.
func onlyAxis(v *ir.Value, e *ir.Expr, axis *ir.Range) bool {
	return !slices.ContainsFunc(v.Axes, func(a *ir.Range) bool { return a != axis && ir.DependsOn(e, a) })
}

// summed is the extent of the longest range that a value sums over; 0 where one is a symbol.
func summed(v *ir.Value) (n int64) {
	for _, r := range v.Reduce.Ranges {
		if r.Extent.Op != ir.OpConst {
			return 0
		}
		n = max(n, r.Extent.Int)
	}
	return n
}

// groupSize is how many neighbouring points of a range have the same value of an expression: 1 where it
// depends on each point, 0 where it does not depend on the range, or in another way.
func groupSize(e *ir.Expr, r *ir.Range) (size int64) {
	plain, grouped, mixed := false, int64(0), false
	var walk func(e *ir.Expr)
	walk = func(e *ir.Expr) {
		switch {
		case e.Op == ir.OpRange && e.Range == r:
			plain = true
		case e.Op == ir.OpFloorDiv && e.Args[0].Op == ir.OpRange && e.Args[0].Range == r && e.Args[1].Op == ir.OpConst:
			mixed = mixed || grouped > 0 && grouped != e.Args[1].Int
			grouped = e.Args[1].Int
		default:
			for _, a := range e.Args {
				walk(a)
			}
		}
	}
	walk(e)
	switch {
	case mixed:
		return 0
	case plain:
		return 1
	}
	return grouped
}

// groupedBy moves the sum to a value in which the axis is split into groups and the points of each, and
// makes v a load of it. It returns the new values in order.
func groupedBy(g *ir.Graph, v *ir.Value, axis *ir.Range, size int64) (made []*ir.Value) {
	m := ir.IntConst(size)
	group, point := g.NewRange(axis.Name+"_group", ir.IntConst(axis.Extent.Int/size)), g.NewRange(axis.Name, m)
	with := map[*ir.Range]*ir.Expr{axis: ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, group.At(), m), point.At())}
	facts := g.Facts()
	reduce := *v.Reduce
	if reduce.Where != nil {
		reduce.Where = ir.Simplify(ir.Substitute(reduce.Where, with), facts)
	}
	u := &ir.Value{Name: v.Name + "_groups", Type: v.Type, Body: ir.Simplify(ir.Substitute(v.Body, with), facts),
		Reduce: &reduce, Origin: v.Origin}
	u.Body = ir.Rewrite(u.Body, func(e *ir.Expr) *ir.Expr {
		if e.Op == ir.OpLoad {
			for d := range e.Args {
				if c := channelOf(e, d, group, reduce.Ranges); c != nil {
					e = splitDim(g, e, d, []*ir.Range{group, c})
					made = append(made, e.From)
					break
				}
			}
		}
		return e
	})
	var read []*ir.Expr
	for _, a := range v.Axes {
		if a != axis {
			u.Axes, read = append(u.Axes, a), append(read, algebra.UnitIndices([]*ir.Range{a})...)
			continue
		}
		u.Axes = append(u.Axes, group, point)
		read = append(read, ir.Apply(ir.OpFloorDiv, a.At(), m), ir.Apply(ir.OpMod, a.At(), m))
	}
	v.Reduce, v.Body = nil, ir.Load(freshAxes(g, u), read, nil).At(v.Body.Span)
	return append(made, u)
}

// channelOf is the summed range that an index of a load adds to the groups, as in input[n, group * C + c,
// p]; nil for other indices.
func channelOf(load *ir.Expr, d int, group *ir.Range, ranges []*ir.Range) *ir.Range {
	for _, c := range ranges {
		if c.Extent.Op != ir.OpConst || !ir.SameSize(load.From.Axes[d].Extent, ir.IntConst(group.Extent.Int*c.Extent.Int)) {
			continue
		}
		if ir.SameIndex(load.Args[d], ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, group.At(), c.Extent), c.At()), ir.Facts{}) {
			return c
		}
	}
	return nil
}

// splitDim is a load of a view in which dim d is split into one for each of some ranges, over which the load goes through it.
func splitDim(g *ir.Graph, load *ir.Expr, d int, parts []*ir.Range) *ir.Expr {
	var shape, at, from []*ir.Expr
	for i, a := range load.From.Axes {
		if i != d {
			shape, at = append(shape, a.Extent), append(at, load.Args[i])
			continue
		}
		for _, r := range parts {
			shape, at = append(shape, r.Extent), append(at, r.At())
		}
	}
	axes := g.NewAxes(shape)
	for i, k := 0, 0; i < len(load.Args); i, k = i+1, k+1 {
		if i == d {
			from = append(from, placeOfDigits(axes[k:k+len(parts)]))
			k += len(parts) - 1
			continue
		}
		from = append(from, axes[k].At())
	}
	view := g.Adopt(&ir.Value{Name: load.From.Name + "_groups", Type: load.From.Type, Axes: axes,
		Body: ir.Load(load.From, from, nil), Origin: load.From.Origin})
	return ir.Load(view, at, load.Fill).At(load.Span)
}
