package fuse

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/fusec/fusec/ir"
)

// TestConditionsThatDivide: a condition of the row that divides is computed once for the row, and no other condition of
// indices is. The guard of a read keeps its own.
func TestConditionsThatDivide(t *testing.T) {
	for _, c := range []struct {
		name, condition string
		once            bool
	}{
		{"a quotient", "iota(N)[:, none] / P < P", true},
		{"a remainder, among others", "iota(N)[:, none] > 0 && iota(N)[:, none] % P < 3", true},
		{"no division", "iota(N)[:, none] < P", false},
		{"of the column too", "iota(N)[:, none] / P < iota(M)", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := planOf(t, "graph g(x: f32[N, M], z: f32[P]) -> (y: f32[N, M], w: f32[P]) {\n"+
				"    a = where("+c.condition+", x, 0)\n    y = a / sum(a, keep=true, axis=1)\n    w = z\n}")
			found := 0
			for _, v := range p.Kernels[0].Variants {
				if v.Schedule.Mapping != ir.RowMapping {
					continue
				}
				found++
				named := 0
				for _, l := range v.Locals {
					if l.Type == ir.Bool {
						named++
						assert.Equal(t, ir.RowLevel, l.Level)
					}
					if l.Def != nil && l.Def.Guard != nil {
						assert.False(t, ir.Has(l.Def.Guard, ir.OpLocal), "%v", l.Def)
					}
				}
				assert.Equal(t, c.once, named > 0)
			}
			assert.Positive(t, found)
		})
	}
}
