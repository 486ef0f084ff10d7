package conformance

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/simtest"
)

// stencils are programs whose windows lie over each other: in one direction and in two, with strides, dilations, borders
// of any kind, several folds and several reads, along the innermost range and beside it. The sizes have rows in part,
// lanes in part, and none.
var stencils = []row{
	{name: "depthwise", src: `@bench(N=64, C=192, H=28, W=28)
		graph g(x: bf16[N, C, H, W], w: bf16[C, 1, 7, 7], b: bf16[C]) -> (y: bf16[N, C, H, W]) { y = relu(conv2d(x, w, b, padding=3, groups=C)) }`,
		sizes: [][]int64{{2, 3, 9, 16}, {1, 2, 5, 12}, {3, 2, 1, 7}, {1, 1, 4, 1}, {0, 1, 4, 4}}},
	{name: "depthwise, strided", src: `@bench(N=64, C=192, H=28, W=28)
		graph g(x: f16[N, C, 2 * H, 2 * W], w: f16[C, 1, 5, 3]) -> (y: f16[N, C, H, W]) { y = conv2d(x, w, stride=2, padding=(2, 1), groups=C) }`,
		sizes: [][]int64{{2, 3, 9, 16}, {1, 2, 5, 12}, {3, 2, 1, 7}}},
	{name: "depthwise, dilated", src: `@bench(N=64, C=192, H=56, W=56)
		graph g(x: f32[N, C, H, W], w: f32[C, 1, 3, 3]) -> (y: f32[N, C, H, W]) { y = conv2d(x, w, padding=(2, 3), dilation=(2, 3), groups=C) }`,
		sizes: [][]int64{{2, 3, 9, 16}, {1, 2, 5, 12}, {3, 2, 1, 7}}},
	{name: "depthwise, 3d", src: `@bench(N=8, C=64, H=28, W=28)
		graph g(x: f32[N, C, H, W, W], w: f32[C, 1, 3, 3, 3]) -> (y: f32[N, C, H, W, W]) { y = conv3d(x, w, padding=1, groups=C) }`,
		sizes: [][]int64{{1, 2, 3, 8}, {1, 2, 5, 7}}},
	{name: "depthwise, channels last", src: `@bench(N=64, C=192, H=28, W=28)
		graph g(x: bf16[N, H, W, C], w: bf16[7, 7, C]) -> (y: bf16[N, H, W, C]) {
		y[n, p: H, q: W, c] = sum[i, j] w[i, j, c] * (x[n, p + i - 3, q + j - 3, c] else 0) }`,
		sizes: [][]int64{{2, 9, 5, 16}, {1, 4, 6, 5}, {1, 1, 1, 12}}},
	{name: "causal", src: `@bench(B=16, S=2048, C=1024)
		graph g(x: bf16[B, S, C], w: bf16[C, 4], b: bf16[C]) -> (y: bf16[B, S, C]) {
		y[n, t: S, c] = silu(b[c] + sum[k: 4] w[c, k] * (x[n, t + k - 3, c] else 0)) }`,
		sizes: [][]int64{{2, 9, 16}, {3, 17, 20}, {1, 1, 8}}},
	{name: "largest", src: `@bench(N=64, C=64, H=112, W=112)
		graph g(x: bf16[N, C, H, W]) -> (y: bf16[N, C, (H - 1) / 2 + 1, (W - 1) / 2 + 1]) { y = max_pool2d(x, 3, stride=2, padding=1) }`,
		sizes: [][]int64{{2, 3, 18, 32}, {1, 2, 9, 23}, {3, 2, 1, 7}}},
	{name: "largest, of what is computed", src: `@bench(N=64, C=64, H=112, W=112)
		graph g(x: f32[N, C, H, W], m: f32[C], s: f32[C]) -> (y: f32[N, C, H, W]) {
		y = max_pool2d(relu((x - m[:, none, none]) * s[:, none, none]), 3, stride=1, padding=1) }`,
		sizes: [][]int64{{2, 3, 18, 32}, {1, 2, 9, 23}, {3, 2, 1, 7}}},
	{name: "means, with the border and without", src: `@bench(N=64, C=64, H=112, W=112)
		graph g(x: f16[N, C, H, W]) -> (y: f16[N, C, H, W], z: f16[N, C, H, W]) {
		y = avg_pool2d(x, 3, stride=1, padding=1)
		z[n, c, p: H, q: W] = min[i: 3, j: 3] (x[n, c, p + i - 1, q + j - 1] else 3) }`,
		sizes: [][]int64{{2, 3, 18, 32}, {1, 2, 9, 23}}},
	{name: "places of the largest", src: `@bench(N=64, C=64, H=112, W=112)
		graph g(x: f32[N, C, H, W]) -> (y: i32[N, C, H, W]) {
		y[n, c, p: H, q: W] = i32(argmax[i: 3, j: 3] (x[n, c, p + i, q + j] else -inf)) }`,
		sizes: [][]int64{{2, 3, 18, 32}, {1, 2, 9, 23}}},
	{name: "one result", src: `@bench(N=64, C=64, H=56, W=56)
		graph g(x: f16[N, C, H, W], w: f16[1, C, 3, 3]) -> (y: f16[N, 1, H, W]) { y = conv2d(x, w, padding=1) }`,
		sizes: [][]int64{{2, 5, 18, 32}, {1, 2, 9, 23}, {3, 0, 2, 8}}},
	{name: "a blur of bytes", src: `@bench(H=4096, W=4096)
		graph g(x: u8[H, W], k: f32[5, 5]) -> (y: f32[H, W]) {
		y[p: H, q: W] = sum[i, j] k[i, j] * f32(x[p + i - 2, q + j - 2] else 7) }`,
		sizes: [][]int64{{32, 18}, {33, 47}, {1, 16}}},
	{name: "two tensors, one of which moves otherwise", src: `@bench(H=4096, W=4096)
		graph g(x: f32[H, W], z: f32[2 * H, W + 3]) -> (y: f32[H, W]) {
		y[p: H, q: W] = sum[i: 3, j: 3] (x[p + i - 1, q + j - 1] else 0) * (z[2 * p + i, q + j] else 1) }`,
		sizes: [][]int64{{32, 18}, {33, 47}, {1, 16}}},
	{name: "turned", src: `@bench(H=4096, W=4096)
		graph g(x: f32[H, W]) -> (y: f32[H, W]) { y[p: H, q: W] = max[i: 3, j: 3] (x[p - i + 1, q - j + 1] else -inf) }`,
		sizes: [][]int64{{32, 18}, {33, 47}, {5, 16}}},
	{name: "turned, apart", src: `@bench(H=4096, W=4096)
		graph g(x: f32[H, W], k: f32[3, 5]) -> (y: f32[H, W]) { y[p: H, q: W] = sum[i, j] k[i, j] * (x[p - 2 * i + 1, q - 3 * j + 4] else 0) }`,
		sizes: [][]int64{{32, 18}, {33, 47}, {5, 16}}},
}

