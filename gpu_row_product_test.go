package fusec

import (
	"context"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/tensor"
)

// rowProducts are products that wait for folds over the rows of one side, in every
// order of axes. K stands for the columns, a number.
var rowProducts = map[string]string{
	"softmax": `@bench(M=64, N=64) graph g(h: f32[M, K], w: f32[K, N], r: f32[M, N]) -> (y: f32[M, N]) { y = gelu(softmax(h) @ w) + r }`,
	"rms_norm": `@bench(M=64, N=64) graph g(h: f32[M, K], g: f32[K], w: f32[K, N]) -> (y: f32[M, N]) {
		s[m, k] = h[m, k] / sqrt((sum[j: K] h[m, j] * h[m, j]) * 0.01 + 1e-5) * g[k] + 1
		y = s @ w }`,
	"layer_norm": `@bench(M=64, N=64) graph g(h: f32[M, K], g: f32[K], b: f32[K], w: f32[K, N]) -> (y: f32[M, N]) { y = layer_norm(h, g, b) @ w }`,
	"weights transposed": `@bench(M=64, N=64) graph g(h: f32[M, K], w: f32[N, K]) -> (y: f32[M, N]) {
		s = softmax(h)
		y[m, n] = sum[k: K] s[m, k] * w[n, k] }`,
	"result transposed": `@bench(M=64, N=64) graph g(h: f32[M, K], w: f32[K, N], r: f32[N, M]) -> (y: f32[N, M]) {
		s = softmax(h)
		p[n, m] = sum[k: K] s[m, k] * w[k, n]
		y = p * r }`,
	"batched":         `@bench(M=64, N=64) graph g(h: f32[3, M, K], w: f32[3, K, N], c: f32[N]) -> (y: f32[3, M, N]) { y = softmax(h) @ w + c }`,
	"rows of batches": `@bench(M=64, N=64) graph g(h: f32[3, M, K], w: f32[K, N]) -> (y: f32[3, M, N]) { y = softmax(h) @ w }`,
	"rows transposed": `@bench(M=2048, N=64) graph g(h: f32[K, M], w: f32[K, N]) -> (y: f32[M, N]) {
		s = softmax(h, axis=0)
		y[m, n] = sum[k: K] s[k, m] * w[k, n] }`,
	"on the right": `@bench(M=64, N=2048) graph g(w: f32[M, K], h: f32[K, N]) -> (y: f32[M, N]) { y = w @ softmax(h, axis=0) }`,
	"two axes": `@bench(M=64, N=64) graph g(h: f32[M, 2, K], w: f32[2, K, N]) -> (y: f32[M, N]) {
		top[m] = max[i: 2, k: K] h[m, i, k]
		total[m] = sum[i: 2, k: K] exp(h[m, i, k] - top[m])
		y[m, n] = sum[i: 2, k: K] (exp(h[m, i, k] - top[m]) / total[m] + 0.5) * w[i, k, n] }`,
	"masked": `@bench(M=64, N=64) graph g(h: f32[M, K], w: f32[K, N]) -> (y: f32[M, N]) { y = softmax(where(h > 0.25, h, -inf)) @ w }`,
	"weights computed": `@bench(M=64, N=64) graph g(h: f32[M, K], q: i8[K, N], s: f32[N]) -> (y: f32[M, N]) {
		v[k, n] = f32(q[k, n]) + s[n]
		y = softmax(h) @ v }`,
	"place of the largest": `@bench(M=64, N=64) graph g(h: f32[M, K], w: f32[K, N]) -> (y: f32[M, N]) {
		at = argmax(h, axis=1)
		s[m, k] = where(at[m] == k, 1.0, h[m, k] * 0.5)
		y = s @ w }`,
	"scaled after":               `@bench(M=64, N=64) graph g(h: f32[M, K], w: f32[K, N]) -> (y: f32[M, N]) { y = rms_norm(h) @ w }`,
	"scaled after, on the right": `@bench(M=64, N=64) graph g(w: f32[M, K], h: f32[N, K]) -> (y: f32[M, N]) { y = w @ transpose(rms_norm(h)) }`,
	"divided after": `@bench(M=64, N=64) graph g(h: f32[M, K], w: f32[K, N]) -> (y: f32[N, M]) {
		top[m] = max[k: K] h[m, k]
		total[m] = sum[k: K] exp(h[m, k] - top[m])
		p[n, m] = sum[k: K] exp(h[m, k] - top[m]) * w[k, n]
		y[n, m] = p[n, m] / total[m] }`,
	"no folds":          `@bench(M=64, N=64) graph g(h: f32[M, K], w: f32[K, N], r: f32[M, N]) -> (y: f32[M, N]) { y = gelu(h @ w) + r }`,
	"batches, no folds": `@bench(M=64, N=64) graph g(h: f32[3, M, K], w: f32[3, K, N]) -> (y: f32[3, M, N]) { y = h @ w }`,
	"layers": `@bench(M=64) graph g(h: f32[M, K], w: f32[K, K], r: f32[M, K]) -> (y: f32[M, K]) {
		a = gelu(softmax(h) @ w) + r
		b = gelu(softmax(a) @ w) + r
		y = gelu(softmax(b) @ w) + r }`,
}

