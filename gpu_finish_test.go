package fusec

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/tensor"
)

// finished are programs with folds that the last blocks of a kernel run. The sizes
// leave rests of chunks, of vectors and of blocks, single parts, and none.
var finished = []struct {
	name, src string
	sizes     [][]int64 // of the symbols in order; the last are run over and over
}{
	{"all", `@bench(N=512, M=512) graph g(x: f32[N, M]) -> (y: f32[]) { y = sum(x * x) }`,
		[][]int64{{0, 5}, {5, 0}, {1, 1}, {7, 33}, {1000, 1000}, {1030, 2048}}},
	{"all in bf16", `@bench(N=1024, M=1024) graph g(x: bf16[N, M]) -> (y: bf16[], z: f32[]) {
		y = mean(x)
		z = var(f32(x)) }`, [][]int64{{0, 8}, {1, 8}, {9, 40}, {1000, 1001}, {1000, 1024}}},
	{"largest and where", `@bench(N=128, M=2048) graph g(x: f32[N, M]) -> (y: f32[], at: i64[]) {
		s = max(x, axis=1)
		y = min(s)
		at = argmax(s) }`, [][]int64{{1, 1}, {3, 2000}, {257, 40}, {1000, 2048}}},
	{"of integers", `@bench(N=1024, M=1024) graph g(x: i32[N, M]) -> (y: i64[], some: bool[]) {
		y = sum(x)
		some = any(x > 1) }`, [][]int64{{0, 3}, {1, 1}, {300, 700}, {1024, 2000}}},
	{"a middle axis", `@bench(B=2, N=4096, M=512) graph g(x: bf16[B, N, M]) -> (y: bf16[B, M]) { y = sum(x, axis=1) }`,
		[][]int64{{2, 0, 8}, {1, 1, 1}, {3, 65, 24}, {2, 100, 37}, {16, 512, 256}}},
	{"results in another order", `@bench(B=2, N=4096, M=256) graph g(x: f32[B, N, M]) -> (y: f32[M, B]) {
		y[m, b] = sum[n: N] x[b, n, m] }`, [][]int64{{3, 65, 24}, {2, 100, 37}, {16, 512, 256}}},
	{"the outer axis", `@bench(N=4096, M=512) graph g(x: f32[N, M], w: f32[M]) -> (y: f32[M]) { y = tanh(sum(x, axis=0) / 8) + w }`,
		[][]int64{{0, 7}, {1, 8}, {130, 300}, {1000, 41}, {4096, 512}}},
	{"moments of channels", `@bench(N=32, C=24, L=1024) graph g(x: bf16[N, C, L]) -> (y: bf16[N, C, L], m: f32[C]) {
		y, m, v = batch_norm_train(x) }`, [][]int64{{1, 1, 8}, {5, 3, 1000}, {33, 2, 1001}, {32, 24, 1024}}},
	{"loss of rows", `@bench(N=128, V=8192) graph g(x: f32[N, V], t: i64[N]) -> (y: f32[]) { y = cross_entropy(x, t) }`,
		[][]int64{{1, 2}, {5, 40}, {300, 1023}, {512, 8192}}},
	{"softmax of row sums", `@bench(N=128, M=4096) graph g(x: f32[N, M]) -> (y: f32[N]) { y = softmax(sum(x, axis=1) / 64) }`,
		[][]int64{{1, 1}, {130, 100}, {512, 4096}}},
	{"log of a sum of exponentials", `@bench(N=128, M=2048) graph g(x: f32[N, M]) -> (y: f32[]) { y = logsumexp(logsumexp(x, axis=1), axis=0) }`,
		[][]int64{{1, 1}, {70, 100}, {1000, 2048}}},
	{"long rows", `@bench(N=2, M=65536) graph g(x: f64[N, M]) -> (y: f64[N], p: f64[N]) {
		y = sum(x, axis=1)
		p = max(x, axis=1) }`, [][]int64{{0, 9}, {3, 0}, {1, 33}, {5, 70000}, {4, 262144}}},
}

// forFinished compiles each of the programs.
func forFinished(t *testing.T, dev *runtime.Device, test func(t *testing.T, p *Program, f *runtime.Function, sizes [][]int64)) {
	for _, c := range finished {
		t.Run(c.name, func(t *testing.T) {
			p, f := loaded(t, dev, c.src)
			require.True(t, slices.ContainsFunc(p.Plan().Kernels, func(k *ir.Kernel) bool { return k.Finish != nil }))
			test(t, p, f, c.sizes)
		})
	}
}

func TestFinishesOnGPU(t *testing.T) {
	forFinished(t, openGPU(t, runtime.Options{}), compareFinished)
}

// TestFinishesOnCPU: the programs are right, and so are their plans run kernel by kernel.
func TestFinishesOnCPU(t *testing.T) {
	forFinished(t, openCPU(t), compareFinished)
}

func compareFinished(t *testing.T, p *Program, f *runtime.Function, list [][]int64) {
	compareUpTo(t, p, f, list, 1<<21)
}

// TestFinishesRepeatOnGPU: the same bits a hundred times, on one stream, whose later runs
// replay a graph, and on eight at once; between runs of other sizes, whose counters lie
// in the same memory.
func TestFinishesRepeatOnGPU(t *testing.T) {
	dev := openGPU(t, runtime.Options{})
	forFinished(t, dev, func(t *testing.T, p *Program, f *runtime.Function, list [][]int64) {
		args := inputsAt(t, p.Graph(), f, list[len(list)-1])
		other := inputsAt(t, p.Graph(), f, list[len(list)-2])
		want, err := f.Call(context.Background(), args)
		require.NoError(t, err)
		same := func(args runtime.Args) bool {
			got, err := f.Call(context.Background(), args)
			if !assert.NoError(t, err) {
				return false
			}
			for name := range want {
				if !assert.True(t, tensor.Equal(want[name], got[name]), name) {
					return false
				}
			}
			return true
		}
		for n := 0; n < 20 && same(args); n++ {
			_, err := f.Call(context.Background(), other)
			require.NoError(t, err)
		}
		device := onDevice(t, dev, args)
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				for n := 0; n < 10 && same(device); n++ {
				}
			})
		}
		group.Wait()
	})
}

// inputsAt makes inputs for sizes of a graph's symbols.
func inputsAt(t *testing.T, g *ir.Graph, f *runtime.Function, set []int64) runtime.Args {
	sizes, fit := sizesOf(g, set)
	require.True(t, fit)
	shapes, err := f.Shapes(sizes)
	require.NoError(t, err)
	args := runtime.Args{}
	for i, v := range g.Inputs {
		x, err := tensor.Random(v.Type, uint64(i+1), shapes[v.Name]...)
		if !v.Type.IsFloat() {
			x, err = tensor.RandomInts(v.Type, uint64(i+1), 0, 2, shapes[v.Name]...)
		}
		require.NoError(t, err)
		args[v.Name] = x
	}
	return args
}

// onDevice copies inputs to the device.
func onDevice(t *testing.T, dev *runtime.Device, args runtime.Args) runtime.Args {
	out := runtime.Args{}
	for name, a := range args {
		x := a.(*tensor.Tensor)
		b, err := dev.NewBuffer(x.DType, x.Shape...)
		require.NoError(t, err)
		require.NoError(t, b.Upload(x))
		out[name] = b
	}
	return out
}
