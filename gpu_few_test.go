package fusec

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/simtest"
)

// fewRows are kernels of few rows, which read early what their later sweeps need, of columns and
// of rows, or read rows once; and some that divide positions by sizes of several axes.
var fewRows = []struct {
	src   string
	sizes [][]int64
}{
	{"graph g(x: bf16[N, M], w: bf16[M], b: bf16[M]) -> (y: bf16[N, M]) {\n    y = layer_norm(x, w, b)\n}",
		[][]int64{{5, 256}, {3, 248}, {2, 264}, {2, 250}, {1, 1032}}},
	{"graph g(x: f32[N, M], w: f32[M]) -> (y: f32[N, M]) {\n    y = rms_norm(x, w)\n}", [][]int64{{6, 256}, {1, 132}, {2, 260}, {3, 516}}},
	{"graph g(x: f16[N, M], w: f16[N], v: i8[N]) -> (y: f16[N, M]) {\n    y = rms_norm(x) * w[:, none] + f16(v[:, none])\n}", [][]int64{{3, 256}, {2, 520}}},
	{"graph g(x: f64[N, M], w: f64[N]) -> (y: f64[N, M]) {\n    y = x * w[:, none] / sum(x * x, axis=1, keep=true)\n}", [][]int64{{3, 64}, {2, 130}}},
	{"graph g(x: f32[N, M]) -> (y: f32[N]) {\n    y = sum(x, axis=1)\n}", [][]int64{{5, 512}, {3, 516}, {2, 1024}, {4, 100}}},
	{"graph g(x: i8[N, M], z: i8[N, M]) -> (y: i64[N]) {\n    y = sum(i64(x) * i64(z), axis=1)\n}", [][]int64{{5, 512}, {2, 1024}}},
	{"graph g(x: f32[N, C, L], w: f32[C], b: f32[C]) -> (y: f32[N, C, L]) {\n    y, m, v = batch_norm_train(x, w, b)\n}",
		[][]int64{{3, 5, 36}, {2, 3, 70}, {4, 2, 64}}},
	{"graph g(x: bf16[A, B, C, D]) -> (y: bf16[C, B, A, D]) {\n    y[c, b, a, d] = x[a, b, c, d]\n}", [][]int64{{3, 5, 7, 8}, {2, 1, 3, 5}, {1, 9, 4, 24}}},
	{"graph g(w: f32[N, M]) -> (z: f32[N, M], y: f32[N]) {\n    z[n: N, m: M] = tanh(f32(n * m)) * exp(sin(f32(n) + f32(m))) * erf(f32(m))\n    y[n: N] = sum[m: M] z[n, m]\n}",
		[][]int64{{3, 512}, {2, 130}}}, // reads nothing
	{"graph g(x: bf16[N, M]) -> (y: f32[N]) {\n    y = logsumexp(f32(x), axis=1)\n}", [][]int64{{3, 1024}, {2, 520}, {4, 264}, {5, 256}}},
	{"graph g(x: f32[N, C], t: i64[N]) -> (y: f32[]) {\n    y = cross_entropy(x, t)\n}", [][]int64{{5, 1000}, {70, 516}, {2, 64}, {0, 8}}},
	{"graph g(x: f32[A, B, C, D]) -> (y: f32[B, D]) {\n    y[b, d] = max[a: A, c: C] x[a, b, c, d]\n}", [][]int64{{3, 5, 7, 8}, {2, 3, 1, 33}}},
}

// TestFewRowsSimulated compares them with the interpreter.
func TestFewRowsSimulated(t *testing.T) {
	for _, arch := range []string{"sm_90a", "sm_80"} {
		_, dev := openSimulated(t, simtest.Config{Arch: arch, Order: simtest.Order{Races: true}})
		compareFew(t, dev)
	}
}

func TestFewRowsOnGPU(t *testing.T) { compareFew(t, openGPU(t, runtime.Options{})) }

func compareFew(t *testing.T, dev *runtime.Device) {
	for i, k := range fewRows {
		p, f := loaded(t, dev, k.src)
		for _, set := range k.sizes {
			sizes, fit := sizesOf(p.Graph(), set)
			require.True(t, fit)
			t.Run(fmt.Sprint(dev.Arch(), i, set), func(t *testing.T) { compareWithInterpreter(t, p.Graph(), f, sizes) })
		}
	}
}
