package conformance

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/num"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/tensor"
)

// longSorts are orders of rows that the interpreter has no time for.
const longSorts = `graph g(x: f32[N, M]) -> (up: f32[N, M], at: i64[N, M], place: i64[N, M], down: f32[N, M], top: f32[N, 64], top_at: i64[N, 64],
    low: f32[N, 1000], half_at: i64[N, M], half_up: bf16[N, M], half_top: bf16[N, 200], half_top_at: i64[N, 200],
    long_at: i64[N, M], long_low: f64[N, 9], long_low_at: i64[N, 9]) {
    up = sort(x)
    at = argsort(x)
    place = argsort(at)
    down = sort(x, descending=true)
    top, top_at = topk(x, 64)
    low, low_at = topk(x, 1000, largest=false)
    half = bf16(x)
    half_at = argsort(half, descending=true)
    half_up = sort(half)
    half_top, half_top_at = topk(half, 200)
    long_at = argsort(f64(x))
    long_low, long_low_at = topk(f64(x), 9, largest=false)
}`

// TestLongSortsOnGPU compares rows of every candidate, and longer than any, with the
// standard library's sort: distinct values, many equal ones, all equal, and NaN.
func TestLongSortsOnGPU(t *testing.T) {
	dev := openGPU(t, runtime.Options{})
	f, err := fusec.Load(context.Background(), dev.Device, fusec.Source{Name: "long.fuse", Text: []byte(longSorts)}, fusec.Options{})
	require.NoError(t, err)
	for _, shape := range [][2]int{{40, 250}, {40, 1000}, {9, 2048}, {40, 4096}, {7, 5000}, {5, 8192}, {3, 8193}, {2, 20000}, {1, 32768}, {1, 100003}} {
		for name, change := range map[string]func(i int, v float32) float32{
			"random": func(_ int, v float32) float32 { return v },
			"equal":  func(int, float32) float32 { return 2 },
			"few":    func(_ int, v float32) float32 { return float32(math.Round(float64(v))) },
			"nan": func(i int, v float32) float32 {
				return [...]float32{v, float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 0}[i%5]
			},
			"rising":  func(i int, _ float32) float32 { return float32(i) },
			"falling": func(i int, _ float32) float32 { return -float32(i) },
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

// checkSorts compares the orders of one row with the standard library's.
func checkSorts(t *testing.T, x []float32, got map[string]*tensor.Tensor, row int) {
	up, down := inOrder(x, false), inOrder(x, true)
	floats := func(name string, x []float32, want []int64) {
		have, n := got[name].Float32s(), got[name].Shape[1]
		for j, v := range have[row*n:][:min(n, len(want))] {
			if w := x[want[j]]; w != v && (w == w || v == v) {
				t.Fatalf("%s: row %d, place %d: want %v, found %v", name, row, j, w, v)
			}
		}
	}
	half := make([]float32, len(x))
	for i, v := range x {
		half[i] = num.BF16Value(num.BF16Bits(v))
	}
	halfDown := inOrder(half, true)
	floats("up", x, up)
	floats("down", x, down)
	floats("top", x, down)
	floats("low", x, up)
	n := len(x)
	assert.Equal(t, up, got["at"].Ints()[row*n:][:n])
	for j, at := range up {
		assert.Equal(t, int64(j), got["place"].Ints()[row*n:][at])
	}
	assert.Equal(t, down[:64], got["top_at"].Ints()[row*64:][:64])
	assert.Equal(t, halfDown, got["half_at"].Ints()[row*n:][:n])
	floats("half_up", half, inOrder(half, false))
	floats("half_top", half, halfDown)
	assert.Equal(t, halfDown[:200], got["half_top_at"].Ints()[row*200:][:200])
	assert.Equal(t, up, got["long_at"].Ints()[row*n:][:n])
	floats("long_low", x, up)
	assert.Equal(t, up[:9], got["long_low_at"].Ints()[row*9:][:9])
}

// TestSortsFitDevices: no block that sorts or selects wants more shared memory than a
// device has for it, or more blocks beside it than a multiprocessor runs, and on the largest device rows of 32768 words are sorted by one block.
func TestSortsFitDevices(t *testing.T) {
	t.Parallel()
	for _, d := range ir.Devices() {
		for _, dtype := range []string{"bf16", "f32", "f64"} {
			for _, result := range []string{"y: %[1]s[N, M]) { y = sort(x) }", "y: i64[N, M]) { y = argsort(x) }",
				"y: %[1]s[N, 3], i: i64[N, 3]) { y, i = topk(x, 3) }", "y: %[1]s[N, 256]) { y, i = topk(x, 256) }"} {
				src := fmt.Sprintf("graph g(x: %[1]s[N, M]) -> ("+result, dtype)
				sorts := planned(t, row{name: "sort", src: src}, d.Name)
				plan := sorts.Plan()
				p, err := sorts.CUDA()
				require.NoError(t, err)
				for _, u := range p.Units {
					assert.LessOrEqual(t, u.Shared, d.SharedBlock, "%s on %s", src, d.Name)
				}
				for _, v := range plan.Kernels[0].Variants {
					assert.LessOrEqual(t, v.Schedule.MinBlocks, d.Blocks(), "%s on %s", src, d.Name)
				}
			}
		}
	}
	plan := planned(t, row{name: "sort", src: "graph g(x: f32[N, M]) -> (y: f32[N, M]) { y = sort(x) }"}, "H200").Plan()
	longest := 0
	for _, v := range plan.Kernels[0].Variants {
		if s := v.Schedule; s.Mapping == ir.SortMapping {
			longest = max(longest, s.Threads*s.Items)
		}
	}
	assert.Equal(t, 32768, longest)
}
