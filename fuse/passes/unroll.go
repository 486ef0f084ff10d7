package passes

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Limits of reductions that are written out.
const (
	unrolledPoints = 8    // terms at most
	unrolledNodes  = 1000 // nodes of all terms at most
)

// unrollParts writes short reductions over the parts of a concatenation, such as the choice of one value of a stack by a sum with a
// mask, as an expression of the parts. A loop over the parts would pick each by its place, so all would have to be written
// beside each other first. Stacks of stacks are looked through.
func unrollParts(g *ir.Graph) {
	facts, changed := g.Facts(), false
	for _, v := range g.Values {
		if e := unrolled(v, facts); e != nil {
			v.Body, v.Reduce, changed = e, nil, true
		}
	}
	if changed {
		DropDead(g)
	}
}

// unrolled is a reduction over parts as an expression; nil where v is none, or is too long.
func unrolled(v *ir.Value, facts ir.Facts) *ir.Expr {
	if !mayUnroll(v) {
		return nil
	}
	over, left := algebra.RangeSet(v.Reduce.Ranges), unrolledNodes
	body, where := partsAt(v.Body, over, &left), v.Reduce.Where
	if left < 0 || !ir.Contains(body, func(e *ir.Expr) bool { return picksPart(e, over) }) {
		return nil
	}
	op, facts := v.Reduce.Op, facts
	facts.Within = v.Axes
	out, nodes := op.Identity(v.Body.Type), 0
	eachPoint(v.Reduce.Ranges, map[*ir.Range]*ir.Expr{}, func(at map[*ir.Range]*ir.Expr) {
		term := ir.Cast(ir.Simplify(ir.Substitute(body, at), facts), out.Type)
		if where != nil {
			term = ir.Where(ir.Simplify(ir.Substitute(where, at), facts), term, op.Identity(v.Body.Type))
		}
		nodes += form.CostOf(term).Nodes
		out = ir.Apply(op.Info().Combine, out, term).At(v.Body.Span)
	})
	if nodes > unrolledNodes {
		return nil
	}
	return ir.Cast(out, v.Type)
}

// picksPart reports whether an expression is one of two elements, by the place in the given ranges alone.
func picksPart(e *ir.Expr, over map[*ir.Range]bool) bool {
	if !picksByPlace(e) || !ir.Has(e.Args[1], ir.OpLoad) || !ir.Has(e.Args[2], ir.OpLoad) {
		return false
	}
	free := ir.FreeRanges(e.Args[0])
	return len(free) > 0 && algebra.Subset(free, over)
}

// mayUnroll reports whether a value is a short reduction that tensor cores, scans, orders and scatters have no use for.
func mayUnroll(v *ir.Value) bool {
	if v.Reduce == nil || v.Reduce.Rank != nil || v.Reduce.Op.IsArg() || form.Crosses(v) || form.ScanOf(v) != nil || form.ScatterIn(v) != nil {
		return false
	}
	n := knownPoints(v.Reduce.Ranges)
	return n > 0 && n <= unrolledPoints
}

// partsAt is an expression that reads the parts of concatenations, and of those among these, in place of the wholes; and in place
// of values with an element for each point of the given ranges what these are computed from, as the mask that chooses among the parts.
// It reads so many values that way as are left, and no more if that is negative: each may read several before it, and so on.
func partsAt(e *ir.Expr, over map[*ir.Range]bool, left *int) *ir.Expr {
	return ir.Rewrite(e, func(e *ir.Expr) *ir.Expr {
		if *left < 0 || e.Op != ir.OpLoad || e.From.IsInput() || e.From.Reduce != nil || !picksByPlace(e.From.Body) && !algebra.DependsOnAny(e, over) {
			return e
		}
		*left--
		return partsAt(form.BodyAt(e), over, left)
	})
}
