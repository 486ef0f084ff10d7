package algebra

import "github.com/fusec/fusec/ir"

// NeedsWhole reports whether an operation needs the whole value of its indices: its result would
// be wrong if an index had wrapped around.
func NeedsWhole(e *ir.Expr) bool {
	if len(e.Args) == 0 || e.Args[0].Type != ir.Index {
		return false
	}
	switch e.Op {
	case ir.OpFloorDiv, ir.OpMod, ir.OpMin, ir.OpMax, ir.OpCast:
		return true
	}
	return e.Op.Info().Result == ir.ToBool
}

// ReachOf is the largest magnitudes of an index, or of its parts where it is computed from elements of
// tensors. The kernel's text takes care of those elements.
func ReachOf(e *ir.Expr, facts ir.Facts) []*ir.Expr {
	if e.Type != ir.Index {
		return nil
	}
	if ir.OfData(e) {
		var out []*ir.Expr
		for _, a := range e.Args {
			out = append(out, ReachOf(a, facts)...)
		}
		return out
	}
	if e.Op == ir.OpRange {
		return nil // the extents of ranges are listed elsewhere
	}
	low, high := ir.Bounds(e, facts)
	if low == nil || high == nil {
		return []*ir.Expr{magnitude(e)}
	}
	return []*ir.Expr{high, ir.Simplify(ir.Apply(ir.OpNeg, low), facts)}
}

// magnitude bounds the magnitude of an index by the magnitudes of its parts.
func magnitude(e *ir.Expr) *ir.Expr {
	switch e.Op {
	case ir.OpConst:
		return ir.IntConst(max(e.Int, -e.Int))
	case ir.OpRange:
		return e.Range.Extent
	case ir.OpSym:
		return e
	case ir.OpMul:
		return ir.Apply(ir.OpMul, magnitude(e.Args[0]), magnitude(e.Args[1]))
	case ir.OpFloorDiv:
		return magnitude(e.Args[0])
	}
	out := ir.IntConst(0)
	for _, a := range e.Args {
		if a.Type == ir.Index {
			out = ir.Apply(ir.OpAdd, out, magnitude(a))
		}
	}
	return out
}
