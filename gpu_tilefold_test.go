package fusec

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/tensor"
)

// TileFolds are reductions of products that are not written: along either side, in
// every order of the operands, one after another, of what follows the product, with
// elements picked, and with batches. None of their intermediates has an element for
// each of the product.
var TileFolds = map[string]string{
	"cross entropy": `(x: bf16[M, K], w: bf16[K, N], t: i64[M]) -> (y: f32[M]) {
		y = cross_entropy(f32(x) @ f32(w), t * 61 - 5, reduction="none")
	}`,
	"cross entropy bt": `(x: f16[M, K], w: f16[N, K], t: i32[M], b: f16[N]) -> (y: f16[]) {
		y = cross_entropy(einsum("mk,nk->mn", x, w) + b, t * 7, label_smoothing=0.1)
	}`,
	"logsumexp":   "(x: bf16[M, K], w: bf16[K, N]) -> (y: f32[M]) { y = logsumexp(f32(x @ w) * 3, axis=-1) }",
	"squares":     "(x: bf16[M, K], w: bf16[K, N]) -> (y: f32[M]) { y = sum(f32(x @ w) ** 2, axis=-1) }",
	"column max":  "(x: bf16[M, K], w: bf16[K, N]) -> (y: bf16[N]) { y = max(x @ w, axis=0) }",
	"column sums": "(x: f16[K, M], w: f16[N, K], b: f16[M]) -> (y: f32[N]) { y[n] = sum[m: M] gelu(f32(sum[k: K] x[k, m] * w[n, k]) + f32(b[m])) }",
	"mean":        "(x: bf16[M, K], w: bf16[K, N]) -> (y: f32[]) { y = mean(f32(x @ w)) }",
	"several": `(x: bf16[M, K], w: bf16[K, N], s: f32[N]) -> (low: f32[M], high: f32[M], most: f32[M], some: bool[M]) {
		p = f32(x @ w) * s
		low = min(p, axis=-1)
		high = max(abs(p), axis=-1)
		most = sum(exp(p - max(p, axis=-1, keep=true)) * p, axis=-1)
		some[i] = any[j: N] p[i, j] > 9.0
	}`,
	"argmax": "(x: bf16[M, K], w: bf16[K, N]) -> (y: i64[M], z: i64[M]) { p = x @ w; y = argmax(p, axis=-1); z = argmin(p, axis=-1) }",
	"heads":  `(x: bf16[M, 2, K], w: bf16[2, K, N]) -> (y: f32[2, M]) { y = logsumexp(f32(einsum("mhk,hkn->hmn", x, w)), axis=-1) }`,
}

// TileFoldProgram is one of them as a program, with sizes at which it is planned.
func TileFoldProgram(name string) string {
	return "@bench(M=4096, N=4096, K=512) graph folds" + TileFolds[name]
}

// TestTileFoldsOnGPU compares folds of tiles with the interpreter, at parts of tiles,
// of one row, at odd sizes and over no columns, and asks for the same bits again.
func TestTileFoldsOnGPU(t *testing.T) {
	mustEnd(t)
	dev := openGPU(t, runtime.Options{OnWarning: func(err error) { t.Log("warning:", err) }})
	for name := range TileFolds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, f := loaded(t, dev, TileFoldProgram(name))
			for _, n := range [][3]int64{{264, 520, 72}, {1, 136, 200}, {129, 257, 33}, {8, 8, 0}} {
				sizes := map[string]int64{"M": n[0], "N": n[1], "K": n[2]}
				compareWithInterpreter(t, p.Graph(), f, sizes)
				requireSameBits(t, p.Graph(), f, sizes)
			}
		})
	}
}

// TestLargeTileFoldsOnGPU compares the log-sum-exp of rows with that of the product as
// another kernel writes it, at sizes for which the largest tiles are used, and whose
// last tile is half empty.
func TestLargeTileFoldsOnGPU(t *testing.T) {
	mustEnd(t)
	dev := openGPU(t, runtime.Options{})
	const header = "@bench(M=1024, N=2176, K=4096) graph g(x: bf16[M, K], w: bf16[K, N]) -> "
	args := runtime.Args{}
	for i, shape := range map[string][]int{"x": {1024, 4096}, "w": {4096, 2176}} {
		x, err := tensor.Random(ir.BF16, uint64(len(i)+shape[0]), shape...)
		require.NoError(t, err)
		args[i] = x
	}
	run := func(text string) []float32 {
		_, f := loaded(t, dev, header+text)
		out, err := f.Call(context.Background(), args)
		require.NoError(t, err)
		values, ok := tensor.View[float32](out["y"])
		require.True(t, ok)
		return values
	}
	logits := run("(y: f32[M, N]) { y = f32(x) @ f32(w) }")
	for row, got := range run("(y: f32[M]) { y = logsumexp(f32(x) @ f32(w) / 64, axis=-1) }") {
		sum := 0.0
		for _, l := range logits[row*2176 : (row+1)*2176] {
			sum += math.Exp(float64(l) / 64)
		}
		require.InDelta(t, math.Log(sum), got, 1e-4, "row %d", row)
	}
}
