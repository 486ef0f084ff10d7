package explain_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/fuse"
	"github.com/fusec/fusec/fuse/explain"
	"github.com/fusec/fusec/parser"
)

// drawnWindow draws a convolution, or a transposed one, with what may be around it, and its gradient.
func drawnWindow(r *rand.Rand) string {
	dims, channels, groups := 1+r.IntN(2), 32<<r.IntN(3), 1
	taps, stride, dilation := 1+r.IntN(5), 1+r.IntN(3), 1+r.IntN(4)
	dtype, mode := []string{"bf16", "f16", "f32", "f32"}[r.IntN(4)], ""
	if dtype == "f32" && r.IntN(2) == 0 {
		mode = "@tf32 "
	}
	if r.IntN(4) == 0 {
		groups = 4
	}
	call, weight := fmt.Sprintf("conv%dd", dims), fmt.Sprintf("64, %d", channels/groups)
	if r.IntN(2) == 0 {
		call, weight = fmt.Sprintf("conv_transpose%dd", dims), fmt.Sprintf("%d, %d", channels, 64/groups)
	}
	size := []string{", 4096", ", 64, 64"}[dims-1]
	if r.IntN(3) == 0 {
		size = []string{", 3001", ", 57, 55"}[dims-1]
	}
	y := fmt.Sprintf("%s(%s, w, stride=%d, dilation=%d, padding=%d, groups=%d)", call, []string{"x", "silu(x)", "group_norm(x, 8)"}[r.IntN(3)], stride, dilation, r.IntN(3), groups)
	y = fmt.Sprintf([]string{"%s", "relu(%s)", "group_norm(%s, 8)"}[r.IntN(3)], y)
	return fmt.Sprintf("%sgraph f(x: %s[32, %d%s], w: %s[%s%s]) -> (l: f32[]) {\n    y = f32(%s)\n    l = sum(y * y)\n}\n%sgraph d = grad(f)\n",
		mode, dtype, channels, size, dtype, weight, strings.Repeat(fmt.Sprintf(", %d", taps), dims), y, mode)
}

// TestGradientsCostWhatFunctionsDo: a gradient of a convolution takes time of the order of that of the convolution, in a few launches
// more, however its windows step and whatever is around it. Most take three times as long; sums over all places in place of those
// that a tap meets would take hundreds of times as long.
func TestGradientsCostWhatFunctionsDo(t *testing.T) {
	gradientsCost(t, 16, 300, 60, func(seed uint64) string { return drawnWindow(rand.New(rand.NewPCG(seed, 5))) })
}

// gradientsCost asserts that the gradient d of each function f that is drawn is estimated to take less than so many times as long,
// and some launches. few programs are drawn, or in full many.
func gradientsCost(t *testing.T, few, many int, times float64, draw func(seed uint64) string) {
	count := few
	if inFull() {
		count = many
	}
	for seed := range uint64(count) {
		src := draw(seed)
		function, gradient := secondsOf(t, src, "f"), secondsOf(t, src, "d")
		assert.Less(t, gradient, times*function+15*5e-6, "seed %d\n%s", seed, src)
	}
}

// secondsOf is the estimate of a graph of a program.
func secondsOf(t *testing.T, src, graph string) (seconds float64) {
	file, err := parser.Parse("g.fuse", []byte(src), parser.Options{})
	require.NoError(t, err, src)
	g, err := file.Graph(graph)
	require.NoError(t, err, src)
	plan, err := fuse.Plan(g, fuse.Options{})
	require.NoError(t, err, src)
	for _, k := range explain.Explain(g, plan, explain.Options{}).Kernels {
		seconds += *k.Seconds
	}
	return seconds
}
