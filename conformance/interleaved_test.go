package conformance

import (
	"slices"

	"github.com/fusec/fusec/ir"
)

// interleaved are programs that read tensors whose elements for neighbouring lanes alternate with those of a short range.
// The sizes have several blocks, whole and partial vectors, runs that begin anywhere, and no elements.
var interleaved = []row{
	{name: "taps", src: `graph g(w: bf16[O, C, 3, 3]) -> (y: bf16[O, 3, 3, C]) { y = permute(w, (0, 2, 3, 1)) }`,
		sizes: [][]int64{{2, 24}, {3, 136}, {1, 17}, {3, 33}, {2, 15}, {1, 1100}, {0, 16}}},
	{name: "taps of a number of channels", src: `graph g(w: f16[O, 67, 5, 5]) -> (y: f16[O, 5, 5, 67]) { y = permute(w, (0, 2, 3, 1)) }`,
		sizes: [][]int64{{1}, {3}}},
	{name: "colours", src: `graph g(x: u8[N, H, W, 3], m: f32[3]) -> (y: f32[N, 3, H, W]) { y[n, c, h, w] = f32(x[n, h, w, c]) / 255 - m[c] }`,
		sizes: [][]int64{{2, 7, 24}, {1, 5, 17}, {1, 1, 1030}, {3, 4, 4}}},
	{name: "parts of complex numbers", src: `graph g(z: f32[N, 2], w: f16[N, 2], s: f32[N]) -> (y: f32[2, N]) { y[i, j] = z[j, i] * f32(w[j, i]) + s[j] }`,
		sizes: [][]int64{{24}, {17}, {2060}, {1025}}},
	{name: "in wide elements", src: `graph g(x: f64[N, M, 7]) -> (y: f64[N, 7, M]) { y = exp(transpose(x, 1, 2)) }`,
		sizes: [][]int64{{2, 24}, {3, 17}, {1, 300}}},
	{name: "more than shared memory holds", src: `graph g(x: f64[N, M, 31], z: f64[N, M, 31], w: f64[N, M, 31], v: f64[N, M, 31], c: i8[N, M, 3]) -> (y: f64[N, 31, M], s: i8[N, 3, M]) {
		y = transpose(x, 1, 2) + transpose(z, 1, 2) * transpose(w, 1, 2) - transpose(v, 1, 2)
		s = transpose(c, 1, 2) }`,
		sizes: [][]int64{{2, 24}}},
	{name: "in bytes", src: `graph g(x: i8[N, M, 31]) -> (y: i8[N, 31, M]) { y = abs(transpose(x, 1, 2)) }`,
		sizes: [][]int64{{2, 24}, {3, 17}, {1, 300}}},
	{name: "in powers of two", src: `graph g(x: f32[M, 16], z: bool[M, 16]) -> (y: f32[16, M], s: i8[16, M]) {
		y = transpose(where(z, x, -x))
		s = i8(transpose(z)) }`,
		sizes: [][]int64{{24}, {17}, {300}}},
	{name: "behind a border", src: `graph g(x: bf16[N + 1, 3 * M + 2]) -> (y: bf16[N, 3, M]) { y[n, c, m] = x[n + 1, 3 * m + c + 1] }`,
		sizes: [][]int64{{2, 24}, {3, 17}, {2, 300}}},
	{name: "beside a gather", src: `graph g(x: f32[K, M, 4], at: i32[N]) -> (y: f32[N, 4, M]) { y[n, c, m] = x[at[n], m, c] else 7 }`,
		sizes: [][]int64{{5, 24, 3}, {2, 17, 4}}},
}

