package conformance

import "github.com/fusec/fusec/ir"

// pairPrograms compute something of a few components of each pair of points, and reduce it over pairs.
var pairPrograms = []row{
	{name: "a sum under kernels", src: `@bench(N=16384, M=16384) graph g(x: f32[N, 3], z: f32[M, 3], v: f32[M]) -> (y: f32[N]) {
		d2 = sum((x[:, none] - z[none]) ** 2, axis=-1)
		y = sum(exp(-0.5 * d2) * v, axis=1) }`},
	{name: "value and gradient", graph: "h", src: `graph g(x: f32[N, 3], q: f32[N]) -> (e: f32[]) {
		d = x[:, none] - x[none]
		e = 0.5 * sum(q[:, none] * q / sqrt(sum(d ** 2, axis=-1) + 1.5)) / f32(N) }
		@bench(N=16384) graph h = grad(g, wrt=[x], values=true)`},
	{name: "nearest points both ways", src: `@bench(N=16384, M=16384) graph g(x: bf16[N, 4], z: bf16[M, 4]) -> (a: f32[N], b: f32[M], at: i64[N]) {
		d = sum(abs(f32(x)[:, none] - f32(z)[none]), axis=-1)
		a = min(d, axis=1)
		b = min(d, axis=0)
		at = argmin(d, axis=1) }`},
	{name: "components of a force", src: `@bench(N=8192, M=8192) graph g(x: f32[N, 2], z: f32[M, 2], m: f32[M]) -> (a: f32[N, 2], s: f32[N]) {
		d[i: N, j: M, c: 2] = z[j, c] - x[i, c]
		r = 1 / (sum(d * d, axis=-1) + 0.5)
		a[i, c: 2] = sum[j: M] d[i, j, c] * r[i, j] * m[j]
		s = sum(r * m, axis=1) }`},
	{name: "weights of windows in colours", src: `@bench(N=64, M=256) graph g(x: f32[N, 3, M]) -> (y: f32[N, 3, M]) {
		d[n, w: M, a: 5] = sum[c: 3] abs((x[n, c, w + a - 2] else 0) - x[n, c, w])
		k = exp(-d)
		y[n, c: 3, w: M] = (sum[a: 5] (x[n, c, w + a - 2] else 0) * k[n, w, a]) / (sum[a: 5] k[n, w, a]) }`},
	{name: "strict", src: `@strict @bench(N=4096, M=4096) graph g(x: f32[N, 3], z: f32[M, 3]) -> (y: f32[N], p: f32[N]) {
		d = sum((x[:, none] - z[none]) ** 2, axis=-1)
		y = max(d, axis=1)
		p = min(d + 1, axis=1) }`},
}

// componentFamilies are programs that hold the components of pairs in registers: no kernel writes an element for each pair.
func componentFamilies() []family {
	small := func(p *ir.Plan) bool { return len(p.Kernels) <= 6 }
	return []family{{name: "components", rows: pairPrograms, sizes: [][]int64{{1, 1}, {7, 33}, {70, 130}, {257, 64}}, plan: small, planned: []string{"sm_90a", "sm_80"},
		on: []pass{{engine: "cpu"}, {engine: "sm_80", sizes: [][]int64{{7, 33}}}, {engine: "sm_90a", sizes: [][]int64{{33, 40}}}, {engine: "gpu"}}, compile: inTurn(true, "sm_90a", "sm_80")}}
}
