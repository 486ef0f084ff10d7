package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// A value between two convolutions is laid out with its channels last for the second. Where it is also added to what
// the second, or a later one, computes, as around the convolutions of a residual network, and that sum is laid out
// too, the copy serves for both: the value is then written once, in one order.

// readLaidOut makes values of which there is a copy in another order read such copies of what they are computed from.
func readLaidOut(g *ir.Graph) {
	copies := copiesInOrder(g)
	if len(copies) < 2 {
		return
	}
	used, turned := map[*ir.Value]bool{}, turnedValues(g, copies)
	for _, v := range g.Values {
		if !turned[v] {
			continue
		}
		v.Body = ir.Rewrite(v.Body, func(e *ir.Expr) *ir.Expr {
			if e.Op != ir.OpLoad || copies[e.From] == nil || copies[e.From] == v || !readsInOrder(e, v.Axes) {
				return e
			}
			used[copies[e.From]] = true
			return inOrderOf(copies[e.From], e)
		})
	}
	if len(used) > 0 {
		afterWhatTheyRead(g, used)
	}
}

// turnedValues are the values computed element for element that are written in another order, if at all: those of which
// there is a copy, and those that only such values are computed from.
func turnedValues(g *ir.Graph, copies map[*ir.Value]*ir.Value) map[*ir.Value]bool {
	turned, other := map[*ir.Value]bool{}, map[*ir.Value]bool{} // other are read in some other way
	for _, o := range g.Outputs {
		other[o.Value] = true
	}
	read := map[*ir.Value]bool{}
	for _, v := range slices.Backward(g.Values) {
		turned[v] = !v.IsInput() && v.Reduce == nil && (copies[v] != nil || read[v] && !other[v])
		for _, l := range v.Loads() {
			read[l.From] = true
			other[l.From] = other[l.From] || !turned[v] || !readsInOrder(l, v.Axes)
		}
	}
	return turned
}

// copiesInOrder are the values that hold another one's elements in another order, no more and no fewer, by that one.
func copiesInOrder(g *ir.Graph) map[*ir.Value]*ir.Value {
	out := map[*ir.Value]*ir.Value{}
	for _, v := range g.Values {
		if v.IsInput() || v.Reduce != nil || v.Body.Op != ir.OpLoad || v.Body.Fill != nil || v.Body.From.IsInput() || readsInOrder(v.Body, v.Axes) {
			continue
		}
		x := v.Body.From
		indices, whole := wholeIndices(v.Body)
		left := func(a *ir.Range) bool { return !slices.Contains(indices, a) }
		if whole && v.Type == x.Type && !slices.ContainsFunc(algebra.Widened(v.Axes), left) {
			out[x] = v
		}
	}
	return out
}

// inOrderOf is a load from a copy of the element that a load reads from the original.
func inOrderOf(copied *ir.Value, load *ir.Expr) *ir.Expr {
	at := make([]*ir.Expr, len(copied.Axes))
	for k, a := range copied.Axes {
		at[k] = ir.IntConst(0)
		if d := slices.IndexFunc(copied.Body.Args, func(e *ir.Expr) bool { return e.Op == ir.OpRange && e.Range == a }); d >= 0 {
			at[k] = load.Args[d]
		}
	}
	return ir.Load(copied, at, nil).At(load.Span)
}

// afterWhatTheyRead moves copies to right behind their originals, ahead of all their readers.
func afterWhatTheyRead(g *ir.Graph, copies map[*ir.Value]bool) {
	behind := map[*ir.Value][]*ir.Value{}
	for _, v := range g.Values {
		if copies[v] {
			behind[v.Body.From] = append(behind[v.Body.From], v)
		}
	}
	var out []*ir.Value
	for _, v := range g.Values {
		if copies[v] {
			continue
		}
		for next := []*ir.Value{v}; len(next) > 0; next = append(behind[next[0]], next[1:]...) { // a copy may have copies
			out = append(out, next[0])
		}
	}
	g.Values = out
}
