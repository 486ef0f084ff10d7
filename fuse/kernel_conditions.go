package fuse

import "github.com/fusec/fusec/ir"

// Conditions that compare indices alone, and where they are computed.

// indexCondition reports whether e compares only indices. Such a guard stays in place, unless it divides: that
// costs less than a register, and is easier to read.
func indexCondition(e *ir.Expr) bool {
	switch e.Op {
	case ir.OpAnd, ir.OpOr:
		return indexCondition(e.Args[0]) && indexCondition(e.Args[1])
	case ir.OpNot:
		return indexCondition(e.Args[0])
	case ir.OpLt, ir.OpLe, ir.OpGt, ir.OpGe, ir.OpEq, ir.OpNe:
		return e.Args[0].Type == ir.Index
	}
	return false
}

// dividesOnce reports whether a condition of the row divides indices, and every column would do so again. Conditions
// are evaluated only as far as needed, so that the compiler cannot move the division ahead of the columns, and
// unrolled columns are as many copies of it.
func (b *body) dividesOnce(e *ir.Expr) bool {
	return b.alongCols && b.level(e) == ir.RowLevel && b.inFull[e] && ir.Has(e, ir.OpFloorDiv, ir.OpMod)
}

// withParts rewrites the parts of e over locals. The guard of a read stays a condition of indices, because later steps
// ask where it holds, and a block that reads for other rows evaluates it for those.
func (b *body) withParts(e *ir.Expr) *ir.Expr {
	if e.Guard == nil || !indexCondition(e.Guard) {
		return e.WithParts(b.build)
	}
	return e.WithParts(func(part *ir.Expr) *ir.Expr {
		if part == e.Guard {
			return b.inPlace(part)
		}
		return b.build(part)
	})
}

// inPlace rewrites a condition of indices over locals, but gives itself no name.
func (b *body) inPlace(e *ir.Expr) *ir.Expr {
	if indexCondition(e) {
		return e.WithParts(b.inPlace)
	}
	return b.build(e)
}
