package fuse

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// rowPrograms are products that wait for folds over the rows of one side, of C columns.
var rowPrograms = map[string]string{
	"softmax":    `graph g(h: f32[M, C], w: f32[C, N], r: f32[M, N]) -> (y: f32[M, N]) { y = gelu(softmax(h) @ w) + r }`,
	"layer_norm": `graph g(h: f32[M, C], g: f32[C], b: f32[C], w: f32[C, N]) -> (y: f32[M, N]) { y = layer_norm(h, g, b) @ w }`,
	"batched":    `graph g(h: f32[3, M, C], w: f32[3, C, N], c: f32[N]) -> (y: f32[3, M, N]) { y = softmax(h) @ w + c }`,
	"result transposed": `graph g(h: f32[M, C], w: f32[C, N]) -> (y: f32[N, M]) {
		s = softmax(h)
		y[n, m] = sum[k: C] s[m, k] * w[k, n] }`,
	"on the right": `graph g(w: f32[M, C], h: f32[C, N]) -> (y: f32[M, N]) { y = w @ softmax(h, axis=0) }`,
	"two axes": `graph g(h: f32[M, 2, C], w: f32[2, C, N]) -> (y: f32[M, N]) {
		top[m] = max[i: 2, k: C] h[m, i, k]
		total[m] = sum[i: 2, k: C] exp(h[m, i, k] - top[m])
		y[m, n] = sum[i: 2, k: C] (exp(h[m, i, k] - top[m]) / total[m] + 0.5) * w[i, k, n] }`,
	"masked":                     `graph g(h: f32[M, C], w: f32[C, N]) -> (y: f32[M, N]) { y = softmax(where(h > 0.25, h, -inf)) @ w }`,
	"scaled after":               `graph g(h: f32[M, C], w: f32[C, N]) -> (y: f32[M, N]) { y = rms_norm(h) @ w }`,
	"scaled after, on the right": `graph g(w: f32[M, C], h: f32[N, C]) -> (y: f32[M, N]) { y = w @ transpose(rms_norm(h)) }`,
	"divided after": `graph g(h: f32[M, C], w: f32[C, N]) -> (y: f32[N, M]) {
		top[m] = max[k: C] h[m, k]
		total[m] = sum[k: C] exp(h[m, k] - top[m])
		p[n, m] = sum[k: C] exp(h[m, k] - top[m]) * w[k, n]
		y[n, m] = p[n, m] / total[m] }`,
	"layers": `graph g(h: f32[M, C], w: f32[C, C], r: f32[M, C]) -> (y: f32[M, C]) {
		a = gelu(softmax(h) @ w) + r
		b = gelu(softmax(a) @ w) + r
		y = gelu(softmax(b) @ w) + r }`,
}

func rowProgram(name string, columns int) string {
	return "@bench(M=64, N=64) " + strings.NewReplacer("[C,", fmt.Sprintf("[%d,", columns), " C]", fmt.Sprintf(" %d]", columns),
		" C,", fmt.Sprintf(" %d,", columns), "[C]", fmt.Sprintf("[%d]", columns)).Replace(rowPrograms[name])
}

// equalRows are products one side of which is the same for all rows or columns, once it is computed and not read.
var equalRows = map[string]string{
	"all of them": `graph g(w: f32[16]) -> (y: f32[16, 16]) { v = w + full(2, 16, 16)
		y = attention(v, v, v, causal=false) }`,
	"queries": `graph g(w: f32[32], v: f32[32, 24]) -> (y: f32[40, 24]) { y = softmax(w + full(2, 40, 32)) @ v }`,
	"keys":    `graph g(w: f32[M], v: f32[32, 24]) -> (y: f32[M, 24]) { y = softmax(w[:, none] + full(2, M, 32)) @ v }`,
	"values":  `graph g(x: f32[40, 32], w: f32[32]) -> (y: f32[40, 24]) { y = softmax(x) @ (w[:, none] + full(2, 32, 24)) }`,
	"batched": `graph g(w: f32[32], x: f32[7, 32], v: f32[7, 32, 24]) -> (y: f32[7, 40, 24]) { s[b, i: 40, j] = w[j] * 2 + x[b, j]
		y = softmax(s) @ v }`,
	"rows of a batch": `graph g(w: f32[32], x: f32[7, 32], v: f32[32, 24]) -> (y: f32[7, 40, 24]) { s[b, i: 40, j] = w[j] * 2 + x[b, j]
		y = softmax(s) @ v }`,
}

// TestProloguesOfEqualRows: such products have no two sides in one kernel with what they are computed from.
func TestProloguesOfEqualRows(t *testing.T) {
	for name, src := range equalRows {
		t.Run(name, func(t *testing.T) {
			p := planOf(t, src)
			for _, k := range p.Kernels {
				for _, v := range k.Variants {
					assert.NotEqual(t, ir.RowProductMapping, v.Schedule.Mapping, "%s", src)
				}
			}
		})
	}
}

