package conformance

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/simtest"
	"github.com/fusec/fusec/runtime/tensor"
)

// slabs are programs whose columns lie between ranges of the rows, so that their blocks post what
// they have folded for blocks behind them. The sizes have one part and several, strips in part,
// fewer slabs than lie between one and its results, and more than have words, and no columns.
var slabs = []row{
	{name: "a middle axis", src: `@bench(B=64, N=1024, M=1024) graph g(x: f32[B, N, M]) -> (y: f32[B, M]) { y = sum(x, axis=1) }`,
		sizes: [][]int64{{3, 0, 5}, {1, 700, 301}, {9, 300, 44}, {800, 131, 3}, {800, 131, 4}, {280, 300, 70}, {1700, 3, 8}, {9, 1024, 1028}}},
	{name: "of bf16 with what follows", src: `@bench(B=64, N=1024, M=1024) graph g(x: bf16[B, N, M], w: f32[B], k: f32[M]) -> (y: bf16[B, M]) {
		y = bf16(tanh(sum(f32(x), axis=1) / 8) * w[:, none] + k) }`, sizes: [][]int64{{2, 0, 8}, {3, 5, 1}, {30, 600, 136}, {600, 150, 24}, {7, 1000, 264}}},
	{name: "the largest, slabs of two axes", src: `@bench(A=8, B=8, N=1024, M=1024) graph g(x: f16[A, B, N, M]) -> (y: f16[A, B, M]) {
		y = max(x, axis=2) }`, sizes: [][]int64{{2, 3, 5, 7}, {1, 1, 1, 1}, {20, 30, 130, 8}, {2, 5, 300, 104}}},
}

// forSlabs runs the variants for many slabs at other sizes, and returns how many runs that were.
func forSlabs(t *testing.T, dev *Engine, most int64) (runs int) {
	for _, c := range slabs {
		f := newForcing(t, force{}, nil, planned(t, c, dev.Arch()))
		for j, v := range f.plan.Kernels[0].Variants {
			for _, set := range c.sizes {
				sizes, _ := Sizes(f.graph, set)
				if v.Schedule.LookBack == 0 || Work(f.graph, sizes) > most || slices.ContainsFunc(allowing(v, v.When), func(e *ir.Expr) bool { return !holdsFor(e, sizes) }) {
					continue
				}
				values := make([]int64, len(f.program.Symbols))
				for i, name := range f.program.Symbols {
					values[i] = sizes[name]
				}
				runs++
				t.Run(fmt.Sprint(c.name, v.Schedule.Vector, set), func(t *testing.T) { require.NoError(t, f.compare(t, dev, 0, j, values)) })
			}
		}
	}
	return runs
}

func holdsFor(e *ir.Expr, sizes map[string]int64) bool {
	v, ok := ir.EvalSize(e, sizes)
	return ok && v != 0
}

func TestSlabsOnGPU(t *testing.T) {
	mustEnd(t)
	require.Greater(t, forSlabs(t, openGPU(t, runtime.Options{}), 1<<23), 20)
}

// TestSlabs runs them on simulated devices, which look for races.
func TestSlabs(t *testing.T) {
	t.Parallel()
	for i, order := range []simtest.Order{{Races: true}, {Backwards: true}} {
		dev := openSimulated(t, simtest.Config{Arch: []string{"sm_90a", "sm_80"}[i], Order: order})
		t.Run(dev.Arch(), func(t *testing.T) {
			require.Greater(t, forSlabs(t, dev, []int64{1 << 19, 1 << 17}[i]), []int{10, 7}[i])
		})
	}
}

// TestManySlabs: slabs are for sizes with many, whether their rows are aligned or not.
func TestManySlabs(t *testing.T) {
	p, err := fusec.CompileSource(fusec.Source{Name: "g.fuse", Text: []byte(`graph g(x: bf16[B, N, M]) -> (y: bf16[B, M]) { y = sum(x, axis=1) }`)}, fusec.Options{Arch: "sm_90a"})
	require.NoError(t, err)
	for _, c := range []struct {
		b, n, m int64
		many    bool
	}{{128, 1024, 1024, true}, {128, 1024, 1023, true}, {64, 1024, 1024, false}, {64, 1024, 1023, false}, {16, 1024, 8192, false}, {4096, 256, 512, false}} {
		variants := p.Plan().Kernels[0].Variants
		at := slices.IndexFunc(variants, func(v *ir.Variant) bool {
			return v.When == nil || holdsFor(v.When, map[string]int64{"B": c.b, "N": c.n, "M": c.m})
		})
		require.Equal(t, c.many, variants[at].Schedule.LookBack > 0, c)
	}
}

// TestLargeSlabsOnGPU runs them as they are meant to be, in numbers whose sums are exact, each run
// with the words of the one before it.
func TestLargeSlabsOnGPU(t *testing.T) {
	mustEnd(t)
	p, f := loaded(t, openGPU(t, runtime.Options{}), slabs[0].src)
	const slabCount, columns, rows = 401, 512, 260
	require.Positive(t, p.Plan().Kernels[0].Variants[0].Schedule.LookBack)
	require.True(t, holdsFor(p.Plan().Kernels[0].Variants[0].When, map[string]int64{"B": slabCount, "N": columns, "M": rows}))
	x, err := tensor.New(ir.F32, slabCount, columns, rows)
	require.NoError(t, err)
	data, ok := tensor.View[float32](x)
	require.True(t, ok)
	want := make([]float32, slabCount*rows)
	for i := range data {
		data[i] = float32(i*7919%31 - 15)
		want[i/(columns*rows)*rows+i%rows] += data[i]
	}
	for range repetitions() {
		got, err := f.Call(context.Background(), runtime.Args{"x": x})
		require.NoError(t, err)
		require.Equal(t, want, got["y"].Float32s())
	}
}
