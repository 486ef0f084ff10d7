package conformance

import (
	"flag"
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

// turnedRows are programs in which memory runs along the rows in some of what is read or stored, and along the columns in
// the rest: norms whose results have the channels last, or first. The sizes have whole vectors either way, in part, and
// none, and rows that one block takes in part.
var turnedRows = []row{
	{name: "layer norm, channels last", src: `@bench(N=64, C=192, H=28, W=28)
		graph g(x: bf16[N, C, H, W], e: bf16[C], g: bf16[C], b: bf16[C]) -> (y: bf16[N, H, W, C]) {
		y = layer_norm(permute(x + e[:, none, none], (0, 2, 3, 1)), g, b) }`,
		sizes: [][]int64{{2, 24, 3, 8}, {3, 136, 5, 3}, {1, 17, 3, 16}, {1, 33, 1, 7}, {0, 16, 1, 1}, {1, 520, 3, 3}, {1, 1032, 1, 16}, {1, 517, 1, 17}}},
	{name: "layer norm, channels first again", src: `@bench(N=64, T=784, C=192)
		graph g(x: f16[N, T, C], g: f16[C], b: f16[C]) -> (y: f16[N, C, T]) { y = transpose(layer_norm(x, g, b), 1, 2) }`,
		sizes: [][]int64{{2, 24, 24}, {3, 15, 136}, {1, 48, 17}, {1, 7, 33}}},
	{name: "softmax over channels", src: `@bench(N=64, C=192, T=784)
		graph g(x: f32[N, C, T]) -> (y: f32[N, T, C]) { y = softmax(transpose(x, 1, 2), axis=-1) }`,
		sizes: [][]int64{{2, 24, 24}, {3, 68, 15}, {1, 17, 48}, {1, 33, 7}, {1, 516, 32}, {1, 514, 33}}},
	{name: "what lies across, and what does not", src: `@bench(N=64, C=192, T=784)
		graph g(x: bf16[N, C, T], z: f32[N, T, C], w: f32[C]) -> (y: f32[N, T, C], s: bf16[N, C, T], m: f32[N, T]) {
		h = f32(transpose(x, 1, 2)) + z
		y = rms_norm(h, w)
		s = bf16(transpose(relu(y), 1, 2))
		m = max(h, axis=-1) }`,
		sizes: [][]int64{{2, 24, 24}, {3, 68, 15}, {1, 17, 48}, {1, 33, 7}}},
	{name: "two that lie across", src: `@bench(N=64, C=192, T=784)
		graph g(x: bf16[N, C, T], z: f16[N, C, T]) -> (y: f32[N, T, C], s: f16[N, C, T], r: f32[N, C, T]) {
		h = transpose(f32(x) + f32(z), 1, 2)
		m = sum(h, axis=-1, keep=true)
		y = h * m
		s = f16(transpose(h + m, 1, 2))
		r = transpose(h - m, 1, 2) }`,
		sizes: [][]int64{{2, 24, 24}, {3, 68, 15}, {1, 17, 48}, {1, 33, 7}}},
	{name: "a part of the channels, which is no whole number of vectors", src: `@bench(N=64, C=784)
		graph g(x: f32[N, C, 8], z: f32[N, 6, C]) -> (y: f32[N, 6, C]) {
		h[n, k: 6, c: C] = x[n, c, k] + z[n, k, c]
		y = softmax(h) }`,
		sizes: [][]int64{{2, 24}, {3, 68}, {1, 48}, {2, 17}}},
	{name: "a border, and groups", src: `@bench(N=64, C=192, T=784)
		graph g(x: f16[N, 4 * C, T]) -> (y: f16[N, T, 4, C]) {
		h[n, t: T, k: 4, c: C] = f32(x[n, k * C + c, t - 3] else 1)
		y = f16(h / (1 + sqrt(sum(h * h, axis=(2, 3), keep=true)))) }`,
		sizes: [][]int64{{2, 8, 24}, {3, 6, 15}, {1, 5, 48}}},
}

func TestTurnedRowsOnGPU(t *testing.T) {
	mustEnd(t)
	require.Greater(t, forStrategy(t, openGPU(t, runtime.Options{}), ir.RowTurn, slices.Concat(turnedRows, drawnTurns(*turnSeed))), 20)
}

// TestTurnedRows runs them on simulated devices, which look for races and accesses outside of tensors.
func TestTurnedRows(t *testing.T) {
	t.Parallel()
	onSimulators(t, ir.RowTurn, turnedRows, 20)
}

var (
	turnSeed  = flag.Uint64("turn.seed", 1, "the seed of the turned rows drawn")
	turnCount = flag.Int("turn.count", 4, "how many turned rows are drawn")
)

// drawnTurns are folds over an axis of tensors in two layouts, types and borders drawn at random.
func drawnTurns(seed uint64) (out []row) {
	r := rand.New(rand.NewPCG(seed, 0))
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	for n := range *turnCount {
		types := []any{pick("f32", "f16", "bf16", "u8", "f64"), pick("f32", "bf16", "f16"), pick("f32", "f16", "bf16")}
		value := fmt.Sprintf("f32(x[n, %s, %s]) %s f32(z[n, t, c])", pick("c", "C - 1 - c"), "t", pick("+", "*"))
		border := fmt.Sprintf("f32(x[n, c, t - %d] else %d) + f32(z[n, t, c])", 1+r.IntN(3), r.IntN(2))
		result := pick("exp(h - m[:, :, none])", "h * m[:, :, none]", "h + m[:, :, none]")
		last := pick("c, t", "t, c")
		shape := map[string]string{"c, t": "[N, C, T]", "t, c": "[N, T, C]"}[last]
		lines := []string{
			fmt.Sprintf("h[n, t: T, c: C] = %s", pick(value, border, value)),
			fmt.Sprintf("m = %s(h, axis=-1)", pick("sum", "max", "mean")),
			fmt.Sprintf("r = %s", result),
			fmt.Sprintf("y[n, %s] = %s(r[n, t, c])", strings.Replace(strings.Replace(last, "c", "c: C", 1), "t", "t: T", 1), types[2]),
		}
		src := fmt.Sprintf("@bench(N=64, C=192, T=784) graph g(x: %s[N, C, T], z: %s[N, T, C]) -> (y: %s%s) { %s }",
			append(types, shape, strings.Join(lines, "\n"))...)
		out = append(out, row{name: fmt.Sprint("drawn ", seed, "/", n, " ", strings.ReplaceAll(src, "\n", "; ")), src: src,
			sizes: [][]int64{{2, 24, 24}, {3, 68, 15}, {1, 17, 48}, {1, 33, 7}, {1, 160, 32}}})
	}
	return out
}

// TestDrawnTurns: whatever is drawn, turned rows give what the interpreter gives.
func TestDrawnTurns(t *testing.T) {
	t.Parallel()
	dev := openSimulated(t, simtest.Config{Arch: "sm_90a", Order: simtest.Order{Races: true}})
	require.Positive(t, forStrategy(t, dev, ir.RowTurn, drawnTurns(*turnSeed)))
}
