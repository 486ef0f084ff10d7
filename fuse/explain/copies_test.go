package explain

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/fusec/fusec/ir"
)

// TestSlotsOfCopies: an element takes what its copy does, and each quotient and remainder of its place as much again; those of one
// place are counted once. Ranges beside each other are digits of one place. A piece takes that once for all of its elements.
func TestSlotsOfCopies(t *testing.T) {
	i := &ir.Range{ID: 1, Name: "i", Extent: ir.IntConst(70)}
	k := &ir.Range{ID: 2, Name: "k", Extent: ir.IntConst(90)}
	arg := &ir.Arg{Name: "x", Type: ir.F32}
	apply := func(op ir.Op, a *ir.Expr, n int64) *ir.Expr { return ir.Apply(op, a, ir.IntConst(n)) }
	operand := func(place *ir.Expr) ir.Operand {
		return ir.Operand{Value: &ir.Expr{Op: ir.OpRead, Type: ir.F32, Arg: arg, Args: []*ir.Expr{place}}}
	}
	place := apply(ir.OpMul, i.At(), 90)
	for divisions := range 4 {
		if divisions > 0 {
			place = ir.Apply(ir.OpAdd, place, apply(ir.OpFloorDiv, k.At(), int64(divisions+1)))
		}
		o := operand(place)
		slots := float64(copyElement + divisions*copyDivision)
		one, two := []*ir.Range{i}, []*ir.Range{i, k}
		assert.Equal(t, slots, slotsOf(o, one, one, ir.F32))
		assert.Equal(t, slots, slotsOf(o, nil, one, ir.F32), "no range")
		assert.Equal(t, slots+2*copyDivision, slotsOf(o, two, one, ir.F32))
		assert.Equal(t, slots+4*copyDivision, slotsOf(o, two, two, ir.F32))
		twice := operand(ir.Apply(ir.OpAdd, place, apply(ir.OpMul, place, 7)))
		assert.Equal(t, slots, slotsOf(twice, one, one, ir.F32), "the same quotients")
		o.Pieces = &ir.Piece{Length: 8}
		assert.Equal(t, slots/8, slotsOf(o, one, one, ir.F32))
		o.Async = true
		assert.Equal(t, float64(copyWindow), slotsOf(o, two, two, ir.F32))
		o.Wide = true
		assert.Equal(t, copyAccess/4.0, slotsOf(o, two, two, ir.F32), "four of an access")
	}
}
