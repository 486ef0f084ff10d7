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

// drawnFewTiles are convolutions of few places and long sums, whose tiles split their columns over a cluster: one to three
// axes, strides, dilation, borders, and something behind them.
func drawnFewTiles(count int) (out []row) {
	r := rand.New(rand.NewPCG(31, 0))
	of := func(low, high int) int { return low + r.IntN(high-low+1) }
	for n := range count {
		axes, channels, results, dilation := 1+n%3, 8*of(8, 20), of(17, 140), of(1, 2)
		switch axes {
		case 1:
			channels *= 2
		case 3:
			results = of(17, 40)
		}
		var taps, paddings, strides, extents []string
		for d := range axes {
			k, p, s := of(2, 3), of(0, 2), of(1, 2)
			if axes == 1 {
				k = of(5, 7)
			}
			taps, paddings, strides = append(taps, fmt.Sprint(k)), append(paddings, fmt.Sprint(p)), append(strides, fmt.Sprint(s))
			extents = append(extents, fmt.Sprintf("(%s + %d) / %d + 1", []string{"H", "W", "D"}[d], 2*p-dilation*(k-1)-1, s))
		}
		behind := []string{"conv", "relu(conv + b[:, none])", "f32(conv) * 2", "conv * b[:, none] + r"}[of(0, 3)]
		behind = strings.ReplaceAll(behind, ", none]", strings.Repeat(", none", axes)+"]")
		result := fmt.Sprintf("[N, %d, %s]", results, strings.Join(extents, ", "))
		text := fmt.Sprintf("@bench(N=1, %s) graph g(x: T[N, %d, %s], w: T[%d, %d, %s], b: T[%d], r: T%s) -> (y: %s%s, z: T[%d]) {\nconv = conv%dd(x, w, stride=(%s), dilation=%d, padding=(%s))\ny = %s\nz = b * sum(r) }",
			strings.Join([]string{"H=14", "W=14", "D=5"}[:axes], ", "), channels, strings.Join([]string{"H", "W", "D"}[:axes], ", "), results, channels, strings.Join(taps, ", "), results, result,
			map[bool]string{true: "f32", false: "T"}[strings.HasPrefix(behind, "f32")], result, results,
			axes, strings.Join(strides, ", "), dilation, strings.Join(paddings, ", "), behind)
		dtype, mode := []string{"bf16", "f16", "f32"}[n/3%3], []string{"", "", "@tf32 "}[n/3%3]
		out = append(out, row{name: fmt.Sprint(n), src: mode + strings.ReplaceAll(text, "T[", dtype+"["), sizes: map[int][][]int64{
			1: {{1, 37}, {2, 15}}, 2: {{1, 9, 8}, {3, 7, 11}}, 3: {{1, 4, 5, 6}}}[axes]})
	}
	return out
}

// fewTiles are products of few rows and long sums.
var fewTiles = []row{
	{name: "bf16", src: `graph g(a: bf16[M, K], b: bf16[N, K], c: bf16[N]) -> (y: bf16[M, N]) { y = relu(a @ transpose(b) + c) }`, sizes: [][]int64{{70, 136, 1032}}},
	{name: "tf32", src: `@tf32 graph g(a: f32[M, K], b: f32[N, K], c: f32[N]) -> (y: f32[M, N]) { y = relu(a @ transpose(b) + c) }`, sizes: [][]int64{{70, 136, 1028}}},
	{name: "tf32, results of odd length", src: `@tf32 graph g(a: f32[2, M, K], b: f32[2, N, K]) -> (y: f32[2, M, N]) { y = einsum("bmk,bnk->bmn", a, b) }`, sizes: [][]int64{{33, 71, 520}}},
}

// TestFewTiles runs products and convolutions whose sums are split over a cluster on a simulated device that looks for
// races and accesses outside of tensors.
func TestFewTiles(t *testing.T) {
	t.Parallel()
	dev := openSimulated(t, simtest.Config{Arch: "sm_90a", Order: simtest.Order{Races: true}})
	drawn := 4
	if inFull() {
		drawn = 9
	}
	require.Greater(t, forStrategy(t, dev, ir.ContractWarpgroupSplitK, slices.Concat(fewTiles, drawnFewTiles(drawn))), 10)
}

func TestFewTilesOnGPU(t *testing.T) {
	mustEnd(t)
	require.Greater(t, forStrategy(t, openGPU(t, runtime.Options{}), ir.ContractWarpgroupSplitK, slices.Concat(fewTiles, drawnFewTiles(6))), 10)
}

// fewColumns are products in f32 of few rows on a side and many on the other one.
var fewColumns = []row{
	{name: "columns", src: `graph g(a: f32[M, K], b: f32[K, N], c: f32[N]) -> (y: f32[M, N]) { y = relu(a @ b + c) }`, sizes: [][]int64{{300, 68, 44}, {260, 132, 28}}},
	{name: "rows, batched", src: `graph g(a: f32[B, K, M], b: f32[B, K, N]) -> (y: f32[B, M, N]) { y = einsum("bkm,bkn->bmn", a, b) }`, sizes: [][]int64{{2, 36, 28, 260}, {3, 52, 60, 132}}},
	{name: "result transposed", src: `graph g(a: f32[M, K], b: f32[N, K]) -> (y: f32[N, M]) { y = transpose(a @ transpose(b)) }`, sizes: [][]int64{{260, 60, 40}}},
}

// TestFewColumns runs the tiles of multiply-adds that are a quarter and a half of a large one.
func TestFewColumns(t *testing.T) {
	t.Parallel()
	dev := openSimulated(t, simtest.Config{Arch: "sm_90a", Order: simtest.Order{Races: true}})
	low := func(v *ir.Variant) bool {
		s := v.Schedule
		return v.Strategy == ir.ContractSplitK && v.Contract.Unit == ir.FMAUnit && s.Cluster <= 1 && v.Contract.Slices == nil && max(s.TileM, s.TileN) == 128 && (min(s.TileM, s.TileN) == 32 || min(s.TileM, s.TileN) == 64)
	}
	require.Greater(t, forVariants(t, dev, low, fewColumns), 5)
}
