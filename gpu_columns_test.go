package fusec

import (
	"fmt"
	"testing"

	"github.com/fusec/fusec/runtime"
)

// columnProducts are products whose results have few columns: a large matrix on the left, in
// every order, with what may stand around them.
var columnProducts = map[string]string{
	"plain":      "(w: bf16[M, K], x: bf16[K, N]) -> (y: bf16[M, N]) { y = w @ x }",
	"x along":    "(w: f16[M, K], x: f16[N, K]) -> (y: f16[M, N]) { y = w @ transpose(x) }",
	"w across":   "(w: bf16[K, M], x: bf16[K, N]) -> (y: bf16[M, N]) { y = transpose(w) @ x }",
	"both":       "(w: f16[K, M], x: f16[N, K]) -> (y: f16[M, N]) { y = einsum(\"km,nk->mn\", w, x) }",
	"f32":        "(w: f32[M, K], x: f32[K, N]) -> (y: f32[M, N]) { y = w @ x }",
	"f64":        "(w: f64[M, K], x: f64[K, N]) -> (y: f64[M, N]) { y = w @ x }",
	"batch":      "(w: bf16[3, M, K], x: bf16[3, K, N]) -> (y: bf16[3, M, N]) { y = w @ x }",
	"broadcast":  "(w: bf16[M, K], x: bf16[3, K, N]) -> (y: bf16[3, M, N]) { y = einsum(\"mk,bkn->bmn\", w, x) }",
	"int8":       "(w: i8[M, K], s: f32[M], x: bf16[K, N]) -> (y: bf16[M, N]) { y[m, n] = bf16(sum[k] f32(w[m, k]) * f32(x[k, n]) * s[m]) }",
	"epilogue":   "(w: bf16[M, K], x: bf16[K, N], b: f32[M], c: bf16[N], r: bf16[M, N]) -> (y: bf16[M, N]) { y = bf16(gelu(f32(w @ x) + b[:, none] + f32(c)) + f32(r)) }",
	"prologue":   "(w: bf16[M, K], x: f32[N, K], s: f32[K]) -> (y: f32[M, N]) { y[m, n] = sum[k] f32(w[m, k]) * silu(x[n, k]) * s[k] }",
	"gated":      "(x: bf16[M, K], a: bf16[K, N], b: bf16[K, N]) -> (y: bf16[M, N]) { y = silu(x @ a) * (x @ b) }",
	"two":        "(w: bf16[M, K], x: bf16[K, N]) -> (y: bf16[M, N], z: f32[N, M]) { y = w @ x; z[n, m] = f32(y[m, n]) * 2 }",
	"vector":     "(w: bf16[M, K], x: bf16[K], z: bf16[N]) -> (y: bf16[M]) { y[m] = sum[k] w[m, k] * x[k] + z[0] }",
	"one column": "(w: bf16[M, K], x: bf16[K, 1], z: bf16[N]) -> (y: bf16[M, 1]) { y = w @ x + z[0] }",
}

// TestFewColumnsOnGPU multiplies small integers, whose sums are exact in any order, around
// the numbers of columns at which kernels change, with sides that are vectors and odd ones.
func TestFewColumnsOnGPU(t *testing.T) {
	dev := openGPU(t, runtime.Options{})
	for name, text := range columnProducts {
		p, f := loaded(t, dev, "graph g"+text)
		ns := []int64{1, 2, 16}
		if name == "plain" || name == "x along" {
			ns = []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 31, 64}
		}
		for _, n := range ns {
			for _, mk := range [][2]int64{{67, 133}, {72, 264}, {1, 40}} {
				sizes := map[string]int64{"M": mk[0], "N": n, "K": mk[1]}
				t.Run(fmt.Sprint(name, mk, n), func(t *testing.T) { compareProduct(t, p.Graph(), f, sizes, -2, 3) })
			}
		}
	}
}

// TestFewColumnsOfManyRowsOnGPU does the same where the matrix is read in vectors and x is not,
// and where warpgroups have the few columns on their left.
func TestFewColumnsOfManyRowsOnGPU(t *testing.T) {
	dev := openGPU(t, runtime.Options{})
	for _, c := range []struct {
		name    string
		m, n, k int64
	}{{"plain", 1031, 3, 1032}, {"plain", 1040, 13, 1032}, {"x along", 1615, 5, 2056}, {"plain", 1608, 16, 2056}, {"w across", 1672, 8, 2056}} {
		p, f := loaded(t, dev, "graph g"+columnProducts[c.name])
		t.Run(fmt.Sprint(c.name, c.m, c.n, c.k), func(t *testing.T) {
			compareProduct(t, p.Graph(), f, map[string]int64{"M": c.m, "N": c.n, "K": c.k}, -2, 3)
		})
	}
}
