package fusec

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/tensor"
)

// longSorts are orders of rows that the interpreter has no time for.
const longSorts = `graph g(x: f32[N, M]) -> (up: f32[N, M], at: i64[N, M], down: f32[N, M], top: f32[N, 64], top_at: i64[N, 64],
    low: f32[N, 1000]) {
    up = sort(x)
    at = argsort(x)
    down = sort(x, descending=true)
    top, top_at = topk(x, 64)
    low, low_at = topk(x, 1000, largest=false)
}`

// TestLongSortsOnGPU compares rows on every rung, and longer than any, with the
// standard library's sort: distinct values, many equal ones, all equal, and NaN.
func TestLongSortsOnGPU(t *testing.T) {
	dev := openGPU(t, runtime.Options{})
	f, err := Load(context.Background(), dev, Source{Name: "long.fuse", Text: []byte(longSorts)}, Options{})
	require.NoError(t, err)
	for _, shape := range [][2]int{{40, 1000}, {40, 4096}, {7, 5000}, {5, 8192}, {3, 8193}, {2, 20000}, {1, 100003}} {
		for name, change := range map[string]func(i int, v float32) float32{
			"random": func(_ int, v float32) float32 { return v },
			"equal":  func(int, float32) float32 { return 2 },
			"few":    func(_ int, v float32) float32 { return float32(math.Round(float64(v))) },
			"nan": func(i int, v float32) float32 {
				return [...]float32{v, float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 0}[i%5]
			},
		} {
			t.Run(fmt.Sprint(shape, name), func(t *testing.T) {
				x, err := tensor.Random(ir.F32, 1, shape[0], shape[1])
				require.NoError(t, err)
				data, _ := tensor.View[float32](x)
				for i, v := range data {
					data[i] = change(i, v)
				}
				got, err := f.Call(context.Background(), runtime.Args{"x": x})
				require.NoError(t, err)
				for row := range shape[0] {
					checkSorts(t, data[row*shape[1]:][:shape[1]], got, row)
				}
			})
		}
	}
}

// inOrder returns the indices of x in a stable order with NaN last, or first where
// descending.
func inOrder(x []float32, descending bool) []int64 {
	at := make([]int64, len(x))
	for i := range at {
		at[i] = int64(i)
	}
	slices.SortStableFunc(at, func(a, b int64) int {
		if descending {
			a, b = b, a
		}
		return -cmp.Compare(-x[a], -x[b])
	})
	return at
}

func checkSorts(t *testing.T, x []float32, got map[string]*tensor.Tensor, row int) {
	up, down := inOrder(x, false), inOrder(x, true)
	floats := func(name string, want []int64) {
		have, n := got[name].Float32s(), got[name].Shape[1]
		for j, v := range have[row*n:][:min(n, len(want))] {
			if w := x[want[j]]; w != v && (w == w || v == v) {
				t.Fatalf("%s: row %d, place %d: want %v, found %v", name, row, j, w, v)
			}
		}
	}
	floats("up", up)
	floats("down", down)
	floats("top", down)
	floats("low", up)
	n := len(x)
	assert.Equal(t, up, got["at"].Ints()[row*n:][:n])
	assert.Equal(t, down[:64], got["top_at"].Ints()[row*64:][:64])
}
