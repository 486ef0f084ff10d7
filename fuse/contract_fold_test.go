package fuse

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/explain"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp"
)

// foldedPrograms are reductions of products that are not written. Their default sizes
// are large, so that folding pays.
var foldedPrograms = map[string]string{
	"logsumexp":       "(x: bf16[M, K], w: bf16[K, N]) -> (y: f32[M]) { y = logsumexp(f32(x @ w), axis=-1) }",
	"scaled":          "(x: bf16[M, K], w: bf16[N, K]) -> (y: f32[M]) { y = logsumexp(f32(einsum(\"mk,nk->mn\", x, w)) * 0.5, axis=-1) }",
	"cross entropy":   "(x: bf16[M, K], w: bf16[K, N], t: i64[M]) -> (y: f32[]) { y = cross_entropy(f32(x) @ f32(w), t * 60) }",
	"smoothed":        "(x: bf16[M, K], w: bf16[K, N], t: i32[M], b: bf16[N]) -> (y: bf16[]) { y = cross_entropy(x @ w + b, t * 9, label_smoothing=0.1) }",
	"squares":         "(x: f16[M, K], w: f16[K, N]) -> (y: f32[M]) { y = sum(f32(x @ w) ** 2, axis=-1) }",
	"narrow":          "(x: bf16[M, K], w: bf16[K, N]) -> (y: bf16[M]) { y = sum(abs(x @ w), axis=-1) }",
	"columns":         "(x: bf16[M, K], w: bf16[K, N]) -> (y: f32[N]) { y = max(gelu(f32(x @ w)), axis=0) }",
	"everything":      "(x: bf16[M, K], w: bf16[K, N]) -> (y: f32[]) { y = mean(relu(f32(x @ w))) }",
	"places":          "(x: bf16[M, K], w: bf16[K, N]) -> (y: i64[M], z: i64[M]) { p = x @ w; y = argmax(p, axis=-1); z = argmin(p, axis=-1) }",
	"batch":           "(x: bf16[2, M, K], w: bf16[2, K, N]) -> (y: f32[2, M]) { y = logsumexp(f32(x @ w), axis=-1) }",
	"broadcast":       "(x: bf16[2, M, K], w: bf16[K, N]) -> (y: f32[2, M]) { y = min(f32(x @ w), axis=-1) }",
	"weighted":        "(x: bf16[M, K], w: bf16[K, N]) -> (y: f32[M]) { p = f32(x @ w); y = sum(exp(p - max(p, axis=-1, keep=true)) * p, axis=-1) }",
	"picked constant": "(x: bf16[M, K], w: bf16[K, N]) -> (y: f32[M]) { p = f32(x @ w); y[i] = (sum[j: N] p[i, j]) - p[i, 3] }",
	"masked":          "(x: bf16[M, K], w: bf16[K, N], m: bool[M, N]) -> (y: f32[M]) { y[i] = sum[j: N where m[i, j]] (sum[k: K] f32(x[i, k]) * f32(w[k, j])) }",
	"any":             "(x: bf16[M, K], w: bf16[K, N]) -> (y: bool[M]) { p = x @ w; y[i] = any[j: N] p[i, j] > 2.0 }",
	"chunk alone":     "(x: bf16[M, K], w: bf16[K, 128]) -> (y: f32[M]) { y = logsumexp(f32(x @ w), axis=-1) }",
	"chunks of heads": "(x: bf16[M, K], w: bf16[K, 3, 128]) -> (y: f32[M, 3]) { p = einsum(\"mk,khn->mhn\", x, w); y = sum(f32(p) ** 2, axis=-1) }",
}

func foldedProgram(name string) string {
	sizes := "@bench(M=32768, N=4096, K=64)"
	if !strings.Contains(foldedPrograms[name], "N]") {
		sizes = "@bench(M=32768, K=64)"
	}
	return sizes + " graph g" + foldedPrograms[name]
}

