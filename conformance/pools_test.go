package conformance

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/simtest"
)

// drawnPools are windows side by side, of a few taps and of many, in two and three directions, of any type and fold, with
// what may stand around them, of planes that are whole windows and others, by numbers and by symbols.
func drawnPools(seed uint64, count int) (out []row) {
	r := rand.New(rand.NewPCG(seed, 1))
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	for n := range count {
		dtype, fold := pick("f32", "f16", "bf16", "i32", "u8", "f64"), pick("sum", "max", "min", "sum")
		down, along, deep := 1+r.IntN(6), 2+r.IntN(9), 1+r.IntN(2)*r.IntN(4)
		at := func(row, tap string, taps int) string {
			return fmt.Sprintf("%d * %s + %s%s", taps, row, tap, pick("", "", fmt.Sprintf(" - %d", r.IntN(3))))
		}
		value := fmt.Sprintf("x[n, %s, %s, %s]", at("o", "k", deep), at("p", "i", down), at("q", "j", along))
		value = "(" + value + fmt.Sprintf(" else %d)", r.IntN(3))
		if dtype != "i32" && dtype != "u8" {
			value = pick(value, value, "s[n] * "+value, "relu("+value+" - 1)")
		}
		src := fmt.Sprintf("@bench(N=512, D=4, H=64, W=64) graph g(x: %[1]s[N, D, H, W], s: %[1]s[N]) -> (y: %[1]s[N, D / %[3]d, H / %[4]d, W / %[5]d]) { "+
			"y[n, o: D / %[3]d, p: H / %[4]d, q: W / %[5]d] = %[1]s(%[2]s[k: %[3]d, i: %[4]d, j: %[5]d] %[6]s) }", dtype, fold, deep, down, along, value)
		sizes := [][]int64{{2, int64(deep), int64(3*down + 1), int64(5*along + n%3)}, {1, int64(2 * deep), int64(down), int64(8 * along)}, {3, int64(deep), int64(2 * down), 16}}
		out = append(out, row{name: fmt.Sprint("pool ", seed, "/", n, " ", src), src: src, sizes: sizes})
	}
	return out
}

// pools are such of numbers, as they are written.
var pools = []row{
	{name: "means of 8", src: `@bench(N=65536) graph g(x: bf16[N, 16, 32]) -> (y: bf16[N, 2, 4]) { y = avg_pool2d(x, 8) }`, sizes: [][]int64{{3}, {130}}},
	{name: "largest of 7", src: `@bench(N=65536) graph g(x: f32[N, 14, 28]) -> (y: f32[N, 2, 4]) { y = max_pool2d(x, 7) }`, sizes: [][]int64{{3}, {130}}},
	{name: "largest of 5, in part", src: `@bench(N=65536) graph g(x: f16[N, 13, 23]) -> (y: f16[N, 2, 4]) { y = max_pool2d(relu(x), 5) * 2 }`, sizes: [][]int64{{3}, {33}}},
	{name: "means of cubes", src: `@bench(N=65536) graph g(x: f32[N, 8, 8, 12]) -> (y: f32[N, 2, 2, 3]) { y = avg_pool3d(x, 4) }`, sizes: [][]int64{{3}, {33}}},
	{name: "places", src: `@bench(N=65536) graph g(x: f32[N, 4, 12]) -> (y: i64[N, 2, 6]) { y[n, p: 2, q: 6] = argmax[i: 2, j: 2] x[n, 2 * p + i, 2 * q + j] }`, sizes: [][]int64{{3}, {33}}},
	{name: "two folds", src: `@bench(N=65536) graph g(x: bf16[N, 8, 24], w: f32[4, 3]) -> (y: f32[N, 2, 8], z: bf16[N, 2, 8]) {
		y[n, p: 2, q: 8] = sum[i: 4, j: 3] w[i, j] * f32(x[n, 4 * p + i, 3 * q + j])
		z[n, p: 2, q: 8] = max[i: 4, j: 3] x[n, 4 * p + i, 3 * q + j] }`, sizes: [][]int64{{3}, {33}}},
}

// TestPools runs the variants of windows side by side on simulated devices.
func TestPools(t *testing.T) {
	t.Parallel()
	onSimulators(t, ir.ColumnStencil, pools, 8)
}

// TestDrawnPools: whatever windows are drawn, their variants give what the interpreter gives.
func TestDrawnPools(t *testing.T) {
	t.Parallel()
	dev := openSimulated(t, simtest.Config{Arch: "sm_90a", Order: simtest.Order{Races: true}})
	require.Positive(t, forStrategy(t, dev, ir.ColumnStencil, drawnPools(*stencilFlag, *stencilCount)))
}

func TestPoolsOnGPU(t *testing.T) {
	mustEnd(t)
	require.Positive(t, forStrategy(t, openGPU(t, runtime.Options{}), ir.ColumnStencil, append(drawnPools(*stencilFlag, 4**stencilCount), pools...)))
}
