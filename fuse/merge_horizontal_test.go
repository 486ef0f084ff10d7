package fuse

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// step is the momentum step of n parameters of one size.
func step(n int, size, annotation string) string {
	var in, out, body []string
	for i := range n {
		in = append(in, fmt.Sprintf("p%d: f32[%s], g%d: f32[%s], m%d: f32[%s]", i, size, i, size, i, size))
		out = append(out, fmt.Sprintf("q%d: f32[%s], k%d: f32[%s]", i, size, i, size))
		body = append(body, fmt.Sprintf("k%d = m%d * 0.9 + g%d\nq%d = p%d - k%d * 0.01", i, i, i, i, i, i))
	}
	return fmt.Sprintf("%s graph g(%s) -> (%s) {\n%s\n}", annotation, strings.Join(in, ", "), strings.Join(out, ", "), strings.Join(body, "\n"))
}

// TestHorizontalFusion says which kernels that share nothing become one launch.
func TestHorizontalFusion(t *testing.T) {
	for _, c := range []struct {
		name, src string
		kernels   int
	}{
		{"an optimizer's step", step(6, "N", ""), 1},
		{"more tensors than one kernel takes", step(20, "N", ""), 4},
		{"large ones", step(3, "N", "@bench(N=10000000)"), 3},
		{"of two sizes", `graph g(x: f32[N], y: f32[M]) -> (a: f32[N], b: f32[M]) { a = exp(x)
			b = exp(y) }`, 2},
		{"one by rows, the other by columns", `@bench(N=100) graph g(x: f32[N, N], y: f32[N, N]) -> (a: f32[N], b: f32[N]) {
			a = sum(x, axis=1)
			b = max(y, axis=0) }`, 2},
		{"two columns of sums", `graph g(x: f32[3000, M], y: f32[3000, M]) -> (a: f32[M], b: f32[M]) { a = sum(x, axis=0)
			b = max(y, axis=0) }`, 2},
		{"a chain of rows", `@bench(N=64, M=64) graph g(x: f32[N, M]) -> (y: f32[N, M]) { y = cumsum(transpose(softmax(transpose(softmax(x), 0, 1)), 0, 1), axis=1) }`, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := planOf(t, c.src)
			assert.Len(t, p.Kernels, c.kernels, "%v", summaries(p))
			compareAtSizes(t, c.src)
		})
	}
}