// turnedPlanes read planes that lie one behind the other, with their elements next to each other in the result. Rows of a plane
// begin anew in what is read, and not in what is stored.
var turnedPlanes = []row{
	{name: "each second pixel", src: `graph g(x: bf16[N, C, 28, 28]) -> (y: bf16[N, 14, 14, C]) { y = permute(x[:, :, ::2, ::2], (0, 2, 3, 1)) }`,
		sizes: [][]int64{{2, 24}, {1, 17}, {1, 130}, {2, 15}, {0, 64}}},
	{name: "each third pixel of odd planes", src: `graph g(x: f32[N, C, 20, 23]) -> (y: f32[N, 7, 8, C]) { y = permute(x[:, :, ::3, ::3], (0, 2, 3, 1)) * 2 }`,
		sizes: [][]int64{{2, 24}, {1, 17}, {1, 130}}},
	{name: "a part of each plane", src: `graph g(x: f16[N, C, H + 3, 9], b: f16[C]) -> (y: f16[N, H, 7, C]) { y[n, h: H, w: 7, c] = x[n, c, h + 2, w + 1] + b[c] }`,
		sizes: [][]int64{{2, 24, 5}, {1, 17, 9}, {1, 130, 4}}},
	{name: "with a border", src: `graph g(x: i8[N, C, H, 30]) -> (y: f32[N, H + 2, 32, C]) { y[n, h: H + 2, w: 32, c] = f32(x[n, c, h - 1, w - 1] else 3) }`,
		sizes: [][]int64{{2, 24, 5}, {1, 17, 9}, {1, 130, 1}}},
	{name: "back, planes of whole fours and twos", src: `graph g(x: bf16[N, 14, 14, C], z: f16[N, 7, 6, C]) -> (y: bf16[N, C, 14, 14], s: f16[N, C, 7, 6]) {
		y = permute(x, (0, 3, 1, 2))
		s = permute(z, (0, 3, 1, 2)) + 1 }`,
		sizes: [][]int64{{2, 24}, {1, 17}, {1, 130}}},
	{name: "two planes, one of them whole", src: `graph g(x: bf16[N, C, 14, 14], z: bf16[N, C, 7, 7]) -> (y: bf16[N, 7, 7, C]) { y = permute(x[:, :, ::2, 1::2] + z, (0, 2, 3, 1)) }`,
		sizes: [][]int64{{2, 24}, {1, 17}, {1, 130}}},
}

// interleaving are programs whose results alternate along a short range, and that read along the range around it.
var interleaving = []row{
	{name: "taps back", src: `graph g(w: bf16[O, 3, 3, C]) -> (y: bf16[O, C, 3, 3]) { y = permute(w, (0, 3, 1, 2)) }`,
		sizes: [][]int64{{2, 24}, {3, 136}, {1, 17}, {3, 33}, {2, 15}, {1, 1100}, {0, 16}}},
	{name: "planes to colours", src: `graph g(x: u8[N, 3, H, W], m: f32[3], s: f32[H, W]) -> (y: f32[N, H, W, 3]) {
		y[n, h, w, c] = f32(x[n, c, h, w]) / 255 - m[c] + s[h, w] }`,
		sizes: [][]int64{{2, 7, 24}, {1, 5, 17}, {1, 1, 1030}, {3, 4, 4}}},
	{name: "complex numbers", src: `graph g(re: f32[N], im: f32[N], w: f16[2, N]) -> (y: f32[N, 2]) { y[i, j] = (re[i] * f32(w[j, i])) + im[i] * f32(j) }`,
		sizes: [][]int64{{24}, {17}, {2060}, {1025}}},
	{name: "in wide elements, two results", src: `graph g(x: f64[N, 7, M], z: f64[N, M, 7]) -> (y: f64[N, M, 7], s: f64[N, M, 7]) {
		y = exp(transpose(x, 1, 2))
		s = transpose(x, 1, 2) - z }`,
		sizes: [][]int64{{2, 24}, {3, 17}, {1, 300}}},
	{name: "bytes, and what is behind a border", src: `graph g(x: i8[N, 31, M + 1], z: i8[4, 31, M]) -> (y: i8[N, M, 31]) { y[n, m, c] = abs(x[n, c, m + 1]) + z[0, c, m] }`,
		sizes: [][]int64{{2, 24}, {3, 17}, {1, 300}}},
}

func interleavedFamilies() []family {
	takes := func(s ir.Strategy) func(p *ir.Plan) bool {
		return func(p *ir.Plan) bool {
			return slices.ContainsFunc(p.Launched(), func(k *ir.Kernel) bool {
				return slices.ContainsFunc(k.Variants, func(v *ir.Variant) bool { return v.Strategy == s })
			})
		}
	}
	return []family{{name: "interleaved", rows: interleaved[:len(interleaved)-1], variants: all, plan: takes(ir.PointwiseInterleaved), planned: []string{"sm_90a", "sm_80"},
		on: slices.Concat(races(nil), []pass{{engine: "cpu"}, {engine: "gpu"}}), compile: inTurn(false, "sm_90a", "sm_80")},
		{name: "interleaving", rows: interleaving, variants: all, plan: takes(ir.PointwiseInterleaving), planned: []string{"sm_90a", "sm_80"},
			on: slices.Concat(races(nil), []pass{{engine: "cpu"}, {engine: "gpu"}}), compile: inTurn(false, "sm_90a", "sm_80")},
		{name: "turned planes", rows: turnedPlanes, variants: all, plan: func(p *ir.Plan) bool { return p.Kernels[0].Variants[0].Strategy == ir.PointwiseTile },
			planned: []string{"sm_90a", "sm_80"}, on: slices.Concat(races(nil), []pass{{engine: "cpu"}, {engine: "gpu"}}), compile: inTurn(false, "sm_90a", "sm_80")},
		{name: "interleaved, gathered", rows: interleaved[len(interleaved)-1:], on: slices.Concat(races(nil), []pass{{engine: "gpu"}})}}
}
