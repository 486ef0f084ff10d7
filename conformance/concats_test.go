package conformance

import (
	"slices"

	"github.com/fusec/fusec/ir"
)

// concats are concatenations whose parts the kernels store that compute them: products by warpgroups, warps and
// threads, rows, columns, scans, orders, attention, convolutions, and inputs between them, along each axis, where parts
// begin at a multiple of a vector and where they do not.
var concats = []row{
	{name: "products", src: `@bench(M=4096) graph g(x: bf16[M, 256], a: bf16[256, 128], b: bf16[256, 64]) -> (y: bf16[M, 192]) {
		y = concat(x @ a, relu(x @ b), axis=1) }`, sizes: [][]int64{{1}, {130}, {257}}},
	{name: "products of odd columns", src: `@bench(M=4096, N=511, L=513) graph g(x: f16[M, 64], a: f16[64, N], b: f16[64, L], z: f16[M, 3]) -> (y: f16[M, 3 + N + L]) {
		y = concat(z, x @ a, x @ b, axis=1) }`, sizes: [][]int64{{5, 7, 9}, {130, 64, 1}, {64, 129, 72}}},
	{name: "products below each other", src: `@bench(M=4096, N=1024) graph g(x: f32[M, 24], z: f32[N, 24], a: f32[24, 40]) -> (y: f32[M + N, 40]) {
		y = concat(x @ a, tanh(z @ a), axis=0) }`, sizes: [][]int64{{3, 5}, {64, 1}, {0, 7}, {7, 0}}},
	{name: "rows", src: `@bench(M=4096, N=4096, L=1000) graph g(x: bf16[M, N], z: bf16[M, L], w: bf16[L]) -> (y: bf16[M, N + L + 1]) {
		y = concat(softmax(x), layer_norm(z, w), sum(x, axis=1, keep=true), axis=1) }`, sizes: [][]int64{{3, 5, 7}, {2, 1024, 8}, {1, 33, 130}}},
	{name: "rows below each other", src: `@bench(M=4096, N=4096) graph g(x: f32[M, N], z: f32[M, N]) -> (y: f32[2 * M, N]) {
		y = concat(softmax(x), z * rsqrt(mean(z * z, axis=1, keep=true)), axis=0) }`, sizes: [][]int64{{3, 5}, {2, 1024}, {0, 3}}},
	{name: "columns", src: `@bench(M=4096, N=4096) graph g(x: f32[M, N], z: f32[M, N]) -> (y: f32[3, N]) {
		y = stack(sum(x, axis=0), max(z, axis=0), tanh(sum(abs(z), axis=0))) }`, sizes: [][]int64{{3, 5}, {40, 70}, {1, 1}}},
	{name: "scans and orders", src: `@bench(M=512, N=1000) graph g(x: f32[M, N], z: f32[M, 20]) -> (y: f32[M, N + 40]) {
		y = concat(cumsum(x, axis=1), sort(z, axis=1), softmax(z), axis=1) }`, sizes: [][]int64{{3, 5}, {2, 300}}},
	{name: "heads of attention", src: `@bench(B=4, H=8, S=1024) graph g(q: bf16[B, H, S, 64], k: bf16[B, H, S, 64], v: bf16[B, H, S, 64], x: bf16[B, S, 64]) -> (y: bf16[B, S, 64 * H + 64]) {
		y = concat(reshape(transpose(attention(q, k, v, causal=true), 1, 2), B, S, 64 * H), x, axis=2) }`, sizes: [][]int64{{1, 2, 5}, {2, 1, 70}}},
	{name: "channels last", src: `@bench(N=16, C=64, H=56) graph g(x: f16[N, H, H, C], a: f16[C, 32], b: f16[C, 32]) -> (y: f16[N, H, H, 64]) {
		y = concat(x @ a, silu(x @ b), axis=3) }`, sizes: [][]int64{{1, 8, 5}, {2, 16, 9}}},
	{name: "planes", src: `@bench(N=16, H=512) graph g(x: f32[N, 3, H, H]) -> (y: f32[N, 3, H, H]) {
		l = 0.3 * x[:, 0] + 0.6 * x[:, 1] + 0.1 * x[:, 2]
		y = stack(l, exp(x[:, 2] - l) * 0.5, (x[:, 0] - l) ** 1.5, axis=1) }`, sizes: [][]int64{{2, 5}, {1, 16}}},
	{name: "states of a loop", src: `@bench(N=100000) graph g(x: f32[40, N], s: f32[N]) -> (m: f32[40, N], r: f32[40, N]) {
		a = s
		m = full(0.0, 0, N, dtype=f32)
		for t in 0..40 {
			a = (a + x[39 - t]) * 0.5 + a * x[t]
			m = concat(a[none], m)
		}
		r = m + x }`, sizes: [][]int64{{1}, {130}, {512}}},
	{name: "states of a loop along the last axis", src: `@bench(N=100000) graph g(x: f16[N, 40], s: f16[N]) -> (m: f16[N, 40]) {
		a = s
		m = full(0.0, N, 0, dtype=f16)
		for t in 0..40 {
			a = (a + x[:, t]) * 0.5 - a * 0.25
			m = concat(m, a[:, none], axis=1)
		} }`, sizes: [][]int64{{1}, {130}, {512}}},
	{name: "layers", src: `@bench(M=4096) graph g(x: f32[M, 32], a: f32[32, 16], b: f32[32, 16], c: f32[32, 16], d: f32[32, 16]) -> (y: f32[M, 32]) {
		h = tanh(concat(x @ a, softmax(x @ b), axis=1))
		y = tanh(concat(h @ c, softmax(h @ d), axis=1)) }`, sizes: [][]int64{{3}, {65}}},
}