// manyPoints reports whether a condition on sizes only says that there are points enough for a schedule.
func manyPoints(e *ir.Expr) bool {
	const many = 1 << 10
	return e.Op == ir.OpLe && e.Args[0].Op == ir.OpConst && e.Args[0].Int > many
}

// forStrategy runs the variants of a strategy at sizes that it is not chosen for, and returns how many runs there are. On
// simulated devices it does a third of them, which the text of a variant draws, unless FUSEC_TEST_FULL is set: the compiler
// takes most of the time.
func forStrategy(t *testing.T, dev *Engine, strategy ir.Strategy, rows []row) (runs int) {
	return forVariants(t, dev, func(v *ir.Variant) bool { return v.Strategy == strategy }, rows)
}

// forVariants is forStrategy for the variants of which a function says so.
func forVariants(t *testing.T, dev *Engine, of func(*ir.Variant) bool, rows []row) (runs int) {
	for _, c := range rows {
		f := newForcing(t, force{}, nil, planned(t, c, dev.Arch()))
		for i, k := range f.plan.Launched() {
			for j, v := range k.Variants {
				for _, set := range c.sizes {
					sizes, _ := Sizes(f.graph, set)
					fits := !slices.ContainsFunc(allowing(v, v.When), func(e *ir.Expr) bool { return !manyPoints(e) && !holdsFor(e, sizes) })
					if !of(v) || v.Schedule.Index64 || !fits {
						continue
					}
					values := make([]int64, len(f.program.Symbols))
					for i, name := range f.program.Symbols {
						values[i] = sizes[name]
					}
					runs++
					if dev.Sim != nil && !inFull() && !hashDraws(f.program.Text(f.program.Launches[i].Variants[j].Unit), 3) {
						continue
					}
					t.Run(fmt.Sprint(c.name, " ", v.Schedule.Vector, set), func(t *testing.T) { require.NoError(t, f.compare(t, dev, i, j, values)) })
				}
			}
		}
	}
	return runs
}

