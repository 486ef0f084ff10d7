package passes

import (
	"slices"

	"github.com/fusec/fusec/ir"
)

// arrangeAxes puts axes of intermediate values beside each other where readers take them as one: heads that
// attention computes as [B, H, S, D] are read as [B, S, H * D] by the product behind it. Elements that readers
// walk through in turn then lie in turn, so that the copy engine can bring them.
func arrangeAxes(g *ir.Graph) {
	fixed := map[*ir.Value]bool{}
	for _, o := range g.Outputs {
		fixed[o.Value] = true
	}
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

// joinedLast is the order of a value's axes in which those that every load takes as one come last, so that the
// elements which that index walks through are neighbours; nil where there are none, or where they are already.
func joinedLast(v *ir.Value, loads []*ir.Expr, facts ir.Facts) []int {
	var order []int
	for i, l := range loads {
		r, o := joinedBy(l)
		if r == nil || i > 0 && !slices.Equal(o, order) || !walks(v, l, o, r, facts) {
			return nil
		}
		order = o
	}
	if slices.IsSorted(order) {
		return nil
	}
	return order
}

// joinedBy finds the range of a load that several axes are indexed by, the last among them, and the order of axes in
// which these come last.
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

// walks reports whether a range goes from each element to the next in memory, where the axes lie in an order.
func walks(v *ir.Value, l *ir.Expr, order []int, r *ir.Range, facts ir.Facts) bool {
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