// spillingConcats are not among what must compile without spills: sums over columns in groups of threads, rows of 512
// threads and copies by tiles spill four bytes for some of their sizes, and products of 64-bit offsets more.
var spillingConcats = []row{
	{name: "channels", src: `@bench(N=16, C=64, H=56) graph g(x: bf16[N, C, H, H], a: bf16[32, C, 3, 3], b: bf16[16, C, 1, 1]) -> (y: bf16[N, C + 48, H, H]) {
		y = concat(x, relu(conv2d(x, a, padding=1)), conv2d(x, b), axis=1) }`, sizes: [][]int64{{1, 8, 5}, {2, 16, 9}}},
	{name: "read again", src: `@bench(M=4096) graph g(x: bf16[M, 128], a: bf16[128, 64], b: bf16[128, 64], w: bf16[128, 128]) -> (y: bf16[M, 128], s: f32[128]) {
		h = concat(x @ a, x @ b, axis=1)
		y = h @ w
		s = sum(f32(h), axis=0) }`, sizes: [][]int64{{1}, {130}, {70}}},
	{name: "joined gradients", graph: "g", src: `@bench(B=4, S=512) graph f(x: bf16[B, S, 128], w: bf16[128, 384], r: bf16[B, S, 128]) -> (loss: f32[]) {
		qkv = x @ w
		q = transpose(reshape(qkv[:, :, 0:128], B, S, 2, 64), 1, 2)
		k = transpose(reshape(qkv[:, :, 128:256], B, S, 2, 64), 1, 2)
		v = transpose(reshape(qkv[:, :, 256:384], B, S, 2, 64), 1, 2)
		y = reshape(transpose(attention(q, k, v, causal=true), 1, 2), B, S, 128)
		loss = sum(f32(y * r)) }
		graph g = grad(f, wrt=[x, w])`, sizes: [][]int64{{1, 5}, {2, 66}}},
}

func concatFamilies() []family {
	return []family{{
		name: "concats", rows: concats, plan: storesParts, planned: []string{"sm_90a", "sm_80"},
		on:      []pass{{engine: "cpu"}, {engine: "sm_80"}, {engine: "sm_90a"}, {engine: "gpu"}},
		compile: inTurn(false, "sm_90a", "sm_80"), variants: all,
	}, {
		name: "concats_that_spill", rows: spillingConcats, plan: storesParts, planned: []string{"sm_90a", "sm_80"},
		on: []pass{{engine: "cpu"}, {engine: "sm_80"}, {engine: "sm_90a"}, {engine: "gpu"}},
	}}
}

// storesParts reports whether several kernels, or one of them several times, store parts of one tensor.
func storesParts(p *ir.Plan) bool {
	return slices.ContainsFunc(p.Buffers, func(b *ir.Buffer) bool { return len(b.Parts) > 1 })
}