// TestPrologues compares plans with their graphs, and asks for one kernel a product.
func TestPrologues(t *testing.T) {
	for name := range rowPrograms {
		for _, columns := range []int{16, 31, 67} {
			t.Run(fmt.Sprint(name, columns), func(t *testing.T) {
				t.Parallel()
				src := rowProgram(name, columns)
				if name == "layers" {
					src = strings.Replace(src, ", N=64", "", 1)
				}
				p := planOf(t, src)
				assert.Len(t, p.Kernels, map[bool]int{true: 3, false: 1}[name == "layers"])
				for _, k := range p.Kernels {
					for _, v := range k.Variants {
						assert.Equal(t, ir.RowProductMapping, v.Schedule.Mapping)
						assert.False(t, waits(algebra.WithoutLocals(v.Contract.B[0].Value)), "the right side is read before rows are folded")
					}
				}
				compareAtSizes(t, src)
			})
		}
	}
}

// TestProloguesOfSpecialValues puts infinities and NaN into rows.
func TestProloguesOfSpecialValues(t *testing.T) {
	const columns = 17
	for _, name := range []string{"softmax", "layer_norm", "masked"} {
		src := rowProgram(name, columns)
		g := parse(t, src)
		p := planOf(t, src)
		sizes := sizesOf(g, 9)
		for n, rare := range []float64{math.Inf(-1), math.Inf(1), math.NaN()} {
			inputs, err := drawInputs(g, sizes, uint64(n))
			require.NoError(t, err)
			for i := range inputs[0].F {
				if row := i / columns % 4; row == 0 || row == 1 && i%columns == n || row == 2 && i%columns > 0 {
					inputs[0].F[i] = rare
				}
			}
			comparePlan(t, g, p, inputs, sizes, fmt.Sprintf("%s\nwith %v", src, rare))
		}
	}
}

// TestSmallProducts says which plain products take the mapping of those with folds in
// front: few tiles, a known number of columns, rows in order.
func TestSmallProducts(t *testing.T) {
	for _, c := range []struct {
		src   string
		takes bool
	}{
		{`graph g(a: f32[M, 256], b: f32[256, N]) -> (y: f32[M, N]) { y = a @ b }`, true},
		{`graph g(a: f32[2, M, 40], b: f32[2, 40, N]) -> (y: f32[2, M, N]) { y = a @ b }`, true},
		{`graph g(a: f32[M, K], b: f32[K, N]) -> (y: f32[M, N]) { y = a @ b }`, false},
		{`graph g(a: f32[M, 1024], b: f32[1024, N]) -> (y: f32[M, N]) { y = a @ b }`, false},
		{`graph g(a: f32[256, M], b: f32[256, N]) -> (y: f32[M, N]) { y[m, n] = sum[k: 256] a[k, m] * b[k, n] }`, false},
		{`graph g(a: bf16[M, 256], b: bf16[256, N]) -> (y: bf16[M, N]) { y = a @ b }`, false},
		{`@tf32 graph g(a: f32[M, 256], b: f32[256, N]) -> (y: f32[M, N]) { y = a @ b }`, false},
		{`graph g(a: f32[1024, 256], b: f32[256, 1024]) -> (y: f32[1024, 1024]) { y = a @ b }`, false},
	} {
		p := planWith(t, c.src).At(map[string]int64{"M": 256, "N": 256, "K": 256})
		assert.Equal(t, c.takes, p.Kernels[0].Variants[0].Schedule.Mapping == ir.RowProductMapping, c.src)
		if c.takes {
			compareAtSizes(t, c.src)
		}
	}
}

// TestNoPrologue says why row programs stay kernels of their own.
func TestNoPrologue(t *testing.T) {
	for _, c := range []struct{ src, because string }{
		{`@bench(M=256, N=256) graph g(h: f32[M, C], w: f32[C, N]) -> (y: f32[M, N]) { y = softmax(h) @ w }`, "fit on chip depends on the size"},
		{`@bench(M=256, N=256) graph g(h: f32[M, 4096], w: f32[4096, N]) -> (y: f32[M, N]) { y = softmax(h) @ w }`, "do not fit in the shared memory"},
		{`@bench(M=8192, N=504) graph g(h: f32[M, 512], w: f32[512, N]) -> (y: f32[M, N]) { y = softmax(h) @ w }`, "larger tiles"},
		{`@bench(M=512, N=1024) graph g(h: f32[M, 512], w: f32[512, N]) -> (y: f32[M, N]) { y = softmax(h) @ w }`, "computing the rows again"},
		{`@bench(M=64, N=64) graph g(h: f32[M, 64], w: f32[64, N]) -> (y: f32[M, N], s: f32[M, 64]) {
			s = softmax(h)
			y = s @ w }`, "s is a result of the graph"},
		{`@bench(M=64, N=64) graph g(h: f32[M, 64], v: f32[64, N], w: f32[64, N]) -> (y: f32[M, N], z: f32[M, N]) {
			s = softmax(h)
			y = s @ w
			z = s @ v }`, "reads s too"},
		{`@bench(M=64) graph g(h: f32[M, 64]) -> (y: f32[M, M]) {
			s = softmax(h)
			y[i, j] = sum[k: 64] s[i, k] * s[j, k] }`, "lies between"},
	} {
		p := planOf(t, c.src)
		text := ""
		for _, r := range p.Refused {
			text += r.Detail + "\n"
		}
		assert.Contains(t, text, c.because, c.src)
		for _, k := range p.Kernels {
			v := k.Variants[0]
			assert.False(t, v.Schedule.Mapping == ir.RowProductMapping && len(v.Sections) > 2, "folds in front of a product: %s", c.src)
		}
	}
}
