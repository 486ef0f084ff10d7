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
	{"indices and tensors", `
graph f(x: f32[N, M], idx: i32[M], b: bool[]) -> (y: f32[N, M], z: i64[M], c: bool[N, M], w: i64[M], v: f32[N]) {
    y[i, j] = x[where(b, i, 0), (idx[j] + i) % M]
    z = iota(M) + N
    c[i, j] = any(iota(M) + i == idx)
    w = where(iota(M) < N, idx, N)
    v[i] = sum(x[i, idx + i])
}`, `graph f(x: f32[N, M], idx: i32[M], b: bool[]) -> (y: f32[N, M], z: i64[M], c: bool[N, M], w: i64[M], v: f32[N]) {
    y[i: N, j] = x[where(b, i, 0), (index(idx[j]) + i) % M]
    z[i: M] = i64(i) + i64(N)
    t_any[i: N] = any[i_2: M] i64(i_2) + i64(i) == i64(idx[i_2])
    c[i, j: M] = t_any[i]
    w[i] = where(i64(i) < i64(N), i64(idx[i]), i64(N))
    v[i] = sum[i_2: M] x[i, i64(idx[i_2]) + i64(i)]
}
`},
	{"loops", `
const STEPS = 3
fn smooth(x: T[...B, N], mode: string = "sum") -> T[...B, N] {
    for k in 0..STEPS {
        if mode == "sum" && k % 2 == 0 {
            x = x + k
        } else {
            x = x * 2
        }
    }
    return x
}
graph f(x: f32[N]) -> (y: f32[N]) {
    y = smooth(x)
}`, `graph f(x: f32[N]) -> (y: f32[N]) {
    smooth_x[i] = x[i] + 0.0
    smooth_x_2[i] = smooth_x[i] * 2.0
    y[i] = smooth_x_2[i] + 2.0
}
`},
	{"moves", `
graph f(x: f32[4, N], y: f32[2, N]) -> (a: f32[6, N], b: f32[4, N + 3], c: f32[N, 4], d: f32[2, 2, N], e: f32[N], g: f32[4, 2 * N]) {
    a = concat(x, y, axis=0)
    b = pad(x, (1, 2), axis=-1, value=-inf)
    c = transpose(x[::-1])
    d = reshape(x, 2, -1, N)
    p, q = split(x, 2, axis=0)
    e = (p + q)[-1] + roll(y, 1)[0]
    g = repeat(x, 2)
}`, ``},
	{"products", `
graph f(a: bf16[B, N, K], b: bf16[K, M], v: f32[M]) -> (c: bf16[B, N, M], d: f32[N], e: f32[B], s: f32[]) {
    c = a @ b
    d = einsum("bnk,km,m->n", a, b, v)
    e = einsum("bnk->b", f32(a))
    s = v @ v
}`, ``},
	{"leading axes", `
graph f(x: f32[B, N, 2 * K], at: i32[B, N]) -> (y: f32[B, N, K], z: f32[B, N]) {
    y[..., k] = x[..., 2 * k] + x[..., 2 * k + 1]
    z[...] = x[..., at[...]]
}`, `graph f(x: f32[B, N, K * 2], at: i32[B, N]) -> (y: f32[B, N, K], z: f32[B, N]) {
    y[i, j, k: K] = x[i, j, 2 * k] + x[i, j, 2 * k + 1]
    z[i, j] = x[i, j, at[i, j]]
}
`},
	{"random", `
@strict @tf32 @bench(N=4)
graph f(x: f32[N, M], seed: i64[]) -> (y: f32[N, M], z: u32[N, M]) {
    y = dropout(x, 0.25, seed)
    z[i, j] = random_bits(7, x[i, j])
}`, ``},
}

func TestPrograms(t *testing.T) {
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			g := parse(t, p.src)
			require.NoError(t, ir.Verify(g))
			text := ir.Print(g)
			t.Log(text)
			if p.want != "" {
				assert.Equal(t, p.want, text)
			}
			assert.Equal(t, text, ir.Print(parse(t, text)))
		})
	}
}
