package fuse

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/fusec/fusec/ir"
)

// TestConcatenations says how many kernels concatenations take, and how many of them store parts.
func TestConcatenations(t *testing.T) {
	for _, c := range []struct {
		name, src     string
		kernels, part int
	}{
		{"products", `graph g(x: bf16[M, 64], a: bf16[64, 32], b: bf16[64, 40]) -> (y: bf16[M, 72]) {
			y = concat(x @ a, relu(x @ b), axis=1) }`, 2, 2},
		{"of symbols", `graph g(x: bf16[M, K], a: bf16[K, N], b: bf16[K, L]) -> (y: bf16[M, N + L]) {
			y = concat(x @ a, x @ b, axis=1) }`, 2, 2},
		{"rows", `graph g(x: f32[M, N], z: f32[M, N]) -> (y: f32[2 * M, N]) {
			y = concat(softmax(x), layer_norm(z), axis=0) }`, 2, 2},
		{"sums", `graph g(x: f32[M, N], z: f32[M, N]) -> (y: f32[2, M]) {
			y = stack(sum(x, axis=1), max(z, axis=1)) }`, 2, 2},
		{"a copy beside a product", `@bench(M=65536) graph g(x: bf16[M, 512], w: bf16[512, 512]) -> (y: bf16[M, 1024]) {
			y = concat(x, x @ w, axis=1) }`, 2, 2},
		{"copies that a sum does not pay for", `@bench(M=64) graph g(x: f32[M, 64], z: f32[M, 64], w: f32[1, 64]) -> (y: f32[2 * M + 1, 64]) {
			y = concat(x, sum(x, axis=0, keep=true) * w, z, axis=0) }`, 2, 0},
		{"a result between", `graph g(x: f32[M, 64], a: f32[64, 64], w: f32[128, 64]) -> (y: f32[M, 64]) {
			y = softmax(concat(x @ a, cumsum(x, axis=1), axis=1) @ w) }`, 4, 2},
		{"a part that is a result too", `graph g(x: f32[M, 64], a: f32[64, 64]) -> (y: f32[M, 128], z: f32[M, 64]) {
			z = x @ a
			y = concat(z, softmax(x), axis=1) }`, 2, 2},
		{"inputs", `graph g(x: f32[M, 64], z: f32[M, 64]) -> (y: f32[M, 128]) { y = concat(x, z, axis=1) }`, 1, 0},
		{"an encoding", `@bench(M=1000000) graph g(x: f32[M, 3]) -> (y: f32[M, 15]) {
			y = concat(x, sin(x), cos(x), sin(2 * x), cos(2 * x), axis=1) }`, 1, 1},
		{"parts of several shapes", `@bench(M=100000) graph g(x: f32[M, 3]) -> (y: f32[M, 5]) { y = concat(sin(x), cos(x[:, 1:]), axis=1) }`, 1, 0},
		{"cheap parts", `@bench(M=100000) graph g(x: f32[M, 3]) -> (y: f32[M, 9]) { y = concat(x, x + 1, 2 * x, axis=1) }`, 1, 0},
		{"elements of a few bytes", `@bench(M=100000) graph g(x: f32[M, 9]) -> (y: f32[M, 2], z: f32[M]) {
			z = sum(x, axis=1)
			y = stack(exp(z), z * tanh(z), axis=1) }`, 1, 1},
		{"one kernel", `graph g(x: f32[M, N]) -> (y: f32[M, 2 * N]) { y = concat(softmax(x), softmax(2 * x), axis=1) }`, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := planOf(t, c.src)
			parts := 0
			for _, k := range p.Kernels {
				for _, a := range k.Args {
					if a.Write && len(a.Buffer.Parts) > 0 {
						parts++
					}
				}
			}
			assert.Equal(t, []int{c.kernels, c.part}, []int{len(p.Kernels), parts}, explained(p))
			compareAtSizes(t, c.src)
		})
	}
}

// explained lists what each kernel computes.
func explained(p *ir.Plan) (out []string) {
	for _, k := range p.Kernels {
		text := k.Name + ":"
		for _, v := range k.Members {
			text += " " + v.Name
		}
		out = append(out, text)
	}
	return out
}

// TestPlanIsGraphForConcatenations compares plans with graphs on concatenations of parts that are drawn, along
// either axis, of literal and symbolic extents, read again or not.
func TestPlanIsGraphForConcatenations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		axis := rapid.IntRange(0, 1).Draw(t, "axis")
		var params, parts, sizes []string
		for i := range rapid.IntRange(2, 4).Draw(t, "parts") {
			size := rapid.SampledFrom([]string{"1", "3", "8", "17", "N", "L", "2 * N"}).Draw(t, "size")
			own := "M, " + size
			if axis == 0 {
				own = size + ", M"
			}
			rows, cols, _ := strings.Cut(own, ", ")
			x, a, b := fmt.Sprint("x", i), fmt.Sprint("a", i), fmt.Sprint("b", i)
			params = append(params, fmt.Sprintf("%s: f32[%s], %s: f32[%s, 8], %s: f32[8, %s]", x, own, a, rows, b, cols))
			parts = append(parts, strings.NewReplacer("$x", x, "$a", a, "$b", b).Replace(rapid.SampledFrom([]string{
				"$x", "2 * $x", "$a @ $b", "tanh($a @ $b + $x)", "softmax($x)", "softmax($x, axis=0)", "cumsum($x, axis=1)",
				"sort($x, axis=1)", "$x * sum($x, axis=1, keep=true)", "$x - max($x, axis=0, keep=true)"}).Draw(t, "part")))
			sizes = append(sizes, size)
		}
		whole := "M, " + strings.Join(sizes, " + ")
		if axis == 0 {
			whole = strings.Join(sizes, " + ") + ", M"
		}
		call := fmt.Sprintf("concat(%s, axis=%d)", strings.Join(parts, ", "), axis)
		src := fmt.Sprintf("graph g(%s) -> (y: f32[%s]) { y = %s }", strings.Join(params, ", "), whole, call)
		switch rapid.IntRange(0, 3).Draw(t, "readers") {
		case 3:
			side := strings.Split(whole, ", ")[1-axis]
			src = fmt.Sprintf("graph g(%s) -> (y: f32[%s], s: f32[%s]) { y = %s\n s = sum(y, axis=%d) }", strings.Join(params, ", "), whole, side, call, axis)
		case 1:
			src = fmt.Sprintf("graph g(%s) -> (y: f32[%s], s: f32[%s]) { y = %s\n s = softmax(y, axis=%d) }", strings.Join(params, ", "), whole, whole, call, 1-axis)
		case 2:
			rows, _, _ := strings.Cut(whole, ", ")
			src = fmt.Sprintf("graph g(%s) -> (y: f32[%s]) { y = sum(%s, axis=1) }", strings.Join(params, ", "), rows, call)
		}
		compareAt(t, src, rapid.SampledFrom(testSizes).Draw(t, "size of all"), 7)
	})
}
