package fusec

import (
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

// heldRows are programs whose long rows blocks and clusters hold while the next ones are on
// their way. Sizes are those of blocks, of each cluster, of rows in many and in few runs of
// memory, of shares that end inside a run, and of rows that are no whole vectors.
var heldRows = []struct {
	Name, Source string
	sizes        [][]int64 // of the symbols in order
}{
	{"batch norm", `@bench(N=64, C=256, L=3136) graph g(x: f32[N, C, L], w: f32[C], b: f32[C]) -> (y: f32[N, C, L], m: f32[C], v: f32[C]) {
		y, m, v = batch_norm_train(x, w, b) }`,
		[][]int64{{1, 2, 20000}, {64, 3, 400}, {33, 2, 1004}, {65, 3, 1028}, {129, 2, 1024}, {4100, 2, 8}, {64, 3, 401}, {0, 3, 8}, {3, 0, 8}, {2, 3, 0}}},
	{"batch norm in bf16", `@bench(N=64, C=256, L=3136) graph g(x: bf16[N, C, L], w: f32[C]) -> (y: bf16[N, C, L], m: f32[C], v: f32[C]) {
		y, m, v = batch_norm_train(x, w) }`, [][]int64{{64, 3, 1000}, {65, 2, 3136}, {2100, 3, 16}, {33, 3, 1001}}},
	{"group norm in f16", `@bench(N=64, H=80, W=80) graph g(x: f16[N, 6, H, W], w: f16[6], b: f16[6]) -> (y: f16[N, 6, H, W]) {
		y = group_norm(x, 2, w, b) }`, [][]int64{{2, 120, 120}, {1, 160, 200}, {2, 119, 121}}},
	{"the norm of a sum", `@bench(N=64, C=256, L=1568) graph g(x: f32[N, C, L], r: f32[N, C, L]) -> (y: f32[N, C, L]) {
		y, m, v = batch_norm_train(x + r) }`, [][]int64{{64, 3, 400}, {17, 4, 1568}, {43, 2, 3136}}},
	{"softmax around an axis", `@bench(N=64, C=256, L=3136) graph g(x: bf16[N, C, L]) -> (y: bf16[N, C, L]) {
		w = f32(x)
		e = exp(w - max(w, axis=(0, 2), keep=true))
		y = bf16(e / sum(e, axis=(0, 2), keep=true)) }`, [][]int64{{64, 3, 1000}, {70, 2, 3136}}},
	{"tensors of two types", `@bench(N=64, C=256, L=1568) graph g(x: bf16[N, C, L], r: f32[N, C, L]) -> (y: f32[N, C, L]) {
		w = f32(x) * r
		e = exp(w - max(w, axis=(0, 2), keep=true))
		y = e / sum(e, axis=(0, 2), keep=true) }`, [][]int64{{32, 3, 1040}, {9, 3, 2008}}},
	{"three axes", `@bench(A=8, B=256, C=8, D=1568) graph g(x: f32[A, B, C, D]) -> (y: f32[A, B, C, D]) {
		m, v = moments(x, axis=(0, 2, 3))
		y = (x - m) * rsqrt(v + 1e-5) + x / sum(abs(x), axis=(0, 2, 3), keep=true) }`, [][]int64{{5, 3, 8, 640}, {3, 2, 12, 2048}}},
	{"rows of a slice", `@bench(N=2048, M=65536) graph g(x: f32[N, 2 * M]) -> (y: f32[N, M]) { y = softmax(x[:, 0:M]) }`,
		[][]int64{{2, 20001}, {2, 20002}, {3, 40004}}},
	{"gradient of cross entropy in bf16", `@bench(N=4096, C=128256) graph g(x: bf16[N, C], at: i64[N]) -> (y: bf16[N, C]) {
		p = softmax(f32(x))
		y = bf16(where(at[:, none] == iota(C), p - 1, p) / N) }`, [][]int64{{1, 118792}, {1, 131072}}},
	{"layer norm", `@bench(N=2048, M=131072) graph g(x: f32[N, M], w: f32[M]) -> (y: f32[N, M]) { y = layer_norm(x, w) }`,
		[][]int64{{2, 33332}, {3, 50000}, {2, 140004}, {1, 262144}}},
}

func TestHeldRowsOnGPU(t *testing.T) { forHeldRows(t, openGPU(t, runtime.Options{})) }

func TestHeldRowsOnCPU(t *testing.T) { forHeldRows(t, openCPU(t)) }

func forHeldRows(t *testing.T, dev *runtime.Device) {
	for _, c := range heldRows {
		t.Run(c.Name, func(t *testing.T) {
			p, f := loaded(t, dev, c.Source)
			compareUpTo(t, p, f, c.sizes, 1<<21)
		})
	}
}

// TestHeldRowsArePlanned: the programs above are what they are for.
func TestHeldRowsArePlanned(t *testing.T) {
	for _, c := range heldRows {
		p, err := CompileSource(Source{Name: "held.fuse", Text: []byte(c.Source)}, Options{Arch: "sm_90a"})
		require.NoError(t, err)
		require.Len(t, p.Plan().Kernels, 1, c.Name)
		ahead := func(v *ir.Variant) bool { return v.Schedule.Mapping == ir.RowMapping && v.Schedule.Stages > 0 }
		assert.True(t, slices.ContainsFunc(p.Plan().Kernels[0].Variants, ahead), c.Name)
	}
}

// TestManyHeldRowsOnGPU runs so many rows that every block has several and its shared memory
// goes round, by blocks and by clusters, and compares them with sums in f64: of values
// about 0, and of values far from it, whose squares cancel.
func TestManyHeldRowsOnGPU(t *testing.T) {
	dev := openGPU(t, runtime.Options{})
	for _, dtype := range []string{"f32", "bf16"} {
		src := fmt.Sprintf(`@bench(N=64, C=256, L=3136) graph g(x: %[1]s[N, C, L]) -> (y: %[1]s[N, C, L], m: f32[C], v: f32[C]) {
			y, m, v = batch_norm_train(x) }`, dtype)
		f, err := Load(context.Background(), dev, Source{Name: "held.fuse", Text: []byte(src)}, Options{})
		require.NoError(t, err)
		for i, shape := range [][]int{{20, 1400, 1000}, {45, 300, 1536}, {100, 110, 1000}, {50, 70, 4000}} {
			t.Run(fmt.Sprint(dtype, shape), func(t *testing.T) {
				x, err := tensor.Random(map[string]ir.DType{"f32": ir.F32, "bf16": ir.BF16}[dtype], 1, shape...)
				require.NoError(t, err)
				if data, ok := tensor.View[float32](x); ok && i%2 == 1 {
					for k := range data {
						data[k] += 100
					}
				}
				got, err := f.Call(context.Background(), runtime.Args{"x": x})
				require.NoError(t, err)
				checkBatchNorm(t, x, got, shape)
			})
		}
	}
}

func checkBatchNorm(t *testing.T, x *tensor.Tensor, got map[string]*tensor.Tensor, shape []int) {
	data, y, m, v := x.Float32s(), got["y"].Float32s(), got["m"].Float32s(), got["v"].Float32s()
	n, channels, run := shape[0], shape[1], shape[2]
	within := 3e-4
	if x.DType == ir.BF16 {
		within = 1.0 / 64 // half a unit in the last place of what is below 8
	}
	for c := range channels {
		each := func(do func(at int)) {
			for i := range n {
				for k := range run {
					do((i*channels+c)*run + k)
				}
			}
		}
		count, mean, squares := float64(n*run), 0.0, 0.0
		each(func(at int) { mean += float64(data[at]) / count })
		each(func(at int) { squares += (float64(data[at]) - mean) * (float64(data[at]) - mean) })
		require.InDelta(t, mean, m[c], 1e-4, "mean of channel %d", c)
		require.InDelta(t, squares/(count-1), v[c], 1e-4, "variance of channel %d", c)
		factor, worst := 1/math.Sqrt(squares/count+1e-5), 0.0
		each(func(at int) { worst = max(worst, math.Abs((float64(data[at])-mean)*factor-float64(y[at]))) })
		require.LessOrEqual(t, worst, within, "channel %d", c)
	}
}
