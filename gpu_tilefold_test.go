package fusec

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/runtime"
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

// TestTileFoldsOnGPU compares folds of tiles with the interpreter, at whole tiles and
// parts of them, at one row, and over no columns, and asks for the same bits again.
func TestTileFoldsOnGPU(t *testing.T) {
	dev := openGPU(t, runtime.Options{OnWarning: func(err error) { t.Log("warning:", err) }})
	for name := range TileFolds {
		p, err := Compile("folds.fuse", TileFoldProgram(name), Options{Arch: dev.Arch()})
		require.NoError(t, err)
		f, err := p.Load(context.Background(), dev)
		require.NoError(t, err)
		for _, n := range [][3]int64{{128, 256, 64}, {264, 520, 72}, {1, 136, 200}, {129, 257, 33}, {1, 1, 1}, {8, 8, 0}} {
			sizes := map[string]int64{"M": n[0], "N": n[1], "K": n[2]}
			t.Run(fmt.Sprint(name, n), func(t *testing.T) {
				compareWithInterpreter(t, p.Graph(), f, sizes)
				sameBits(t, p.Graph(), f, sizes)
			})
		}
	}
}
