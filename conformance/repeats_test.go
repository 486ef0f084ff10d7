package conformance

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/tensor"
)

// TestChainsAreForSums: programs have none whose pass has more than one result, or whose columns are
// read for another reduction first.
func TestChainsAreForSums(t *testing.T) {
	of := func(src string) bool { return chained(planned(t, row{name: "chain", src: src}, "sm_90a").Plan()) }
	for _, c := range [][2]string{
		{"y: f32[N, M]", "y = x - mean(x, axis=0)[none, :]"}, {"y: f32[M]", "y = var(x, axis=0)"}, {"y: f32[N, M]", "y = softmax(x, axis=0)"},
		{"y: f32[N, M]", "y = cumsum(x, axis=0)"}, {"y: f32[N]", "y = sum(x, axis=1)"}, {"y: i64[M]", "y = argmax(x, axis=0)"},
		{"y: f32[M]", "y = sum(x - max(x, axis=1)[:, none], axis=0)"}, {"y: f32[N, M]", "y = sum(x, axis=0)[none, :] * x"},
		{"y: f32[M], z: f32[N]", "y = sum(x, axis=0)\n z = sum(x, axis=1)"},
	} {
		require.False(t, of("@bench(N=16384, M=4096) graph g(x: f32[N, M]) -> ("+c[0]+") { "+c[1]+" }"), c[1])
	}
	require.False(t, of(`@bench(N=16384, M=4096) graph g(a: f32[N], x: f32[N, M], w: f32[M]) -> (dx: f32[N, M], dw: f32[M]) {
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
				args = append(args, drawInputs(t, p.Graph(), map[string]int64{"N": size[0], "M": size[1]}))
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

// TestLastBlocksRepeatOnGPU: the same bits a hundred times, on one stream, whose later runs
// replay a graph, and on eight at once; between runs of other sizes, whose counters lie
// in the same memory.
func TestLastBlocksRepeatOnGPU(t *testing.T) {
	dev := openGPU(t, runtime.Options{})
	for _, c := range lastBlockRows {
		t.Run(c.name, func(t *testing.T) { repeatLastBlock(t, dev, c) })
	}
}

func repeatLastBlock(t *testing.T, dev *Engine, c row) {
	p, f := loaded(t, dev, c.src)
	args := inputsAt(t, p.Graph(), c.sizes[len(c.sizes)-1])
	other := inputsAt(t, p.Graph(), c.sizes[len(c.sizes)-2])
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
}

// inputsAt makes inputs for sizes of a graph's symbols.
func inputsAt(t *testing.T, g *ir.Graph, set []int64) runtime.Args {
	t.Helper()
	sizes, fit := Sizes(g, set)
	require.True(t, fit)
	return drawInputs(t, g, sizes)
}

// onDevice copies inputs to the device.
func onDevice(t *testing.T, dev *Engine, args runtime.Args) runtime.Args {
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
