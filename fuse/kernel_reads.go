package fuse

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// directRead returns the read that an operand consists of, also through a local and a cast.
func directRead(e *ir.Expr) *ir.Expr {
	if e.Op == ir.OpLocal && e.Local.Def != nil {
		e = e.Local.Def
	}
	return algebra.ReadIn(e)
}

// storedRead is the read that an operand consists of, where memory holds its elements in type t, as tiles
// do: only such a read may be copied. Other reads, such as integers beside 16-bit floats, are converted,
// and have another size.
func storedRead(e *ir.Expr, t ir.DType) *ir.Expr {
	if read := directRead(e); read != nil && read.Type == t && e.Type.IsFloat() == t.IsFloat() {
		return read
	}
	return nil
}

// largestRead returns the read with the most elements in an expression over locals.
func largestRead(e *ir.Expr) *ir.Expr {
	var best *ir.Expr
	ir.WalkThrough(func(e *ir.Expr) bool {
		if e.Op == ir.OpRead && (best == nil || len(e.Arg.Buffer.Shape) > len(best.Arg.Buffer.Shape)) {
			best = e
		}
		return true
	}, e)
	return best
}

// eachRead calls f for the reads in expressions, those in locals that they name included.
func eachRead(f func(*ir.Expr), exprs ...*ir.Expr) {
	ir.WalkThrough(func(e *ir.Expr) bool {
		if e.Op == ir.OpRead {
			f(e)
		}
		return true
	}, exprs...)
}

// waits reports whether an expression reads the result of a fold.
func waits(e *ir.Expr) bool { return ir.Has(e, ir.OpLocal) }
