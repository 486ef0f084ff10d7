package fusec

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/simtest"
	"github.com/fusec/fusec/runtime/tensor"
)

// chains are programs whose blocks hand on what they have folded of columns that lie across
// memory: with threads for short and for long work, accesses of every width, words of one and of
// two halves, several results, and what follows from them. The sizes have one part and several,
// whole and in part, one link of the chains and several, a strip in part, and no columns.
var chains = []struct {
	name, src string
	sizes     [][]int64 // of the symbols in order
}{
	{"sum", `@bench(N=16384, M=4096) graph g(x: f32[N, M]) -> (y: f32[M]) { y = sum(x, axis=0) }`,
		[][]int64{{0, 7}, {1, 8}, {130, 300}, {300, 41}, {33795, 40}, {391, 8452}, {513, 16300}, {260, 17001}}},
	{"sum of bf16 with what follows", `@bench(N=16384, M=4096) graph g(x: bf16[N, M], w: f32[M]) -> (y: bf16[M]) {
		y = bf16(tanh(sum(f32(x), axis=0) / 8) + w) }`, [][]int64{{0, 8}, {1, 1}, {600, 304}, {2100, 41}, {1025, 8456}}},
	{"several folds", `@bench(N=16384, M=4096) graph g(x: f32[N, M], k: f32[M]) -> (s: f32[M], p: f32[M], least: f32[M]) {
		s = sum(x * x, axis=0) + k
		p = max(x, axis=0)
		least = min(where(x > 0, x, 9), axis=0) }`, [][]int64{{0, 3}, {1, 9}, {130, 33}, {1030, 513}, {300, 8500}}},
	{"bytes and truths", `@bench(N=65536, M=8192) graph g(x: i8[N, M]) -> (y: i64[M], some: bool[M], n: i32[M]) {
		y = sum(i64(x), axis=0)
		some = any(x > 1, axis=0)
		n = max(i32(x), axis=0) }`, [][]int64{{0, 3}, {1, 1}, {300, 700}, {515, 17000}}},
	{"in f64", `@bench(N=16384, M=4096) graph g(x: f64[N, M]) -> (y: f64[M]) { y = sum(x, axis=0) }`,
		[][]int64{{0, 2}, {3, 1}, {515, 1000}, {260, 8450}}},
	{"columns of two tensors, around rows of two axes", `@bench(A=128, B=4096, C=32) graph g(x: f32[B, A, C], w: f32[B, A, C]) -> (y: f32[A, C]) {
		y = sum(x * w, axis=0) }`, [][]int64{{3, 5, 9}, {1, 1, 1}, {300, 30, 20}, {140, 130, 64}}},
	{"conditions that the first columns meet, up to any part", `@bench(N=16384, M=4096, K=8192) graph g(x: f32[N, M], s: f32[K]) -> (y: f32[M], z: f32[M]) {
		y[j] = sum[k: N] x[k, j] * (s[k] else 7)
		z[j] = max[k: N where k + 3 < K] x[k, j] }`, [][]int64{{0, 7, 3}, {300, 9, 5}, {300, 9, 64}, {390, 9, 131}, {515, 33, 300}, {515, 8, 515}, {515, 3, 1}}},
}

// forChains compares each of the programs with the interpreter.
func forChains(t *testing.T, dev *runtime.Device, elements int64) {
	for _, c := range chains {
		t.Run(c.name, func(t *testing.T) {
			p, f := loaded(t, dev, c.src)
			compareUpTo(t, p, f, c.sizes, elements)
		})
	}
}

func TestChainsOnGPU(t *testing.T) {
	mustEnd(t)
	forChains(t, openGPU(t, runtime.Options{}), 1<<23)
}

func TestChainsOnCPU(t *testing.T) { forChains(t, openCPU(t), 1<<22) }

// TestChains runs them on simulated devices, which look for races.
func TestChains(t *testing.T) {
	for i, order := range []simtest.Order{{Races: true}, {Backwards: true}} {
		_, dev := openSimulated(t, simtest.Config{Arch: []string{"sm_90a", "sm_80"}[i], Order: order})
		t.Run(dev.Arch(), func(t *testing.T) { forChains(t, dev, 1<<15) })
	}
	t.Run("links", func(t *testing.T) { // of one strip of rows, and of as many as have one chain each
		_, dev := openSimulated(t, simtest.Config{Arch: "sm_90a"})
		p, f := loaded(t, dev, chains[0].src)
		compareUpTo(t, p, f, [][]int64{{33795, 3}, {33795, 40}, {260, 8452}, {260, 17001}}, 1<<23)
	})
}

// TestChainsAreWhole: the programs have what they are for, and those have it not whose sweep has
// more than one result, or whose columns are read for another reduction first.
func TestChainsAreWhole(t *testing.T) {
	chained := func(src string) bool {
		p, err := CompileSource(Source{Name: "chain.fuse", Text: []byte(src)}, Options{Arch: "sm_90a"})
		require.NoError(t, err)
		return slices.ContainsFunc(p.Plan().Kernels, func(k *ir.Kernel) bool { return k.Variants[0].Schedule.Chain > 0 })
	}
	for _, c := range chains {
		require.True(t, chained(c.src), c.name)
	}
	for _, c := range [][2]string{
		{"y: f32[N, M]", "y = x - mean(x, axis=0)[none, :]"}, {"y: f32[M]", "y = var(x, axis=0)"}, {"y: f32[N, M]", "y = softmax(x, axis=0)"},
		{"y: f32[N, M]", "y = cumsum(x, axis=0)"}, {"y: f32[N]", "y = sum(x, axis=1)"}, {"y: i64[M]", "y = argmax(x, axis=0)"},
		{"y: f32[M]", "y = sum(x - max(x, axis=1)[:, none], axis=0)"}, {"y: f32[N, M]", "y = sum(x, axis=0)[none, :] * x"},
		{"y: f32[M], z: f32[N]", "y = sum(x, axis=0)\n z = sum(x, axis=1)"},
	} {
		require.False(t, chained("@bench(N=16384, M=4096) graph g(x: f32[N, M]) -> ("+c[0]+") { "+c[1]+" }"), c[1])
	}
	require.False(t, chained(`@bench(N=16384, M=4096) graph g(a: f32[N], x: f32[N, M], w: f32[M]) -> (dx: f32[N, M], dw: f32[M]) {
		dx = a[:, none] * w
		dw = sum(a[:, none] * x, axis=0) }`), "columns that are stored too")
}

// TestChainsRepeatOnGPU: the same bits in every run, of one size behind another: what blocks post
// is gone when a run has ended.
func TestChainsRepeatOnGPU(t *testing.T) {
	mustEnd(t)
	p, f := loaded(t, openGPU(t, runtime.Options{}), chains[0].src)
	var args []runtime.Args
	var first []map[string]*tensor.Tensor
	for turn := range repetitions() {
		for i, size := range [][2]int64{{3000, 4096}, {391, 8452}, {5000, 128}} {
			if turn == 0 {
				args = append(args, drawInputs(t, p.Graph(), f, map[string]int64{"N": size[0], "M": size[1]}))
			}
			got, err := f.Call(context.Background(), args[i])
			require.NoError(t, err)
			if turn == 0 {
				first = append(first, got)
			}
			require.Equal(t, first[i]["y"].Data, got["y"].Data, size)
		}
	}
}
