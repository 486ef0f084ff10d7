package parser

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

func parse(t *testing.T, src string) *ir.Graph {
	t.Helper()
	f, err := Parse("t.fuse", []byte(src), Options{})
	if err != nil {
		require.FailNow(t, diag.Render(err, func(string) (string, bool) { return src, true }))
	}
	return f.Graphs[0]
}

// programs are small graphs and how they print.
var programs = []struct{ name, src, want string }{
	{"elementwise", `
graph f(x: bf16[N, M], b: bf16[M]) -> (y: bf16[N, M]) {
    y = relu(x + b) * 2
}`, `graph f(x: bf16[N, M], b: bf16[M]) -> (y: bf16[N, M]) {
    relu_x[i, j] = x[i, j] + b[j]
    y[i, j] = max(relu_x[i, j], 0.0) * 2.0
}
`},
	{"softmax", `
@onekernel @bench(N=8, M=16)
graph softmax(x: bf16[N, M]) -> (y: bf16[N, M]) {
    m = max(x, axis=-1, keep=true)
    e = exp(x - m)
    y = e / sum(e, axis=-1, keep=true)
}`, `@onekernel @bench(N=8, M=16)
graph softmax(x: bf16[N, M]) -> (y: bf16[N, M]) {
    m[i] = max[j: M] x[i, j]
    e[i, j] = exp(x[i, j] - m[i])
    e_sum[i] = sum[j: M] e[i, j]
    y[i, j] = e[i, j] / e_sum[i]
}
`},
	{"blur", `
graph blur(img: f32[H, W]) -> (out: f32[H, W]) {
    out[y, x] = sum[i: 3, j: 3] img[y + i - 1, x + j - 1] / 9
}`, ``},
	{"rows", `
graph f(x: f32[N, M], t: f32[V, M], idx: i32[N]) -> (y: f32[N, M], z: f32[N, M], c: f32[N]) {
    y[i, j] = softmax(x[i, :])[j]
    z = t[idx]
    c[i] = sum[k where k <= i] x[k, 0] else -inf
}`, ``},
}

func TestPrograms(t *testing.T) {
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			g := parse(t, p.src)
			text := ir.Print(g)
			t.Log(text)
			if p.want != "" {
				assert.Equal(t, p.want, text)
			}
			assert.Equal(t, text, ir.Print(parse(t, text)))
		})
	}
}
