package conformance

import (
	"slices"
	"strings"

	"github.com/fusec/fusec/ir"
)

// windowSums are gradients of the weights of convolutions: few results, each a sum over all places of all images, which is cut along an
// axis of the plane.
var windowSums = []row{
	{name: "planes", src: `@bench(N=32, C=64, H=56) graph g(dy: bf16[N, C, H, H], x: bf16[N, C, H, H]) -> (dw: bf16[C, C, 3, 3]) {
		dw[o: C, c: C, i: 3, j: 3] = bf16(sum[n: N, p: H, q: H] f32(dy[n, o, p, q]) * (x[n, c, p + i - 1, q + j - 1] else 0.0)) }`},
	{name: "written", src: `@bench(N=32, C=64, H=56) graph g(dy: bf16[N, C, H, H], x: bf16[N, C, H, H]) -> (part: f32[(H + 3) / 4, C, C, 3, 3]) {
		part[s: (H + 3) / 4, o: C, c: C, i: 3, j: 3] = sum[p: 4, q: H, n: N where s * 4 + p < H] f32(dy[n, o, s * 4 + p, q]) * (x[n, c, s * 4 + p + i - 1, q + j - 1] else 0.0) }`},
	{name: "written evenly", src: `@bench(N=32, C=64, H=14) graph g(dy: bf16[N, C, 4 * H, 4 * H], x: bf16[N, C, 4 * H, 4 * H]) -> (part: f32[H, C, C, 3, 3]) {
		part[s: H, o: C, c: C, i: 3, j: 3] = sum[p: 4, q: 4 * H, n: N] f32(dy[n, o, s * 4 + p, q]) * (x[n, c, s * 4 + p + i - 1, q + j - 1] else 0.0) }`},
	{name: "strides", src: `@bench(N=32, C=128, H=28) graph g(dy: f16[N, C, H, H], x: f16[N, C, 2 * H, 2 * H]) -> (dw: f32[C, C, 3, 3]) {
		dw[o: C, c: C, i: 3, j: 3] = sum[n: N, p: H, q: H] f32(dy[n, o, p, q]) * (x[n, c, p * 2 + i - 1, q * 2 + j - 1] else 0.0) }`},
	{name: "whole parts", src: `@bench(N=512) graph g(dy: bf16[N, 16, 16, 16], x: bf16[N, 16, 16, 16]) -> (dw: bf16[16, 16, 3, 3]) {
		dw[o: 16, c: 16, i: 3, j: 3] = bf16(sum[n: N, p: 16, q: 16] f32(dy[n, o, p, q]) * (x[n, c, p + i - 1, q + j - 1] else 0.0)) }`,
		sizes: [][]int64{{1}, {3}}},
	{name: "lines in tf32", src: `@tf32 @bench(N=64, C=48, H=4096) graph g(dy: f32[N, C, H], x: f32[N, C, H]) -> (dw: f32[C, C, 5]) {
		dw[o: C, c: C, i: 5] = sum[n: N, p: H] dy[n, o, p] * (x[n, c, p + 3 * i - 6] else 0.0) }`},
}

// productSums are gradients of the weights of products: few results, each a sum over all places of all images or texts. One of
// the ranges is an axis of partial results.
var productSums = []row{
	{name: "images", src: `@bench(N=32, C=64, H=3136) graph g(dy: bf16[N, C, H], x: bf16[N, 72, H]) -> (dw: bf16[C, 72]) {
		dw[o: C, c: 72] = bf16(sum[n: N, p: H] f32(dy[n, o, p]) * f32(x[n, c, p])) }`},
	{name: "texts, scaled", src: `@bench(N=16, C=64, H=1024) graph g(dy: f16[N, H, C], x: f16[N, H, 40], s: f32[C]) -> (dw: f32[40, C]) {
		dw = einsum("btc,bto->co", f32(x), f32(dy)) * s }`},
	{name: "of few images, line by line", src: `@bench(N=4, C=64, H=256) graph g(dy: bf16[N, C, H, H], x: bf16[N, C, H, H]) -> (dw: f32[C, C]) {
		dw[o: C, c: C] = sum[n: N, p: H, q: H] f32(dy[n, o, p, q]) * f32(x[n, c, p, q]) }`},
	{name: "in tf32", src: `@tf32 @bench(N=32, C=64, H=2048) graph g(dy: f32[N, C, H], x: f32[N, 24, H]) -> (dw: f32[C, 24]) {
		dw[o: C, c: 24] = sum[n: N, p: H] dy[n, o, p] * x[n, c, p] }`},
	{name: "of heads", src: `@bench(N=32, C=64, H=2048) graph g(dy: bf16[N, 2, C, H], x: bf16[N, 2, 24, H]) -> (dw: bf16[2, C, 24]) {
		dw[h: 2, o: C, c: 24] = bf16(sum[n: N, p: H] f32(dy[n, h, o, p]) * f32(x[n, h, c, p])) }`},
}

