package fuse

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

// TestFewColumns says which mapping a product takes by the columns of its result.
func TestFewColumns(t *testing.T) {
	const across, along = "(w: bf16[M, K], x: bf16[K, N]) -> (y: bf16[M, N]) { y = w @ x }",
		"(w: bf16[M, K], x: bf16[N, K]) -> (y: bf16[M, N]) { y = w @ transpose(x) }"
	for _, c := range []struct {
		text    string
		m, n, k int64
		mapping ir.Mapping
	}{
		{across, 8192, 1, 8192, ir.RowMapping},
		{along, 8192, 1, 8192, ir.RowMapping},
		{across, 8191, 1, 8191, ir.RowMapping},
		{across, 8192, 3, 8192, ir.GemvMapping},
		{across, 8192, 15, 8192, ir.GemvMapping},
		{along, 8192, 3, 8192, ir.WarpgroupMapping},
		{across, 8192, 16, 8192, ir.WarpgroupMapping},
		{across, 8192, 24, 8192, ir.WarpgroupMapping},
		{"(w: f32[M, K], x: f32[K, N]) -> (y: f32[M, N]) { y = w @ x }", 8192, 1, 8192, ir.RowMapping},
		{"(w: bf16[K, M], x: bf16[K, N]) -> (y: bf16[M, N]) { y = transpose(w) @ x }", 8192, 1, 8192, ir.FlatMapping},
		{"(w: i8[M, K], x: bf16[K, N]) -> (y: bf16[M, N]) { y[m, n] = bf16(sum[k] f32(w[m, k]) * f32(x[k, n])) }", 8192, 1, 8192, ir.GemvMapping},
	} {
		t.Run(fmt.Sprint(c.text, c.m, c.n, c.k), func(t *testing.T) {
			p := planWith(t, "graph g"+c.text).At(map[string]int64{"M": c.m, "N": c.n, "K": c.k})
			require.Len(t, p.Kernels, 1)
			k := p.Kernels[0]
			v := k.Variants[chosen(t, k, map[string]int64{"M": c.m, "N": c.n, "K": c.k})]
			assert.Equal(t, c.mapping, v.Schedule.Mapping)
			assert.Equal(t, c.n == 1, len(v.Units) == 1, "a class of one column")
		})
	}
}

// TestUnitRows: a class for one row depends on nothing of the range, and has it nowhere.
func TestUnitRows(t *testing.T) {
	p := planOf(t, `graph g(w: bf16[M, K], x: bf16[K, N], r: f32[M, N], b: f32[N]) -> (y: f32[M, N]) { y = gelu(f32(w @ x) + b) + r }`)
	k := p.Kernels[0]
	found := 0
	for _, v := range k.Variants {
		if len(v.Units) == 0 {
			assert.Equal(t, k.Rows, v.Rows(k))
			continue
		}
		found++
		unit := v.Units[0]
		assert.NotContains(t, v.Rows(k), unit)
		assert.True(t, ir.Implies(v.When, ir.Apply(ir.OpLe, unit.Extent, ir.IntConst(1)), ir.Facts{}))
		for _, s := range v.Sections {
			for _, st := range s.Stores {
				assert.False(t, ir.DependsOn(st.Offset, unit))
			}
		}
		for _, l := range v.Locals {
			assert.False(t, ir.DependsOn(l.Def, unit), l.Name)
		}
	}
	assert.Positive(t, found)
}

// TestOneRowIsAWeightedSum: a sum of products with the elements of one row, which the program
// says is one, is read in the mappings of reductions, not in pieces of a matrix.
func TestOneRowIsAWeightedSum(t *testing.T) {
	p, err := Plan(parse(t, `@bench(N=65536, M=4096)
		graph g(x: bf16[N, M], w: bf16[M]) -> (y: bf16[N]) { y = bf16(sum(f32(x) * f32(w), axis=-1)) }`), Options{})
	require.NoError(t, err)
	for _, v := range p.Kernels[0].Variants {
		assert.NotEqual(t, ir.GemvMapping, v.Schedule.Mapping)
	}
}
