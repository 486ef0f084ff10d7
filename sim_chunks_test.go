package fusec

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/simtest"
)

// TestRowsInChunksSimulated: rows that registers and rings hold together, more than two for each
// block, so that blocks take tickets for the others: of one row all its chunks are whole, of the
// other its last warps have none.
func TestRowsInChunksSimulated(t *testing.T) {
	for _, order := range []simtest.Order{{Races: true}, {Early: true, Backwards: true}} {
		_, dev := openSimulated(t, simtest.Config{Arch: "sm_90a", Multiprocessors: 2, BlocksPerMultiprocessor: 1, Order: order})
		p, f := loaded(t, dev, "graph g(x: bf16[N, M]) -> (y: bf16[N, M]) {\n    y = softmax(x)\n}")
		require.True(t, slices.ContainsFunc(p.Plan().Kernels[0].Variants, func(v *ir.Variant) bool { return v.Schedule.Held > 0 }))
		for _, set := range [][]int64{{7, 81920}, {9, 66320}} {
			sizes, fit := sizesOf(p.Graph(), set)
			require.True(t, fit)
			t.Run(fmt.Sprint(order, set), func(t *testing.T) { compareWithInterpreter(t, p.Graph(), f, sizes) })
		}
	}
}

// TestPlacesInChunksSimulated: the first of many equal elements is found in a sweep that goes through
// the chunks of a row in another order than theirs.
func TestPlacesInChunksSimulated(t *testing.T) {
	_, dev := openSimulated(t, simtest.Config{Arch: "sm_90a", Multiprocessors: 2, BlocksPerMultiprocessor: 1})
	p, f := loaded(t, dev, `graph g(x: bf16[N, M]) -> (y: bf16[N, M], at: i64[N]) {
		m = max(x, axis=1, keep=true)
		y = x - m
		at = argmax(f32(x) > f32(m) - 3, axis=1) }`)
	require.Len(t, p.Plan().Kernels, 1)
	require.True(t, slices.ContainsFunc(p.Plan().Kernels[0].Variants, func(v *ir.Variant) bool { return v.Schedule.Held > 0 }))
	compareUpTo(t, p, f, [][]int64{{7, 81920}}, 1<<24)
}