// TestFoldedProducts: no intermediate tensor has an element for each of the product,
// one kernel makes all its folds, and the plan computes what the graph does, at parts
// of tiles, of one row, and over nothing.
func TestFoldedProducts(t *testing.T) {
	for name := range foldedPrograms {
		t.Run(name, func(t *testing.T) {
			src := foldedProgram(name)
			g := parse(t, src)
			p, err := Plan(g, Options{})
			require.NoError(t, err)
			products := 0
			for _, k := range p.Kernels {
				if k.Template == ir.ContractTemplate {
					products++
					assert.NotNil(t, k.Variants[0].Contract.Product)
				}
			}
			assert.Equal(t, 1, products)
			for _, b := range p.Buffers {
				if b.Kind == ir.TempBuffer {
					assert.Less(t, algebra.Estimate(algebra.Product(b.Value.Axes), algebra.DefaultSizes(p.Graph)), float64(4096*4096), b.Name)
				}
			}
			for _, s := range [][3]int64{{1, 1, 1}, {2, 130, 3}, {3, 128, 2}, {129, 5, 1}, {2, 300, 1}, {3, 9, 0}, {0, 9, 3}, {3, 0, 3}} {
				sizes := map[string]int64{"M": s[0], "N": s[1], "K": s[2]}
				inputs, err := drawInputs(g, sizes, 7)
				require.NoError(t, err)
				comparePlan(t, g, p, inputs, sizes, fmt.Sprint(src, sizes))
			}
		})
	}
}

// TestFoldsExplained: explanations name the product that is not written, and what it
// sums over.
func TestFoldsExplained(t *testing.T) {
	g := parse(t, foldedProgram("cross entropy"))
	p, err := Plan(g, Options{})
	require.NoError(t, err)
	k := explain.Explain(g, p, explain.Options{}).Kernels[0]
	assert.Equal(t, "matmul_tile", k.Folds)
	assert.Equal(t, []explain.RangeNote{{Name: "k", Extent: "K"}}, k.Depth)
	assert.Equal(t, []explain.RangeNote{{Name: "j", Extent: "128"}}, k.Cols)
}

// TestFoldedExtremes: rows of -inf alone, of NaN, of +inf, and chunks of -inf beside
// others give what they give unfused.
func TestFoldedExtremes(t *testing.T) {
	for _, name := range []string{"logsumexp", "weighted", "columns", "squares", "places"} {
		g := parse(t, foldedProgram(name))
		p, err := Plan(g, Options{})
		require.NoError(t, err)
		sizes := map[string]int64{"M": 6, "N": 260, "K": 2}
		inputs, err := drawInputs(g, sizes, 3)
		require.NoError(t, err)
		x, w := inputs[0], inputs[1]
		for n := range w.F { // the second column of x adds what the second row of w says
			if n >= 260 {
				w.F[n] = 0
				if n%260 < 140 {
					w.F[n] = 1
				}
			}
		}
		for i, v := range []float64{math.Inf(-1), math.Inf(1), math.NaN(), 0, 1, -60000} {
			x.F[2*i+1] = v
		}
		comparePlan(t, g, p, inputs, sizes, name)
		for n := 260; n < 520; n++ {
			w.F[n] = 1
		}
		comparePlan(t, g, p, inputs, sizes, name+", whole rows")
	}
}

