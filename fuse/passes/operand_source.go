package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// orderAsRead puts the axes of operands of products of f32 in the order of memory of what they are computed from. Threads multiply and
// add operands in any order, while a kernel that has rows along memory would store such a value across it, element by element:
// transpose(x * s[:, none]) @ x has an operand that lies as x does.
func orderAsRead(g *ir.Graph) {
	if g.TF32 {
		return
	}
	fixed, elsewhere := resultsOf(g), map[*ir.Value]bool{}
	for _, p := range g.Values {
		multiplies := form.Crosses(p) && p.Body.Type == ir.F32
		for _, l := range p.Loads() {
			elsewhere[l.From] = elsewhere[l.From] || !multiplies || !rowWise(l)
		}
	}
	order := map[*ir.Value][]int{}
	for _, v := range g.Values {
		if v.IsInput() || v.Reduce != nil || v.Type != ir.F32 || fixed[v] || elsewhere[v] {
			continue
		}
		if o := orderOfSources(v); !slices.IsSorted(o) {
			order[v] = o
		}
	}
	if len(order) > 0 {
		reorder(g, order)
	}
}

// orderOfSources is the order of a value's axes in which the tensors that have all of them lie; nil where there are none, or
// several orders.
func orderOfSources(v *ir.Value) (order []int) {
	for _, l := range ir.Loads(v.Body) {
		var o []int
		for _, at := range l.Args {
			if d := slices.IndexFunc(v.Axes, func(r *ir.Range) bool { return ir.DependsOn(at, r) }); d >= 0 && !slices.Contains(o, d) {
				o = append(o, d)
			}
		}
		switch {
		case len(o) < len(v.Axes): // smaller than the value
		case order != nil && !slices.Equal(o, order):
			return nil
		default:
			order = o
		}
	}
	return order
}