// turnedOperands sum along short rows of memory that are no whole accesses, and on behind other elements.
var turnedOperands = []row{
	{name: "small planes", src: `@bench(N=128, C=256) graph g(dy: bf16[N, C, 7, 7], x: bf16[N, 72, 7, 7]) -> (dw: bf16[C, 72]) {
		dw[o: C, c: 72] = bf16(sum[n: N, p: 7, q: 7] f32(dy[n, o, p, q]) * f32(x[n, c, p, q])) }`,
		sizes: [][]int64{{2, 24}, {3, 40}, {1, 17}, {9, 5}, {0, 8}}},
	{name: "planes of any size, and both gradients", src: `@bench(N=64, C=64, O=128, H=14) graph f(x: bf16[N, C, H, H], w: bf16[O, C, 1, 1]) -> (y: bf16[N, O, H, H]) { y = conv2d(x, w) }
		@bench(N=64, C=64, O=128, H=14) graph g = grad(f, wrt=[x, w])`, graph: "g",
		sizes: [][]int64{{2, 24, 16, 7}, {3, 40, 9, 5}, {1, 17, 33, 8}, {2, 8, 8, 1}}},
	{name: "rows of texts", src: `@bench(N=64, C=1024, H=50) graph g(dy: f16[N, C, H], x: f16[N, 40, H], s: f32[40]) -> (dw: f32[40, C]) {
		dw = einsum("bct,bot->co", f32(x), f32(dy)) * s[:, none] }`,
		sizes: [][]int64{{2, 24, 6}, {3, 40, 17}, {1, 17, 8}}},
	{name: "of heads", src: `@bench(N=64, C=512, H=50) graph g(dy: bf16[N, 2, C, H], x: bf16[N, 2, 24, H]) -> (dw: bf16[2, C, 24]) {
		dw[h: 2, o: C, c: 24] = bf16(sum[n: N, p: H] f32(dy[n, h, o, p]) * f32(x[n, h, c, p])) }`,
		sizes: [][]int64{{2, 24, 6}, {3, 40, 17}, {1, 17, 8}}},
}

func windowSumFamilies() []family {
	return []family{
		{name: "products in parts", rows: productSums, sizes: [][]int64{{2, 8, 24}, {3, 16, 40}, {1, 5, 9}, {9, 40, 3}, {0, 8, 8}},
			plan: func(p *ir.Plan) bool { return len(p.Kernels) >= 2 },
			on:   append(races(nil), pass{engine: "cpu"}, pass{engine: "gpu", most: 1 << 22}), compile: inTurn(true, "sm_90a", "sm_80")},
		{name: "turned operands", rows: turnedOperands, on: append(races(nil), pass{engine: "cpu"}, pass{engine: "gpu", most: 1 << 22}), compile: inTurn(true, "sm_90a", "sm_80"),
			plan: func(p *ir.Plan) bool {
				return slices.ContainsFunc(p.Kernels, func(k *ir.Kernel) bool { return strings.Contains(k.Name, "_operand") })
			}},
		{name: "sums over planes", rows: windowSums, sizes: [][]int64{{2, 8, 9}, {3, 16, 20}, {1, 5, 8}, {8, 40, 3}, {0, 8, 8}},
			plan: func(p *ir.Plan) bool {
				return slices.ContainsFunc(p.Kernels, func(k *ir.Kernel) bool { return k.Template == ir.ContractTemplate && len(k.Cols) > 1 })
			},
			on: append(races(nil), pass{engine: "gpu", most: 1 << 22}), compile: inTurn(true, "sm_90a", "sm_80")},
	}
}
