package conformance

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/tensor"
)

// TestIndexErrorsOfStreams: a queued run reports when its stream is waited for, once.
func TestIndexErrorsOfStreams(t *testing.T) {
	t.Parallel()
	dev := openCPU(t)
	queueChecks(t, dev)
}

// queueChecks queues runs of which some read outside.
func queueChecks(t *testing.T, dev *Engine) {
	ctx := context.Background()
	f, err := fusec.MustCompile("c.fuse", `@strict graph g(x: f32[V], at: i32[N]) -> (y: f32[N]) { y = x[at] }`, fusec.Options{}).Load(ctx, dev.Device)
	require.NoError(t, err)
	s, err := dev.NewStream()
	require.NoError(t, err)
	x, at, y := newBuffer(t, dev, ir.F32, 6), newBuffer(t, dev, ir.I32, 3), newBuffer(t, dev, ir.F32, 3)
	queue := func(indices ...int32) {
		t.Helper()
		host, err := tensor.FromSlice(indices)
		require.NoError(t, err)
		require.NoError(t, s.Upload(at, host))
		require.NoError(t, f.Queue(ctx, s, runtime.Args{"x": x, "at": at, "y": y}))
	}
	var found *ir.IndexError
	queue(0, 1, 2)
	require.NoError(t, s.Wait(ctx))
	queue(0, 1, 2)
	queue(3, -7, 9)
	queue(8, 0, 0)
	queue(5, 0, 0)
	require.ErrorAs(t, s.Wait(ctx), &found)
	assert.Equal(t, []int64{-7, 1}, []int64{found.Index, found.At[0]})
	require.NoError(t, s.Wait(ctx), "it was told")
	queue(5, 0, 0)
	require.NoError(t, s.Wait(ctx))
	for i := range 1000 {
		queue(0, 0, int32(5+i/500*(1+i)))
	}
	require.ErrorAs(t, s.Wait(ctx), &found)
	assert.Equal(t, int64(506), found.Index)
	queue(0, 6, 0)
	require.ErrorAs(t, s.Close(), &found)
	assert.Equal(t, int64(6), found.Index)
}

func newBuffer(t *testing.T, dev *Engine, of ir.DType, n int) *runtime.Buffer {
	t.Helper()
	b, err := dev.NewBuffer(of, n)
	require.NoError(t, err)
	return b
}

// TestRandomIndicesOutside compares with plain loops.
func TestRandomIndicesOutside(t *testing.T) {
	t.Parallel()
	dev := openCPU(t)
	p := fusec.MustCompile("c.fuse", `@strict graph g(x: f32[V], at: i32[N, M], m: bool[N], k: i32[N]) -> (y: f32[N, M]) {
    t[i, j] = x[at[i, j] - k[i]] * 2
    y[i, j] = where(m[i] && j > k[i], t[i, j], where(m[i], 0, t[i, M - 1 - j]))
}`, fusec.Options{})
	f, err := p.Load(context.Background(), dev.Device)
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		n, m, v := rapid.IntRange(1, 5).Draw(t, "N"), rapid.IntRange(1, 5).Draw(t, "M"), rapid.IntRange(1, 5).Draw(t, "V")
		c := checkCase{inputs: map[string]any{"x": make([]float32, v),
			"at": rapid.SliceOfN(rapid.Int32Range(-1, 6), n*m, n*m).Draw(t, "at"),
			"m":  rapid.SliceOfN(rapid.Bool(), n, n).Draw(t, "m"),
			"k":  rapid.SliceOfN(rapid.Int32Range(0, 1), n, n).Draw(t, "k")},
			shapes: map[string][]int{"at": {n, m}}}
		at, mask, k := c.inputs["at"].([]int32), c.inputs["m"].([]bool), c.inputs["k"].([]int32)
		first := math.MaxInt
		for i := range n {
			for j := range m {
				read := j
				if mask[i] && j <= int(k[i]) {
					continue
				} else if !mask[i] {
					read = m - 1 - j
				}
				if index := int(at[i*m+read] - k[i]); index < 0 || index >= v {
					first = min(first, i*m+read)
				}
			}
		}
		if first < math.MaxInt {
			c.tensor, c.index, c.extent = "x", int64(at[first]-k[first/m]), int64(v)
			c.at = []int64{int64(first / m), int64(first % m)}
		}
		c.interpret(t, p)
		_, err := f.Call(context.Background(), c.arguments(t))
		c.requireFound(t, err, "CPU engine")
	})
}

func TestIndexErrorsOfStreamsOnGPU(t *testing.T) {
	mustEnd(t)
	queueChecks(t, openGPU(t, runtime.Options{}))
}

// TestFirstOfManyIndicesOnGPU puts indices that are outside at any places of long
// tensors, which many blocks check.
func TestFirstOfManyIndicesOnGPU(t *testing.T) {
	mustEnd(t)
	dev, ctx := openGPU(t, runtime.Options{}), context.Background()
	for _, bench := range []string{"", "@bench(N=16777216, V=65536)"} {
		_, f := loaded(t, dev, "@strict "+bench+` graph g(x: f32[V], at: i32[N], m: bool[N]) -> (y: f32[N]) {
    y[n] = where(m[n], x[at[n] * 2] + 1, 0)
}`)
		for _, n := range []int{1, 31, 16384, 16385, 1<<20 + 3, 1<<22 + 1} {
			at, m := make([]int32, n), make([]bool, n)
			for i := range at {
				at[i], m[i] = int32(i%500), i%3 != 1
			}
			for _, places := range [][]int{{}, {n - 1}, {n / 2, n - 1}, {0, n / 3}} {
				t.Run(fmt.Sprint(bench, n, places), func(t *testing.T) { firstOutside(t, ctx, f, at, m, places) })
			}
		}
	}
}

// firstOutside runs with indices outside at some places, and at others that are not
// selected, then with none.
func firstOutside(t *testing.T, ctx context.Context, f *runtime.Function, at []int32, m []bool, places []int) {
	t.Helper()
	const size = 1000
	x, err := tensor.Random(ir.F32, 1, size)
	require.NoError(t, err)
	run := func() (map[string]*tensor.Tensor, error) {
		indices, err := tensor.FromSlice(at)
		require.NoError(t, err)
		mask, err := tensor.FromSlice(m)
		require.NoError(t, err)
		return f.Call(ctx, runtime.Args{"x": x, "at": indices, "m": mask})
	}
	first, old := -1, map[int]int32{}
	for i := 1; i < len(at); i += 3 {
		old[i], at[i] = at[i], -5 // where m does not hold
	}
	for _, p := range places {
		if m[p] && (first < 0 || p < first) {
			first = p
		}
		if _, kept := old[p]; !kept {
			old[p] = at[p]
		}
		at[p] = size/2 + int32(p%7)
	}
	_, err = run()
	if first < 0 {
		require.NoError(t, err)
	} else {
		var found *ir.IndexError
		require.ErrorAs(t, err, &found)
		assert.Equal(t, []int64{int64(first)}, found.At)
		assert.Equal(t, int64(2*at[first]), found.Index)
		assert.Equal(t, int64(size), found.Extent)
	}
	for p, v := range old {
		at[p] = v
	}
	out, err := run()
	require.NoError(t, err)
	for i, y := range out["y"].Float32s() {
		want := float32(0)
		if m[i] {
			want = x.Float32s()[2*at[i]] + 1
		}
		if y != want {
			require.Equal(t, want, y, "at %d", i)
		}
	}
}