var columnsName = regexp.MustCompile(`\bK\b`)

// rowProduct is one of them with a number of columns.
func rowProduct(name string, columns int) string {
	return columnsName.ReplaceAllString(rowProducts[name], strconv.Itoa(columns))
}

// rowProductColumns are numbers of columns: whole vectors and not, less than a warp's and
// as many as a block holds.
var rowProductColumns = []int{256, 67, 1000, 31, 255, 64, 257}

// rowProductRows are M and N: whole tiles, parts of them, nothing.
var rowProductRows = [][2]int64{{1, 1}, {31, 67}, {64, 64}, {130, 255}, {0, 5}, {5, 0}}

func TestRowProductsOnGPU(t *testing.T) {
	dev := openGPU(t, runtime.Options{OnWarning: func(err error) { t.Log("warning:", err) }})
	for i, name := range slices.Sorted(maps.Keys(rowProducts)) {
		for turn := range 2 {
			columns := rowProductColumns[(2*i+turn)%len(rowProductColumns)]
			t.Run(fmt.Sprint(name, columns), func(t *testing.T) {
				t.Parallel()
				p, f := loaded(t, dev, rowProduct(name, columns))
				for _, s := range rowProductRows {
					sizes := map[string]int64{"M": s[0], "N": s[1]}
					if name == "layers" {
						delete(sizes, "N")
					}
					if work(p.Graph(), sizes) <= 1<<22 {
						t.Run(fmt.Sprint(s), func(t *testing.T) { compareWithInterpreter(t, p.Graph(), f, sizes) })
					}
				}
			})
		}
	}
}

// TestRowProductsOfSpecialValuesOnGPU puts infinities and NaN into rows: alone, among
// other values, and as whole rows. What they give is as in the interpreter, and no other
// row knows of them.
func TestRowProductsOfSpecialValuesOnGPU(t *testing.T) {
	dev := openGPU(t, runtime.Options{})
	const m, n, k = 37, 35, 67
	for _, name := range []string{"softmax", "layer_norm", "masked", "place of the largest"} {
		p, f := loaded(t, dev, rowProduct(name, k))
		for _, rare := range []float64{math.Inf(-1), math.Inf(1), math.NaN()} {
			t.Run(fmt.Sprint(name, rare), func(t *testing.T) {
				g, args, inputs := p.Graph(), runtime.Args{}, []*interp.Tensor(nil)
				shapes, err := f.Shapes(map[string]int64{"M": m, "N": n})
				require.NoError(t, err)
				for i, v := range g.Inputs {
					x, err := tensor.Random(v.Type, uint64(i+1), shapes[v.Name]...)
					require.NoError(t, err)
					if v.Name == "h" {
						x, err = tensor.FromSlice(withRare(x.Floats(), k, float32(rare)), x.Shape...)
						require.NoError(t, err)
					}
					args[v.Name] = x
					inputs = append(inputs, interp.FromBytes(v.Type, x.Shape, slices.Clone(x.Data)))
				}
				want, err := interp.Run(g, inputs, interp.Options{})
				require.NoError(t, err)
				got, err := f.Call(context.Background(), args)
				require.NoError(t, err)
				expected, err := tensor.FromBytes(ir.F32, want[0].Bytes(), want[0].Shape...)
				require.NoError(t, err)
				diff, err := tensor.Compare(got["y"], expected, tolerance(expected, 0))
				require.NoError(t, err)
				assert.True(t, diff.OK(), "%v", diff)
			})
		}
	}
}

// withRare puts a value into some rows: one of it alone, one with it at a place, one with
// a single other value.
func withRare(x []float64, columns int, rare float32) []float32 {
	out := make([]float32, len(x))
	for i, v := range x {
		row, col := i/columns, i%columns
		out[i] = float32(v)
		if row%5 == 0 || row%5 == 1 && col == row || row%5 == 2 && col != 3 {
			out[i] = rare
		}
	}
	return out
}

// TestRowProductsReadFreshWeightsOnGPU runs a chain again and again with other weights in
// the same memory: a kernel that starts its copies early must not see the old ones. The
// bits of a repetition are those of the first run.
func TestRowProductsReadFreshWeightsOnGPU(t *testing.T) {
	dev := openGPU(t, runtime.Options{})
	_, f := loaded(t, dev, rowProduct("layers", 64))
	args := func(seed uint64) runtime.Args {
		out := runtime.Args{}
		for name, shape := range map[string][]int{"h": {100, 64}, "w": {64, 64}, "r": {100, 64}} {
			x, err := tensor.Random(ir.F32, seed+uint64(len(name)+int(name[0])), shape...)
			require.NoError(t, err)
			out[name] = x
		}
		return out
	}
	var first [2]*tensor.Tensor
	for turn := range 40 {
		out, err := f.Call(context.Background(), args(uint64(turn%2)))
		require.NoError(t, err)
		if turn < 2 {
			first[turn] = out["y"]
			continue
		}
		require.Equal(t, first[turn%2].Data, out["y"].Data, "turn %d", turn)
	}
	require.NotEqual(t, first[0].Data, first[1].Data)
}
