package ir

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestSizeText: an expression is read back from its steps whatever follows an operation.
func TestSizeText(t *testing.T) {
	d, v := Sym("D"), Sym("V")
	for _, e := range []*Expr{
		Apply(OpAdd, d, IntConst(351)), Apply(OpFloorDiv, Apply(OpMul, d, v), IntConst(2)), Apply(OpMul, Apply(OpAdd, d, v), Apply(OpAdd, v, IntConst(1))),
	} {
		assert.Equal(t, e.String(), SizeOf(e, map[string]int{"D": 0, "V": 1}).Text([]string{"D", "V"}))
	}
}