func TestStencilsOnGPU(t *testing.T) {
	mustEnd(t)
	require.Greater(t, forStrategy(t, openGPU(t, runtime.Options{}), ir.ColumnStencil, slices.Concat(stencils, drawnStencils(*stencilFlag))), 40)
}

// TestStencils runs them on simulated devices, which look for races and accesses outside of tensors.
func TestStencils(t *testing.T) {
	t.Parallel()
	onSimulators(t, ir.ColumnStencil, stencils, 40)
}

// onSimulators does so on simulated devices of two kinds, one of which looks for races and the other one runs blocks
// backwards; there are more runs than given on each.
func onSimulators(t *testing.T, strategy ir.Strategy, rows []row, runs int) {
	for i, order := range []simtest.Order{{Races: true}, {Backwards: true}} {
		dev := openSimulated(t, simtest.Config{Arch: []string{"sm_90a", "sm_80"}[i], Order: order})
		t.Run(dev.Arch(), func(t *testing.T) { require.Greater(t, forStrategy(t, dev, strategy, rows), runs) })
	}
}

var (
	stencilFlag  = flag.Uint64("stencil.seed", 1, "the seed of the stencils drawn")
	stencilCount = flag.Int("stencil.count", 6, "how many stencils are drawn")
)

// drawnStencils are windows with strides, dilations, borders, types and folds drawn at random, along either range or both.
func drawnStencils(seed uint64) (out []row) {
	r := rand.New(rand.NewPCG(seed, 0))
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	at := func(row, tap string) string { // where a row and a tap read
		switch stride, dilation, back := 1+r.IntN(3), 1+r.IntN(3), r.IntN(4); r.IntN(4) {
		case 0:
			return row
		case 1:
			return fmt.Sprintf("%s - %d * %s + %d", row, dilation, tap, back)
		case 2:
			return fmt.Sprintf("%d * %s + %s - %d", stride, row, tap, back)
		default:
			return fmt.Sprintf("%s + %d * %s - %d", row, dilation, tap, back)
		}
	}
	for n := range *stencilCount {
		dtype, fold := pick("f32", "f16", "bf16", "i32", "u8", "f64"), pick("sum", "max", "min", "sum")
		value := fmt.Sprintf("(x[n, %s, %s] else %d)", at("p", "i"), at("q", "j"), r.IntN(3))
		if dtype != "i32" && dtype != "u8" {
			value = pick(value, "w[i, j] * "+value, "relu("+value+" - 1)")
		}
		src := fmt.Sprintf("@bench(N=64, H=512, W=512) graph g(x: %[1]s[N, H, W], w: %[1]s[%[3]d, %[4]d]) -> (y: %[1]s[N, H, W]) { y[n, p: H, q: W] = %[1]s(%[2]s[i: %[3]d, j: %[4]d] %[5]s) }",
			dtype, fold, 1+r.IntN(5), 2+r.IntN(5), value)
		out = append(out, row{name: fmt.Sprint("drawn ", seed, "/", n, " ", src), src: src, sizes: [][]int64{{3, 9, 16}, {2, 5, 12}, {1, 7, 13}, {2, 1, 8}}})
	}
	return out
}

// TestDrawnStencils: whatever windows are drawn, their variants give what the interpreter gives.
func TestDrawnStencils(t *testing.T) {
	t.Parallel()
	dev := openSimulated(t, simtest.Config{Arch: "sm_90a", Order: simtest.Order{Races: true}})
	require.Positive(t, forStrategy(t, dev, ir.ColumnStencil, drawnStencils(*stencilFlag)))
}
