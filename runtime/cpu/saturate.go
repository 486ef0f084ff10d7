package cpu

import (
	"math/bits"

	"github.com/fusec/fusec/ir"
)

// saturates reports whether an operation on indices made of data may need more than 64 bits.
func (g *gen) saturates(e *ir.Expr) bool {
	return ir.Saturating(e.Op) != nil && ir.MayOverflow(e, g.bits)
}

// bits bounds indices whose ranges and sizes are known here.
func (g *gen) bits(e *ir.Expr) (n int, known bool) {
	if e.Op == ir.OpRange {
		return bits.Len64(uint64(g.extent[e.Range])), true
	}
	if ir.OfData(e) {
		return 0, false
	}
	v, known := g.number(e)
	return bits.Len64(uint64(max(v, -v))), known
}

// saturating compiles such an operation on scalars.
func (g *gen) saturating(op ir.Op, args ...operand) operand {
	f, second := ir.Saturating(op), len(args)-1
	return g.emit(classInt, false, 0, func(w *worker, i *instr) {
		w.si[i.dst.reg] = f(w.si[i.src[0].reg], w.si[i.src[second].reg])
	}, args...)
}

// saturatingOp is such an operation on tiles.
func saturatingOp(op ir.Op) func(dst, a, b []int64) {
	f := ir.Saturating(op)
	return func(dst, a, b []int64) {
		for i := range dst {
			dst[i] = f(a[i], b[i])
		}
	}
}
