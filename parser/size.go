package parser

import (
	"math/bits"

	"github.com/fusec/fusec/ir"
)

// indexOp applies op to Index expressions, folding what is constant.
func indexOp(op ir.Op, a, b *ir.Expr) *ir.Expr {
	if a.Op == ir.OpConst && b.Op == ir.OpConst && !overflows(op.Info().Infix, a.Int, b.Int) {
		return ir.IntConst(op.Info().Int(a.Int, b.Int, 0))
	}
	switch {
	case op == ir.OpAdd && a.IsConst(0), op == ir.OpMul && a.IsConst(1):
		return b
	case (op == ir.OpAdd || op == ir.OpSub) && b.IsConst(0),
		(op == ir.OpMul || op == ir.OpFloorDiv) && b.IsConst(1):
		return a
	case op == ir.OpMul && (a.IsConst(0) || b.IsConst(0)), op == ir.OpMod && b.IsConst(1):
		return ir.IntConst(0)
	}
	return ir.Apply(op, a, b)
}

func addIndex(a, b *ir.Expr) *ir.Expr { return indexOp(ir.OpAdd, a, b) }
func subIndex(a, b *ir.Expr) *ir.Expr { return indexOp(ir.OpSub, a, b) }
func mulIndex(a, b *ir.Expr) *ir.Expr { return indexOp(ir.OpMul, a, b) }
func divIndex(a, b *ir.Expr) *ir.Expr { return indexOp(ir.OpFloorDiv, a, b) }
func modIndex(a, b *ir.Expr) *ir.Expr { return indexOp(ir.OpMod, a, b) }

func mulOverflows(a, b int64) bool {
	if a == -1<<63 || b == -1<<63 {
		return a != 0 && b != 0 && a != 1 && b != 1
	}
	hi, lo := bits.Mul64(uint64(max(a, -a)), uint64(max(b, -b)))
	return hi != 0 || lo > 1<<63-1
}

// normal returns e in the form that equal sizes share.
func normal(e *ir.Expr) *ir.Expr {
	if e.Op == ir.OpConst || e.Op == ir.OpSym || e.Op == ir.OpRange || unbounded(e) {
		return e
	}
	return ir.Simplify(e, ir.Facts{})
}

// sameSize reports whether a and b are equal for all values of the symbols.
func sameSize(a, b *ir.Expr) bool {
	if a.Op == ir.OpConst && b.Op == ir.OpConst {
		return a.Int == b.Int
	}
	return ir.SameSize(a, b)
}

// facts is what the conditions of the program so far say of its symbols.
func (b *builder) facts() ir.Facts {
	if n := len(b.g.Constraints); n != b.counted {
		b.known, b.counted = b.g.Facts(), n
	}
	return b.known
}

// sameSize reports whether x and y are equal wherever the conditions so far hold. Sizes have other forms
// under other conditions, which those of the moment they were computed at may not have been.
func (b *builder) sameSize(x, y *ir.Expr) bool {
	return sameSize(x, y) || len(b.g.Constraints) > 0 && ir.SameIndex(x, y, b.facts())
}

// inside reports whether 0 <= e < extent is proved for all values of the ranges in e.
func (b *builder) inside(e, extent *ir.Expr) bool {
	if e.Op == ir.OpRange && e.Range.Extent != nil {
		return b.sameSize(e.Range.Extent, extent)
	}
	return !unbounded(e) && (ir.ProveInside(e, extent, ir.Facts{}) || len(b.g.Constraints) > 0 && ir.ProveInside(e, extent, b.facts()))
}

// unbounded reports whether the extent of some range in e is not known yet:
// nothing can be proved about e then.
func unbounded(e *ir.Expr) bool {
	for r := range ir.FreeRanges(e) {
		if r.Extent == nil {
			return true
		}
	}
	return false
}

// product multiplies sizes; ok is false where it does not fit in 64 bits.
func product(sizes []*ir.Expr) (p *ir.Expr, ok bool) {
	p, fixed := ir.IntConst(1), int64(1)
	for _, s := range sizes {
		if s.Op == ir.OpConst {
			if mulOverflows(fixed, s.Int) {
				return ir.IntConst(0), false
			}
			fixed *= s.Int
			continue
		}
		p = mulIndex(p, s)
	}
	return mulIndex(ir.IntConst(fixed), p), true
}
