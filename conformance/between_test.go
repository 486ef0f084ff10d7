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

// Results of two phases that lie between each other and are stored together.

// between are such results of each kind: as many taps in each phase and fewer in some, along one to three axes, of even and odd
// extents, with windows that are covered and that come tap by tap, and with something read beside them.
var between = []row{
	{name: "even, 4x4", src: `@tf32 @bench(N=16, H=128, W=128)
		graph g(x: f32[N, 64, H, W], w: f32[64, 64, 4, 4], b: f32[64]) -> (y: f32[N, 64, 2 * H, 2 * W]) { y = relu(conv_transpose2d(x, w, b, stride=2, padding=1)) }`, sizes: [][]int64{{2, 7, 20}, {1, 3, 33}}},
	{name: "odd, 3x3", src: `@bench(N=16, H=128, W=128)
		graph g(x: bf16[N, 64, H, W], w: bf16[64, 72, 3, 3]) -> (y: bf16[N, 72, 2 * H - 1, 2 * W - 1]) { y = conv_transpose2d(x, w, stride=2, padding=1) }`, sizes: [][]int64{{2, 7, 19}}},
	{name: "even, 3x3, added", src: `@tf32 @bench(N=16, H=128, W=128)
		graph g(x: f32[N, 32, H, W], w: f32[32, 136, 3, 3], z: f32[N, 136, 2 * H, 2 * W]) -> (y: f32[N, 136, 2 * H, 2 * W]) {
		y = gelu(conv_transpose2d(x, w, stride=2, padding=1, output_padding=1)) * z }`, sizes: [][]int64{{2, 5, 18}}},
	{name: "one axis", src: `@bench(N=16, L=4096)
		graph g(x: f16[N, 128, L], w: f16[128, 64, 4]) -> (y: f16[N, 64, 2 * L]) { y = conv_transpose1d(x, w, stride=2, padding=1) }`, sizes: [][]int64{{2, 75}}},
	{name: "three axes", src: `@tf32 @bench(N=4, D=32, H=32, W=32)
		graph g(x: f32[N, 32, D, H, W], w: f32[32, 64, 3, 5, 5], b: f32[64]) -> (y: f32[N, 64, 2 * D - 1, 2 * H + 1, 2 * W]) {
		y = leaky_relu(conv_transpose3d(x, w, b, stride=2, padding=(1, 1, 2), output_padding=(0, 0, 1)), 0.2) }`, sizes: [][]int64{{1, 2, 3, 9}}},
	{name: "the same windows", src: `@tf32 @bench(N=16, H=128, W=128)
		graph g(x: f32[N, 64, H, W], w: f32[64, 40, 4, 4], b: f32[40]) -> (y: f32[N, 40, 2 * H + 2, 2 * W + 2]) { y = tanh(conv_transpose2d(x, w, b, stride=2)) }`, sizes: [][]int64{{2, 7, 19}}},
	{name: "across", src: `@tf32 @bench(N=16, H=64, W=256)
		graph g(x: f32[N, 64, H, W], w: f32[64, 64, 3, 4]) -> (y: f32[N, 64, H, 2 * W]) { y = conv_transpose2d(x, w, stride=(1, 2), padding=1) }`, sizes: [][]int64{{1, 6, 17}}},
}

// drawnBetween are transposed convolutions of one to three axes, of stride 2 along the last, whose other figures are drawn.
func drawnBetween(count int) (out []row) {
	r := rand.New(rand.NewPCG(77, 0))
	of := func(low, high int) int { return low + r.IntN(high-low+1) }
	names := []string{"D", "H", "W"}
	for n := range count {
		axes, channels, results := 1+n%3, 16*of(1, 5), 8*of(3, 17)+of(0, 1)
		var taps, paddings, more, strides, extents, bench []string
		for d := range axes {
			k, p, s, o := of(1, 5), of(0, 1), of(1, 2), 0
			if d == axes-1 {
				k, s = of(2, 5), 2
			}
			if s == 2 {
				o = of(0, 1)
			}
			taps, paddings, more, strides = append(taps, fmt.Sprint(k)), append(paddings, fmt.Sprint(p)), append(more, fmt.Sprint(o)), append(strides, fmt.Sprint(s))
			extents = append(extents, fmt.Sprintf("(%s - 1) * %d + %d", names[3-axes+d], s, k-2*p+o))
			bench = append(bench, fmt.Sprintf("%s=%d", names[3-axes+d], []int{4096, 128, 32}[axes-1]))
		}
		dtype, mode := []string{"bf16", "f32", "f16"}[n/3%3], []string{"", "@tf32 ", ""}[n/3%3]
		text := fmt.Sprintf("%s@bench(N=16, %s) graph g(x: T[N, %d, %s], w: T[%d, %d, %s], b: T[%d]) -> (y: T[N, %d, %s]) { y = relu(conv_transpose%dd(x, w, b, stride=(%s), padding=(%s), output_padding=(%s))) }",
			mode, strings.Join(bench, ", "), channels, strings.Join(names[3-axes:], ", "), channels, results, strings.Join(taps, ", "), results, results, strings.Join(extents, ", "),
			axes, strings.Join(strides, ", "), strings.Join(paddings, ", "), strings.Join(more, ", "))
		if axes == 1 {
			text = strings.NewReplacer("=("+strides[0]+")", "="+strides[0], "=("+paddings[0]+")", "="+paddings[0], "=("+more[0]+")", "="+more[0]).Replace(text)
		}
		out = append(out, row{name: fmt.Sprint(n), src: strings.ReplaceAll(text, "T[", dtype+"["), sizes: map[int][][]int64{
			1: {{2, 61}}, 2: {{2, 7, 19}}, 3: {{1, 3, 4, 11}}}[axes]})
	}
	return out
}

func storesTogether(v *ir.Variant) bool { return v.Contract != nil && v.Contract.Between != nil }

// TestBetween runs them on a simulated device that looks for races and accesses outside of tensors.
func TestBetween(t *testing.T) {
	t.Parallel()
	dev := openSimulated(t, simtest.Config{Arch: "sm_90a", Order: simtest.Order{Races: true}})
	drawn := 6
	if inFull() {
		drawn = 24
	}
	require.Greater(t, forVariants(t, dev, storesTogether, slices.Concat(between, drawnBetween(drawn))), 10)
}

func TestBetweenOnGPU(t *testing.T) {
	mustEnd(t)
	require.Greater(t, forVariants(t, openGPU(t, runtime.Options{}), storesTogether, slices.Concat(between, drawnBetween(60))), 30)
}
