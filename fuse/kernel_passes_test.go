package fuse

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/fusec/fusec/ir"
)

// TestPassesThatReadsWaitFor: an expression is computed after every fold whose result it needs, in its operands and in the conditions of its
// reads.
func TestPassesThatReadsWaitFor(t *testing.T) {
	st := &stages{memo: map[*ir.Expr]int{}, done: map[*ir.Local]*ir.Fold{}, fold: map[*ir.Fold]int{}}
	result := func(pass int, prefix ir.Prefix) *ir.Expr {
		l, f := &ir.Local{Name: "l", Type: ir.F32}, &ir.Fold{Prefix: prefix}
		st.done[l], st.fold[f] = f, pass
		return ir.LocalRef(l)
	}
	read := func(offset, guard *ir.Expr) *ir.Expr {
		return &ir.Expr{Op: ir.OpRead, Type: ir.F32, Args: []*ir.Expr{offset}, Guard: guard}
	}
	one := ir.Num(ir.F32, 1)
	for want, exprs := range map[int][]*ir.Expr{
		0: {nil, one, read(one, nil)},
		1: {result(1, ir.WholeRow), result(2, ir.Inclusive), ir.Apply(ir.OpAdd, one, result(1, ir.WholeRow))},
		3: {read(one, result(3, ir.WholeRow)), read(result(3, ir.WholeRow), result(1, ir.WholeRow)), read(result(1, ir.WholeRow), result(3, ir.WholeRow)),
			ir.Apply(ir.OpMul, result(3, ir.WholeRow), read(one, result(2, ir.WholeRow)))},
	} {
		for i, e := range exprs {
			for range 2 { // the second time as it is remembered
				assert.Equal(t, want, st.after(e), "%d of %d", i, want)
			}
		}
	}
}