// TestProductsThatAreWritten: where the product is needed anyway, is small, or its
// reductions wait for each other otherwise, the plan is as before and says why.
func TestProductsThatAreWritten(t *testing.T) {
	for _, test := range []struct{ src, because string }{
		{"@bench(M=4096, N=4096, K=64) graph g(x: bf16[M, K], w: bf16[K, N]) -> (p: bf16[M, N], y: f32[M]) { p = x @ w; y = sum(f32(p), axis=-1) }", "is written in any case"},
		{"@bench(M=4096, N=4096, K=64) graph g(x: bf16[M, K], w: bf16[K, N]) -> (y: bf16[M, N]) { y = softmax(x @ w) }", "is written in any case"},
		{"@bench(M=4096, N=4096, K=64) graph g(x: bf16[M, K], w: bf16[K, N]) -> (y: f32[M], z: f32[N]) { p = f32(x @ w); y = sum(p, axis=1); z = sum(p, axis=0) }", "is written in any case"},
		{"@bench(M=4096, N=4096, K=64) graph g(x: bf16[M, K], w: bf16[K, N]) -> (y: f32[M]) { y = var(f32(x @ w), axis=-1) }", "until another reduction"},
		{"@bench(M=64, N=64, K=64) graph g(x: bf16[M, K], w: bf16[K, N]) -> (y: f32[M]) { y = sum(f32(x @ w), axis=-1) }", ""},
		{"@bench(M=4096, N=4096, K=64) graph g(x: bf16[M, K], w: bf16[K, N]) -> (y: f32[M, N / 4]) { p = f32(x @ w); y[m, j] = max[q: 4] p[m, j * 4 + q] }",
			"y reduces part of an axis of matmul"},
		{"@bench(M=4096, N=4096, K=64) graph g(x: bf16[M, K], w: bf16[K, N]) -> (y: f32[M]) { p = f32(x @ w); y[m] = max[n: N] p[m, n] * p[m, N - 1 - n] }",
			"combines several elements"},
	} {
		p := planOf(t, test.src)
		said := ""
		for _, r := range p.Refused {
			said += r.Detail + "\n"
		}
		assert.Contains(t, said, test.because, test.src)
		for _, k := range p.Kernels {
			for _, v := range k.Variants {
				assert.True(t, v.Contract == nil || v.Contract.Product == nil, test.src)
			}
		}
	}
	strict := planOf(t, "@strict "+foldedProgram("squares"))
	assert.Nil(t, strict.Kernels[0].Variants[0].Contract)
}

// TestFoldedWithoutTensorCores: the interpreter runs plans made for tensor cores; the plan for a device
// without them is one of plain loops.
func TestFoldedWithoutTensorCores(t *testing.T) {
	d, err := ir.DeviceNamed("T4")
	require.NoError(t, err)
	g := parse(t, foldedProgram("cross entropy"))
	p, err := Plan(g, Options{Device: d})
	require.NoError(t, err)
	sizes := map[string]int64{"M": 3, "N": 130, "K": 2}
	inputs, err := drawInputs(g, sizes, 1)
	require.NoError(t, err)
	want, err := interp.Run(g, inputs, interp.Options{})
	require.NoError(t, err)
	got, err := interp.RunPlan(p, inputs, interp.PlanOptions{})
	require.NoError(t, err)
	requireSame(t, want, got, 1e-12, "cross entropy")
}

// TestTilesOfFolds: rows too few for tiles that the copy engine brings, and sizes that
// it does not take, go through mma.sync; where folds are little work, the widest tile
// is as good as for the product alone.
func TestTilesOfFolds(t *testing.T) {
	p := planOf(t, foldedProgram("logsumexp"))
	for _, test := range []struct {
		m, n, k int64
		want    string
	}{
		{4096, 128256, 4096, "warpgroup 128x256"},
		{1024, 2176, 4096, "warpgroup 128x256"},
		{264, 520, 72, "warpgroup 128x128"},
		{1, 128256, 4096, "contract 128x128"},
		{129, 257, 33, "contract 128x128"},
		{8, 8, 0, "contract 128x128"},
	} {
		for _, v := range p.Kernels[0].Variants {
			if holds(v, map[string]int64{"M": test.m, "N": test.n, "K": test.k}) {
				s := v.Schedule
				assert.Equal(t, test.want, fmt.Sprintf("%s %dx%d", s.Mapping, s.TileM, s.TileN), "%+v", test)
				break
			}
		}
	}
}
