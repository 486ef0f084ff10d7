package algebra

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fusec/fusec/ir"
)

// TestNeedsAreEnough: what sizes are asked to be multiples of makes multiples of what asked, at all sizes that meet it;
// and nothing is asked where nothing may be assumed.
func TestNeedsAreEnough(t *testing.T) {
	symbols := []string{"A", "B", "C"}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int64{2, 4, 8, 16}).Draw(t, "n")
		needs := NewNeeds(ir.Facts{}, rapid.Bool().Draw(t, "assume"))
		var held []*ir.Expr
		for range rapid.IntRange(1, 3).Draw(t, "questions") {
			e := ir.IntConst(rapid.Int64Range(1, 4).Draw(t, "factor"))
			for _, s := range symbols {
				switch rapid.IntRange(0, 2).Draw(t, s) {
				case 1:
					e = ir.Apply(ir.OpMul, e, ir.Sym(s))
				case 2:
					e = ir.Apply(ir.OpAdd, e, ir.Sym(s))
				}
			}
			if needs.Multiple(e, n) {
				held = append(held, e)
			}
		}
		if !needs.Assume {
			require.True(t, needs.None())
		}
		sizes := map[string]int64{}
		for _, s := range symbols {
			sizes[s] = rapid.Int64Range(0, 4).Draw(t, "size of "+s) * rapid.SampledFrom([]int64{1, n}).Draw(t, "step")
		}
		if when := needs.Condition(); when != nil {
			if v, ok := ir.EvalSize(when, sizes); !ok || v == 0 {
				return
			}
		}
		for _, e := range held {
			v, ok := ir.EvalSize(e, sizes)
			require.True(t, ok)
			require.Zero(t, v%n, "%s at %v", e, sizes)
		}
	})
}
