package fuse

import "github.com/fusec/fusec/ir"

// scores lowers the product that a stream weighs by: a local that sums over the
// depth where it stands.
func (lo *lowering) scores(v *ir.Value, body *ir.Expr) *ir.Expr {
	l := lo.local(v.Name, ir.F32, ir.FullLevel)
	l.Def = ir.Reduce(&ir.Reduction{Op: ir.Sum, Ranges: v.Reduce.Ranges}, ir.Cast(body, ir.F32))
	l.Value, l.Span = v, v.Origin.Span
	lo.score = l
	return lo.rounded(ir.LocalRef(l), v.Type)
}

// boundArgs makes parameters of the bounds of the mask.
func (lo *lowering) boundArgs() {
	for _, p := range (attendKernel{lo.kernel}).bounds() {
		lo.arg(p.low)
		lo.arg(p.high)
	}
}
