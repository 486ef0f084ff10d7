package passes

import (
	"slices"

	"github.com/fusec/fusec/ir"
)

// arrangeAxes moves axes of intermediate values next to each other where readers index them by one range.
// Heads that attention computes as [B, H, S, D], for example, are read as [B, S, H * D] by the product
// after it. What readers go through in order is then contiguous, so that the tensor copy engine can copy
// it.
func arrangeAxes(g *ir.Graph) {
	fixed := resultsOf(g)
	loads := map[*ir.Value][]*ir.Expr{}
	for _, v := range g.Values {
		for _, l := range v.Loads() {
			loads[l.From] = append(loads[l.From], l)
		}
	}
	order := map[*ir.Value][]int{}
	for _, v := range g.Values {
		if v.IsInput() || fixed[v] || v.Reduce != nil || len(v.Axes) < 3 {
			continue
		}
		if o := joinedLast(v, loads[v], g.Facts()); o != nil {
			order[v] = o
		}
	}
	if len(order) == 0 {
		return
	}
	reorder(g, order)
}

// reorder gives values their axes in other orders, and their readers the indices.
func reorder(g *ir.Graph, order map[*ir.Value][]int) {
	for _, v := range g.Values {
		v.MapExprs(func(e *ir.Expr) *ir.Expr {
			return ir.Rewrite(e, func(e *ir.Expr) *ir.Expr {
				if e.Op != ir.OpLoad || order[e.From] == nil {
					return e
				}
				l := *e
				l.Args = permuted(e.Args, order[e.From])
				return &l
			})
		})
	}
	for v, o := range order {
		v.Axes = permuted(v.Axes, o)
	}
}

// joinedLast is the order of a value's axes in which those that loads index by one range come last, so that this range is
// contiguous; nil where there are none, where loads want several orders, or where the axes are in that order already. Loads that
// index each axis by itself go through rows in either order, as long as the last axis stays where it is.
func joinedLast(v *ir.Value, loads []*ir.Expr, facts ir.Facts) []int {
	var order []int
	apart := false
	for _, l := range loads {
		r, o := joinedBy(l)
		switch {
		case r == nil && !rowWise(l):
			return nil
		case r == nil:
			apart = true
		case order != nil && !slices.Equal(o, order) || !contiguous(v, l, o, r, facts):
			return nil
		default:
			order = o
		}
	}
	if last := len(v.Axes) - 1; slices.IsSorted(order) || apart && order[last] != last {
		return nil
	}
	return order
}

// rowWise reports whether a load indexes each axis by a range of its own or a constant.
func rowWise(l *ir.Expr) bool {
	seen := map[*ir.Range]bool{}
	return !slices.ContainsFunc(l.Args, func(at *ir.Expr) bool {
		again := at.Op == ir.OpRange && seen[at.Range]
		if at.Op == ir.OpRange {
			seen[at.Range] = true
		}
		return again || at.Op != ir.OpRange && at.Op != ir.OpConst
	})
}

// joinedBy finds the range by which a load indexes several axes, the last among them, and the order of
// axes in which these come last.
func joinedBy(l *ir.Expr) (by *ir.Range, order []int) {
	last := ir.FreeRanges(l.Args[len(l.Args)-1])
	var joined []int
	for d, arg := range l.Args {
		in := false
		for r := range ir.FreeRanges(arg) {
			if by == nil && last[r] && d < len(l.Args)-1 {
				by = r
			}
			in = in || r == by
		}
		if in && by != nil {
			joined = append(joined, d)
		} else {
			order = append(order, d)
		}
	}
	return by, append(order, joined...)
}

// contiguous reports whether a range goes from each element to the next in memory when the axes are in the
// given order.
func contiguous(v *ir.Value, l *ir.Expr, order []int, r *ir.Range, facts ir.Facts) bool {
	offset := ir.IntConst(0)
	for _, d := range order {
		offset = ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, offset, v.Axes[d].Extent), l.Args[d])
	}
	stride, ok := ir.Stride(offset, r, facts)
	return ok && stride.IsConst(1)
}

func permuted[T any](list []T, order []int) []T {
	out := make([]T, len(list))
	for to, from := range order {
		out[to] = list[from]
	}
	return out
}
