package fuse

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/fusec/fusec/ir"
)

// TestPlacesCompared: a place is compared with an integer of its row as places are, in as many
// bits as they have; with one of the point, or two integers with each other, in theirs.
func TestPlacesCompared(t *testing.T) {
	for _, c := range []struct {
		name, result, condition string
		wide                    bool // in 64 bits
	}{
		{"an integer of the row", "[N]", "at[:, none] == iota(M)", false},
		{"on the other side of an order", "[N]", "iota(M) < at[:, none]", false},
		{"an integer of each point", "[N, M]", "at == iota(M)", true},
		{"two of the row", "[N]", "at[:, none] == at[:, none] * 2", true},
		{"a place of which less is left", "[N]", "at[:, none] == iota(M) * 3", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := planOf(t, "graph g(x: f32[N, M], at: i64"+c.result+") -> (y: f32[N, M]) { y = where("+c.condition+", x, 0) / sum(x, keep=true, axis=1) }")
			compared, wide := 0, false
			eachExpr(p.Kernels[0].Variants[0].Sections, func(e *ir.Expr, _ ir.Level) *ir.Expr {
				ir.WalkThrough(func(e *ir.Expr) bool {
					if e.Op == ir.OpEq || e.Op == ir.OpLt {
						compared++
						wide = wide || e.Args[0].Type == ir.I64
					}
					return true
				}, e)
				return e
			})
			assert.Positive(t, compared)
			assert.Equal(t, c.wide, wide)
		})
	}
}
