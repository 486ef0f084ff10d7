package fuse

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// Streams with few queries, as when a model writes one token after another: the
// time is that of reading keys and values once. Heads that share keys are rows of one
// tile, warps divide the keys of a block, and chunks of the keys are blocks of their
// own, whose states are merged in the graph.

// packHeads makes rows of a tile of the heads of a group: a batch range of which keys
// and values know the quotient alone becomes that quotient and the head in the group.
func (lo attendKernel) packHeads(a *ir.Attend) {
	for i, r := range a.Batch {
		n := algebra.GroupOf(r, lo.facts, a.K.Value, a.V.Value)
		if n == 1 {
			continue
		}
		g := lo.g
		outer := g.NewRange(r.Name, ir.Simplify(ir.Apply(ir.OpFloorDiv, r.Extent, ir.IntConst(n)), lo.facts))
		inner := g.NewRange(r.Name+"_in_group", ir.IntConst(n))
		at := ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, outer.At(), ir.IntConst(n)), inner.At())
		with := map[*ir.Range]*ir.Expr{r: at}
		var rows []*ir.Range
		for _, row := range lo.k.Rows {
			if row == r {
				rows = append(rows, outer, inner)
			} else {
				rows = append(rows, row)
			}
		}
		lo.k.Rows = rows
		apply := func(e *ir.Expr) *ir.Expr {
			if e == nil {
				return nil
			}
			return ir.Simplify(ir.Substitute(e, with), lo.inside(ir.FullLevel))
		}
		for _, root := range lo.roots() { // a row may have no columns: what is done once a row must not assume one
			*root.expr = ir.Simplify(ir.Substitute(*root.expr, with), lo.inside(root.level))
		}
		lo.score.Def = apply(lo.score.Def)
		a.Q.Value, a.K.Value, a.V.Value = apply(a.Q.Value), apply(a.K.Value), apply(a.V.Value)
		a.Weight = apply(a.Weight)
		a.Batch[i] = outer
		a.M = append([]*ir.Range{inner}, a.M...)
		return
	}
}
