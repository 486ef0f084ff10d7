package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// Which values must lie in memory for windows that read them, instead of being computed where they are read.

// isLaidOut reports whether a load is of an operand that a windowed product reads with channels last: a
// value made for that, which must not be computed again at each tap.
func isLaidOut(load *ir.Expr, reader *ir.Value) bool {
	if reader.Reduce == nil || load.From.IsInput() || load.From.Reduce != nil || len(load.Args) == 0 {
		return false
	}
	last := load.Args[len(load.Args)-1]
	if last.Op != ir.OpRange || splitsDims(load.From) {
		return false
	}
	if holdsPatches(load, reader) || holdsWindows(load, reader) || besideWindows(load, reader) {
		return true
	}
	p := windowedProduct(reader)
	return p != nil && (moves(p.input) || reordered(p.input.load.From)) && (last.Range == p.input.channels() || slices.Contains(p.own, last.Range))
}

// splitsDims reports whether a value is a view that divides dims of a tensor into several: its elements are where they were.
func splitsDims(v *ir.Value) bool {
	if v.Body.Op != ir.OpLoad || v.Body.Fill != nil || len(v.Axes) <= len(v.Body.Args) {
		return false
	}
	rest := v.Axes
	for d, at := range v.Body.Args {
		n := 1
		for n < len(rest) && !ir.SameSize(algebra.Product(rest[:n]), v.Body.From.Axes[d].Extent) {
			n++
		}
		if len(rest) == 0 || !ir.SameIndex(at, placeOfDigits(rest[:n]), ir.Facts{}) {
			return false
		}
		rest = rest[n:]
	}
	return len(rest) == 0
}

// copiedOperands is, of each product whose windows are copied from the input as it is, that input, and the same of views between
// the two: threads copy elements, or lines of them, and compute nothing on the way, where a tile would compute each element at
// each tap. What such a product reads in another order than that of its rows and taps is copied before.
func copiedOperands(g *ir.Graph, sizes map[string]int64) map[*ir.Value][]*ir.Value {
	out := map[*ir.Value][]*ir.Value{}
	if !mayAddKernels(g) {
		return out
	}
	windows := readByWindows(g)
	for _, v := range g.Values {
		p := windowedProduct(v)
		if p == nil || p.work(sizes) < windowWork || !moves(p.input) {
			continue
		}
		for _, l := range []*ir.Expr{p.weight, p.input.load} {
			if permutes(l.From) {
				out[v] = append(out[v], l.From)
			}
		}
		if p.exact = p.isExact(g); !p.rowByRow(sizes) && !p.staged(g, sizes) {
			continue
		}
		readers, from := []*ir.Value{v}, p.input.load.From
		for !from.IsInput() && from.Reduce == nil && from.Body.Op == ir.OpLoad && !permutes(from) && movesAlong(from, windows[from]) {
			readers, from = append(readers, from), from.Body.From
		}
		for _, r := range readers {
			out[r] = append(out[r], from)
		}
	}
	return out
}

// permutes reports whether a value reads a tensor whose axes are its own in another order.
func permutes(v *ir.Value) bool {
	if v.IsInput() || v.Reduce != nil {
		return false
	}
	return slices.ContainsFunc(ir.Loads(v.Body), func(l *ir.Expr) bool {
		last := -1
		for _, at := range l.Args {
			d := slices.IndexFunc(v.Axes, func(a *ir.Range) bool { return ir.DependsOn(at, a) && !algebra.IsUnit(a) })
			if d >= 0 && d < last {
				return true
			}
			last = max(last, d)
		}
		return false
	})
}

// reordered reports whether neighbours in an image are not contiguous in what it is read from.
func reordered(v *ir.Value) bool {
	if v.IsInput() {
		return false
	}
	last := v.Axes[len(v.Axes)-1]
	return len(v.Axes) > 3 && slices.ContainsFunc(ir.Loads(v.Body), func(l *ir.Expr) bool {
		return ir.DependsOn(l, last) && !ir.DependsOn(l.Args[len(l.Args)-1], last)
	})
}
