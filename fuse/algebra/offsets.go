package algebra

import "github.com/fusec/fusec/ir"

// UnitStride reports whether neighbours along a range are neighbours in memory.
func UnitStride(read *ir.Expr, r *ir.Range) bool {
	return UnitStrideOf(read.Args[0], r)
}

// UnitStrideOf reports the same of an offset.
func UnitStrideOf(offset *ir.Expr, r *ir.Range) bool {
	stride, ok := ir.Stride(offset, r, ir.Facts{Positive: true})
	return ok && stride.IsConst(1)
}

// Innermost is the last of a list of ranges.
func Innermost(ranges []*ir.Range) *ir.Range { return ranges[len(ranges)-1] }

// LineShare is the cost in memory of one lane's element if lanes are neighbours along r: 1 if
// the elements are neighbours, 1/32 if all lanes share one element, 32 if the elements are
// scattered.
func LineShare(offset *ir.Expr, r *ir.Range) float64 {
	stride, ok := ir.Stride(offset, r, ir.Facts{Positive: true})
	switch {
	case ok && stride.IsConst(0):
		return 1.0 / 32
	case ok && stride.IsConst(1):
		return 1
	}
	return 32
}

// Contiguous reports whether an offset has stride 1 along lane, and is a multiple of vector wherever
// lane is.
func Contiguous(offset *ir.Expr, lane *ir.Range, vector int64, facts ir.Facts) bool {
	stride, ok := ir.Stride(offset, lane, facts)
	if !ok || !stride.IsConst(1) {
		return false
	}
	start := ir.Substitute(offset, map[*ir.Range]*ir.Expr{lane: ir.IntConst(0)})
	return ir.Multiple(start, vector, facts)
}

// ReadIn returns the read that e is, or is a cast of.
func ReadIn(e *ir.Expr) *ir.Expr {
	if e.Op == ir.OpCast {
		e = e.Args[0]
	}
	if e.Op == ir.OpRead {
		return e
	}
	return nil
}

// WithoutLocals is an expression with each local replaced by its definition.
func WithoutLocals(e *ir.Expr) *ir.Expr {
	return ir.Rewrite(e, func(e *ir.Expr) *ir.Expr {
		if e.Op == ir.OpLocal && e.Local.Def != nil {
			return WithoutLocals(e.Local.Def)
		}
		return e
	})
}

// ReadsMemory reports whether a lowered expression reads an element of a tensor.
func ReadsMemory(e *ir.Expr) bool { return ir.Has(e, ir.OpRead) }

// ReadsLocal reports whether an expression reads a local.
func ReadsLocal(e *ir.Expr, l *ir.Local) bool {
	return ir.Contains(e, func(e *ir.Expr) bool { return e.Op == ir.OpLocal && e.Local == l })
}

// Divisions counts the different divisions in e that a kernel does at every point, because they depend on
// ranges. Divisions of sizes alone are done once.
func Divisions(e *ir.Expr) int {
	found := map[uint64]bool{}
	ir.Walk(e, func(e *ir.Expr) bool {
		if (e.Op == ir.OpFloorDiv || e.Op == ir.OpMod) && len(ir.FreeRanges(e)) > 0 {
			found[e.Hash()] = true
		}
		return true
	})
	return len(found)
}
