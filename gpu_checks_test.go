package fusec

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/tensor"
)

// TestIndicesOutsideOnGPU: a GPU says what the interpreter says, from launches and from
// graphs, and the run after is as good as any.
func TestIndicesOutsideOnGPU(t *testing.T) {
	mustEnd(t)
	findOutside(t, openGPU(t, runtime.Options{}), "GPU")
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
