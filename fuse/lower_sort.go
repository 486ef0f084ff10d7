package fuse

import (
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// lowerSort lowers a member that picks from the kernel's order.
func (lo *lowering) lowerSort(v *ir.Value, s *form.Sorted) *ir.Expr {
	if lo.order == nil {
		t := v.Body.Type
		lo.order = &ir.Sort{Key: ir.Cast(lo.expr(ir.Substitute(v.Body, lo.r.at[v])), t.Info().Compute), Type: t,
			Descending: v.Reduce.Op.Descending(), Places: lo.r.at[v][s.Place].Range,
			Value: lo.local(v.Name, t.Info().Compute, ir.FullLevel), Index: lo.local(v.Name+"_index", ir.I64, ir.FullLevel)}
		lo.k.Cols = []*ir.Range{s.Over}
		var rows []*ir.Range
		for _, r := range lo.k.Rows {
			if r != lo.order.Places {
				rows = append(rows, r)
			}
		}
		lo.k.Rows = rows
	}
	if v.Reduce.Inverse { // stored at the element's own place
		return lo.rounded(ir.Cast(lo.order.Places.At(), ir.I64), v.Type)
	}
	picked := lo.order.Value
	if v.Reduce.Op.IsArg() {
		picked = lo.order.Index
	}
	if picked.Value == nil {
		picked.Value, picked.Span = v, v.Origin.Span
	}
	return lo.rounded(ir.LocalRef(picked), v.Type)
}
