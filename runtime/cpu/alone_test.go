package cpu_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp"
	"github.com/fusec/fusec/ir/interp/plantest"
	"github.com/fusec/fusec/parser"
)

// A range that a value leaves alone still counts: a fold takes its body once at each of
// its points, rows that are equal are sorted each, and an axis of one element has an
// outside.
func TestRangesLeftAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := plantest.RangesLeftAlone(t)
		file, err := parser.Parse("case.fuse", []byte(src), parser.Options{})
		require.NoError(t, err, src)
		g, err := file.Graph("")
		require.NoError(t, err, src)
		n := rapid.SampledFrom([]int64{3, 1, 2, 8}).Draw(t, "n")
		m := rapid.SampledFrom([]int64{3, 1, 2, 17, 40}).Draw(t, "m")
		t.Log(src)
		checkBoth(t, g, waves(t, g, map[string]int64{"N": n, "M": m}))
	})
}

// A sort gives the elements themselves: zeros of either sign are equal, and keep their order
// and their sign.
func TestSortKeepsSignsOfZeros(t *testing.T) {
	file, err := parser.Parse("case.fuse", []byte("graph g(x: f32[N]) -> (y: f32[N]) { y = 1 / sort(x) }"), parser.Options{})
	require.NoError(t, err)
	g, err := file.Graph("")
	require.NoError(t, err)
	negative := math.Copysign(0, -1)
	in := interp.New(ir.F32, 5)
	copy(in.F, []float64{0, negative, -2, 0, negative})
	have := execute(t, planForCPU(t, g), map[string]int64{"N": 5}, []*interp.Tensor{in}, 1)
	require.Equal(t, []float64{-0.5, math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)}, have[0].F)
}
