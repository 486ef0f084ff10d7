package fusec

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
)

// shared are programs that fold columns which lie across memory, each shared by many
// threads of a block. The sizes leave rests of strips, of vectors and of the
// columns of a thread, fewer columns than threads, and none.
var shared = []struct {
	name, src string
	sizes     [][]int64 // of the symbols in order
}{
	{"sum", `@bench(N=16384, M=16384) graph g(x: f32[N, M]) -> (y: f32[M]) { y = sum(x, axis=0) }`,
		[][]int64{{0, 7}, {1, 8}, {130, 300}, {2100, 41}, {4096, 256}, {1025, 2047}}},
	{"sum of bf16 with what follows", `@bench(N=16384, M=32768) graph g(x: bf16[N, M], w: f32[M]) -> (y: bf16[M]) {
		y = bf16(tanh(sum(f32(x), axis=0) / 8) + w) }`, [][]int64{{0, 8}, {1, 1}, {130, 304}, {2100, 41}, {4096, 264}}},
	{"several folds", `@bench(N=16384, M=16384) graph g(x: f32[N, M]) -> (s: f32[M], p: f32[M], at: i64[M]) {
		s = sum(x * x, axis=0)
		p = max(x, axis=0)
		at = argmax(x, axis=0) }`, [][]int64{{1, 9}, {7, 33}, {1030, 513}, {2048, 512}}},
	{"bytes and truths", `@bench(N=65536, M=32768) graph g(x: i8[N, M]) -> (y: i64[M], some: bool[M]) {
		y = sum(i64(x), axis=0)
		some = any(x > 1, axis=0) }`, [][]int64{{0, 3}, {1, 1}, {300, 700}, {1024, 2000}}},
	{"in f64", `@bench(N=16384, M=8192) graph g(x: f64[N, M]) -> (y: f64[M]) { y = sum(x, axis=0) }`,
		[][]int64{{0, 2}, {3, 1}, {515, 1000}, {2048, 1024}}},
	{"two axes around a third", `@bench(A=1024, B=512, C=4096) graph g(x: f32[A, C, B], w: f32[A]) -> (y: f32[B, C]) {
		y[b, c] = sum[a: A] x[a, c, b] * w[a] }`, [][]int64{{0, 3, 5}, {1, 1, 1}, {3, 65, 24}, {32, 100, 37}}},
}

// forShared compares each of the programs with the interpreter.
func forShared(t *testing.T, dev *runtime.Device) {
	for _, c := range shared {
		t.Run(c.name, func(t *testing.T) {
			p, f := loaded(t, dev, c.src)
			compareUpTo(t, p, f, c.sizes, 1<<22)
		})
	}
}

func TestSharedColumnsOnGPU(t *testing.T) { forShared(t, openGPU(t, runtime.Options{})) }

func TestSharedColumnsOnCPU(t *testing.T) { forShared(t, openCPU(t)) }

// TestSharedColumnsAreWhole: the programs have what they are for.
func TestSharedColumnsAreWhole(t *testing.T) {
	for _, c := range shared {
		p, err := CompileSource(Source{Name: "share.fuse", Text: []byte(c.src)}, Options{Arch: "sm_90a"})
		require.NoError(t, err)
		require.True(t, slices.ContainsFunc(p.Plan().Kernels, func(k *ir.Kernel) bool {
			s := k.Variants[0].Schedule
			return s.Mapping == ir.FlatMapping && s.ColThreads >= 32
		}), c.name)
	}
}
