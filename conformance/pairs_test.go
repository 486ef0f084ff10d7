package conformance

import (
	"slices"

	"github.com/fusec/fusec/ir"
)

// threeFactors are sums of products of three tensors and more, with their gradients: mixtures of experts, and forms in three tensors.
var threeFactors = map[string]string{
	"experts": `graph f(gate: bf16[N, 4], h: bf16[N, 4, 64], w: bf16[4, 64, 64], r: bf16[N, 64]) -> (l: f32[]) {
		y[t, d] = sum[e: 4, k: 64] gate[t, e] * h[t, e, k] * w[e, k, d]
		l = sum(f32(y * r)) }`,
	"experts behind an activation, gates in f32": `graph f(x: bf16[N, 64], g: f32[N, 4], u: bf16[4, 64, 64], w: bf16[4, 64, 64], r: bf16[N, 64]) -> (l: f32[]) {
		p = softmax(g)
		h[t: N, e: 4, k: 64] = sum[d: 64] x[t, d] * u[e, d, k]
		y[t, d] = sum[e: 4, k: 64] p[t, e] * f32(gelu(h)[t, e, k]) * f32(w[e, k, d])
		l = sum(f32(bf16(y * 0.1) * r)) }`,
	"a form": `graph f(a: bf16[N, 128], b: bf16[N, 128], w: bf16[128, 128], r: bf16[N]) -> (l: f32[]) {
		y[i] = sum[k: 128, j: 128] a[i, k] * w[k, j] * b[i, j]
		l = sum(f32(y * r)) * 0.01 }`,
	"a scaled product": `graph f(a: bf16[N, 64], b: bf16[1024, 64], s: bf16[64], r: bf16[N, 1024]) -> (l: f32[]) {
		y[i, j] = sum[k: 64] a[i, k] * s[k] * b[j, k]
		l = sum(f32(y * r)) * 0.01 }`,
	"two products in one sum": `graph f(x: bf16[N, 64], u: bf16[64, 32], s: bf16[32], v: bf16[32, 64], r: bf16[N, 64]) -> (l: f32[]) {
		y[n, j] = sum[i: 64, k: 32] x[n, i] * u[i, k] * s[k] * v[k, j]
		l = sum(f32(y * r)) * 0.01 }`,
}

func withGradient(_, program string) string { return program + "\n@bench(N=65536) graph g = grad(f)" }

// pairFamilies are gradients whose sums are split.
func pairFamilies() []family {
	return []family{{name: "three factors", rows: inGraph("g", rowsOf(threeFactors, withGradient)), sizes: [][]int64{{1}, {7}, {70}}, repeat: true,
		plan: func(p *ir.Plan) bool { return slices.ContainsFunc(p.Kernels, isContract) }, planned: []string{"sm_90a", "sm_80"},
		on: []pass{{engine: "cpu"}, {engine: "sm_80"}, {engine: "sm_90a"}, {engine: "gpu"}}, compile: inTurn(true, "sm_90a", "sm_80")}}
}

func isContract(k *ir.Kernel) bool { return k.Template == ir.ContractTemplate }
