package conformance

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/simtest"
)

// Windows that are multiplied from what a tile of them covers.

// covered are such windows of each kind: channels that are half a line, and no whole number of lines, columns of an instruction
// that lie apart, windows some way down from each other, rows of a tile instead of its columns, and taps of which some phases
// have fewer.
var covered = []row{
	{name: "half a line", src: `@tf32 @bench(N=16, H=128, W=256)
		graph g(x: f32[N, 16, H, W], w: f32[72, 16, 3, 3]) -> (y: f32[N, 72, H, W]) { y = conv2d(x, w, padding=1) }`, sizes: [][]int64{{2, 9, 37}}},
	{name: "spread", src: `@bench(N=64, H=32, W=32)
		graph g(x: bf16[N, 64, H, W], w: bf16[64, 64, 3, 3], b: bf16[64]) -> (y: bf16[N, 64, H, W]) { y = relu(conv2d(x, w, b, padding=1)) }`, sizes: [][]int64{{3, 11, 31}}},
	{name: "lines and a half", src: `@tf32 @bench(N=64, H=32, W=32)
		graph g(x: f32[N, 48, H, W], w: f32[72, 48, 5, 3], b: f32[72]) -> (y: f32[N, 72, H, W]) { y = tanh(conv2d(x, w, b, padding=(2, 1))) }`, sizes: [][]int64{{2, 13, 30}}},
	{name: "dilated, 3d", src: `@bench(N=4, D=32, H=32, W=64)
		graph g(x: f16[N, 32, D, H, W], w: f16[64, 32, 3, 3, 3]) -> (y: f16[N, 64, D, H - 2, W]) { y = conv3d(x, w, padding=(2, 1, 2), dilation=(2, 2, 2)) }`, sizes: [][]int64{{1, 3, 5, 33}}},
	{name: "strided down", src: `@tf32 @bench(N=16, H=257, W=256)
		graph g(x: f32[N, 32, H, W], w: f32[64, 32, 5, 3]) -> (y: f32[N, 64, (H - 5) / 2 + 1, W]) { y = conv2d(x, w, stride=(2, 1), padding=(0, 1)) }`, sizes: [][]int64{{2, 15, 24}}},
	{name: "rows, channels last", src: `@bench(N=32, H=56, W=56)
		graph g(x: bf16[N, H, W, 64], w: bf16[128, 64, 3, 3]) -> (y: bf16[N, H, W, 128]) {
		y = permute(conv2d(permute(x, order=(0, 3, 1, 2)), w, padding=1), order=(0, 2, 3, 1)) }`, sizes: [][]int64{{2, 9, 13}}},
	{name: "parts of f32", src: `@bench(N=16, H=128, W=128)
		graph g(x: f32[N, 40, H, W], w: f32[64, 40, 3, 3], b: f32[64]) -> (y: f32[N, 64, H, W]) { y = tanh(conv2d(x, w, b, padding=1)) }`, sizes: [][]int64{{2, 9, 37}}},
	{name: "parts, a tap less", src: `@bench(N=16, H=128, W=128)
		graph g(x: f32[N, 32, H, W], w: f32[32, 48, 3, 3]) -> (y: f32[N, 48, 2 * H - 1, 2 * W - 1]) { y = conv_transpose2d(x, w, stride=2, padding=1) }`, sizes: [][]int64{{2, 7, 19}}},
	{name: "parts, none of some phases", src: `@bench(N=16, H=128, W=128)
		graph g(x: f32[N, 32, H, W], w: f32[32, 64, 3, 3]) -> (y: f32[N, 64, H, 3 * W]) { y[n, o, p: H, q: 3 * W] = sum[c, i: 3, k: 3 where q % 3 == 1] x[n, c, p + i - 1, q / 3 + k - 1] * w[c, o, i, k] }`, sizes: [][]int64{{2, 7, 19}}},
	{name: "a tap less", src: `@tf32 @bench(N=16, H=128, W=128)
		graph g(x: f32[N, 64, H, W], w: f32[64, 64, 3, 3]) -> (y: f32[N, 64, 2 * H - 1, 2 * W - 1]) { y = conv_transpose2d(x, w, stride=2, padding=1) }`, sizes: [][]int64{{2, 7, 19}}},
}

