package conformance

import "strings"

// scaledOperands are products of which an operand is a tensor in memory times a constant, with what follows them.
var scaledOperands = map[string]string{
	"scores": `graph g(q: T[2, N, 64], k: T[2, M, 64], v: T[2, M, 64], b: T[N, M]) -> (o: T[2, N, 64]) {
		o = softmax((q * 0.125) @ transpose(k) + b) @ v }`,
	"scores of one projection": `graph g(x: T[N, M, 64], w: T[192, 64]) -> (o: T[N, 2, M, 32]) {
		a = permute(reshape(linear(x, w * 0.25), N, M, 3, 2, 32), (2, 0, 3, 1, 4))
		o = softmax((a[0] * 32 ** -0.5) @ transpose(a[1])) @ a[2] }`,
	"weights, for two products": `graph g(x: T[N, 128], y: T[M, 128], w: T[128, 64]) -> (a: T[N, 64], b: T[M, 64]) {
		u = T(f32(w) / 11)
		a = relu(x @ u)
		b = y @ u }`,
	"both sides": `graph g(x: T[N, 128], w: T[M, 128]) -> (y: T[N, M]) { y = (x * 0.3) @ transpose(-w / 7) }`,
	"gradients": `graph f(q: T[2, N, 64], k: T[2, M, 64], v: T[2, M, 64]) -> (l: f32[]) {
		l = sum(f32(softmax((q * 0.125) @ transpose(k)) @ v)) / 64 }
		graph g = grad(f, wrt=[q, k, v])`,
}

// scaleFamilies are products that scale their sums in place of an operand.
func scaleFamilies() []family {
	of := func(dtype string) []row {
		return inGraph("g", rowsOf(scaledOperands, func(_, program string) string {
			return strings.NewReplacer("T[", dtype+"[", "T(", dtype+"(").Replace(program)
		}))
	}
	var out []family
	for _, dtype := range []string{"bf16", "f16"} {
		out = append(out, family{name: "scaled operands in " + dtype, rows: of(dtype), sizes: [][]int64{{1, 1}, {7, 33}, {70, 64}},
			on:      []pass{{engine: "cpu"}, {engine: "sm_80", sizes: [][]int64{{7, 33}}}, {engine: "sm_90a", sizes: [][]int64{{17, 40}}}, {engine: "gpu"}},
			compile: inTurn(true, "sm_90a", "sm_80")})
	}
	return out
}