// drawnCovers are convolutions of one to three axes whose channels, results, taps, dilations and borders are drawn, some of them
// transposed, some with channels last.
func drawnCovers(count int) (out []row) {
	r := rand.New(rand.NewPCG(41, 0))
	of := func(low, high int) int { return low + r.IntN(high-low+1) }
	names := []string{"D", "H", "W"}
	for n := range count {
		axes, channels, results, transposed := 1+n%3, 16*of(1, 5), 8*of(3, 12)+of(0, 7), n%4 == 3
		var taps, paddings, dilations, extents, bench []string
		for d := range axes {
			k, p, l := of(1, 4), of(0, 2), of(1, 3)
			if d == axes-1 {
				k = of(2, 4)
			}
			extent := fmt.Sprintf("%s + %d", names[3-axes+d], 2*p-l*(k-1))
			if transposed {
				extent = fmt.Sprintf("%s + %d", names[3-axes+d], l*(k-1)-2*p)
			}
			taps, paddings, dilations = append(taps, fmt.Sprint(k)), append(paddings, fmt.Sprint(p)), append(dilations, fmt.Sprint(l))
			extents, bench = append(extents, strings.ReplaceAll(extent, "+ -", "- ")), append(bench, fmt.Sprintf("%s=%d", names[3-axes+d], []int{4096, 128, 32}[axes-1]))
		}
		weights, call := fmt.Sprintf("%d, %d", results, channels), fmt.Sprintf("conv%dd", axes)
		if transposed {
			weights, call = fmt.Sprintf("%d, %d", channels, results), fmt.Sprintf("conv_transpose%dd", axes)
		}
		ones := strings.Repeat(", none", axes)
		dtype, mode := []string{"bf16", "f32", "f16", "f32"}[n/3%4], []string{"", "@tf32 ", "", ""}[n/3%4]
		text := fmt.Sprintf("%s@bench(N=16, %s) graph g(x: T[N, %d, %s], w: T[%s, %s], b: T[%d]) -> (y: T[N, %d, %s]) { y = relu(%s(x, w, dilation=(%s), padding=(%s)) + b[:%s]) }",
			mode, strings.Join(bench, ", "), channels, strings.Join(names[3-axes:], ", "), weights, strings.Join(taps, ", "), results, results, strings.Join(extents, ", "),
			call, strings.Join(dilations, ", "), strings.Join(paddings, ", "), ones)
		out = append(out, row{name: fmt.Sprint(n), src: strings.ReplaceAll(text, "T[", dtype+"["), sizes: map[int][][]int64{
			1: {{2, 61}}, 2: {{2, 14, 19}}, 3: {{1, 8, 9, 12}}}[axes]})
	}
	return out
}

func isCovered(v *ir.Variant) bool {
	if v.Contract == nil {
		return false
	}
	c, _ := v.Contract.Cover()
	return c != nil
}

// TestCovers runs them on a simulated device that looks for races and accesses outside of tensors.
func TestCovers(t *testing.T) {
	t.Parallel()
	dev := openSimulated(t, simtest.Config{Arch: "sm_90a", Order: simtest.Order{Races: true}})
	drawn := 6
	if inFull() {
		drawn = 24
	}
	require.Greater(t, forVariants(t, dev, isCovered, slices.Concat(covered, drawnCovers(drawn))), 10)
}

func TestCoversOnGPU(t *testing.T) {
	mustEnd(t)
	require.Greater(t, forVariants(t, openGPU(t, runtime.Options{}), isCovered, slices.Concat(covered, drawnCovers(60))), 30)
}
