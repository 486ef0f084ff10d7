package conformance

import (
	"slices"
	"strings"

	"github.com/fusec/fusec/ir"
)

// acrossRows are pointwise programs whose rows are no whole number of vectors, with smaller tensors that are constant
// along them or repeat: vectors run across the ends of rows.
var acrossRows = map[string]string{
	"factor of a plane": `graph g(x: f16[N, 8, 5, 5], g: f16[N, 8]) -> (y: f16[N, 8, 5, 5]) { y = x * sigmoid(g)[:, :, none, none] }`,
	"bias of channels":  `graph g(x: bf16[N, 16, 7, 7], b: bf16[16]) -> (y: bf16[N, 16, 7, 7]) { y = relu(x + b[:, none, none]) }`,
	"three columns":     `graph g(x: u8[N, 16, 3], m: f32[3], s: f32[3]) -> (y: f32[N, 16, 3]) { y = (f32(x) / 255 - m) / s }`,
	"two results": `graph g(x: f32[N, 8, 9], z: f32[N, 8, 9], s: f32[8], t: f32[9]) -> (y: f32[N, 8, 9], w: f32[N, 8, 9]) {
		y = x * s[:, none] + z
		w = y - t }`,
	"rows and planes": `graph g(x: f16[N, 8, 5, 3], r: f16[5], c: f16[8, 3]) -> (y: f16[N, 8, 5, 3]) { y = x * r[:, none] + c[:, none, :] }`,
	"random":          `graph g(x: f16[N, 24, 7], b: f16[24]) -> (y: f16[N, 24, 7]) { y = dropout(x + b[:, none], 0.5, 3) }`,
	"odd in all":      `graph g(x: f16[N, 5, 7], b: f16[5]) -> (y: f16[N, 5, 7]) { y = x * b[:, none] }`,
	"strict":          `@strict graph g(x: bf16[N, 8, 11], b: bf16[8]) -> (y: bf16[N, 8, 11]) { y = gelu(x + b[:, none]) }`,
}

// acrossSymbols are such programs where nothing is known of the rows, or where what is computed depends on the place in a row.
var acrossSymbols = map[string]string{
	"factor of a plane": `graph g(x: f16[N, C, H, W], s: f16[C]) -> (y: f16[N, C, H, W]) { y = x * s[none, :, none, none] }`,
	"rows and columns":  `graph g(x: f32[N, C, H, W], r: f32[N, C], b: f32[H, W]) -> (y: f32[N, C, H, W]) { y = x * exp(r)[:, :, none, none] + b[none, none, :, :] }`,
	"middle axis": `graph g(x: bf16[N, C, H, W], b: bf16[H], z: f32[N, C, H, W]) -> (y: f32[N, C, H, W], w: bf16[N, C, H, W]) {
		y = relu(x + b[none, none, :, none]) * z
		w = x - bf16(z) }`,
	"mask":                 `graph g(x: bf16[N, C, H, W]) -> (y: bf16[N, C, H, W]) { y[n, c, i, j] = where(j <= i + c, x[n, c, i, j], 0) }`,
	"fill":                 `graph g(s: f16[W], t: f32[N, C, H]) -> (y: f16[N, C, H, W]) { y[n, c, i, j] = where(j >= i, s[j], f16(t[n, c, i])) }`,
	"random":               `graph g(x: f16[N, C, H, W], b: f16[C]) -> (y: f16[N, C, H, W]) { y = dropout(x + b[none, :, none, none], 0.5, 3) }`,
	"reversed":             `graph g(x: u8[N, C, H, W], k: bool[W]) -> (y: u8[N, C, H, W]) { y[n, c, i, j] = where(k[j], x[n, c, i, W - 1 - j], 7) }`,
	"shifted":              `graph g(x: f32[N, C, H, W]) -> (y: f32[N, C, H, W]) { y[n, c, i, j] = x[n, c, i, j] - x[n, c, i, (j + W - 1) % W] }`,
	"shuffled":             `graph g(x: bf16[N, 9 * C, H, W]) -> (y: bf16[N, C, 3 * H, 3 * W]) { y = pixel_shuffle(x, 3) }`,
	"unshuffled":           `graph g(x: f32[N, C, 2 * H, 2 * W]) -> (y: f32[N, 4 * C, H, W]) { y = pixel_unshuffle(x, 2) }`,
	"enlarged":             `graph g(x: f16[N, C, H, W], s: f16[C]) -> (y: f16[N, C, 2 * H, 2 * W]) { y = upsample_nearest2d(x, 2) * s[none, :, none, none] }`,
	"edges":                `graph g(x: f32[N, C, H, W]) -> (y: f32[N, C, H, W + 3]) { y[n, c, i, j: W + 3] = x[n, c, i, min(max(j - 1, 0), W - 1)] }`,
	"channels last":        `graph g(x: f32[N, 3, H, W], m: f32[3]) -> (y: f32[N, H, W, 3]) { y = permute(x, (0, 2, 3, 1)) - m }`,
	"strict":               `@strict graph g(x: bf16[N, C, H, W], b: bf16[C]) -> (y: bf16[N, C, H, W]) { y = gelu(x + b[none, :, none, none]) }`,
	"reversed, of numbers": `graph g(x: bf16[N, 35]) -> (y: bf16[N, 35]) { y[i, j] = x[i, 34 - j] }`,
}

func acrossFamilies() []family {
	return []family{{
		name: "across_symbols", rows: rowsOf(acrossSymbols, func(_, program string) string {
			switch {
			case strings.Contains(program, "C"):
				return "@bench(N=64, C=64, H=33, W=65) " + program
			case strings.Contains(program, "H"):
				return "@bench(N=64, H=33, W=65) " + program
			}
			return "@bench(N=8192) " + program
		}),
		symbols: []string{"N", "C", "H", "W"},
		sizes:   [][]int64{{1, 1, 1, 1}, {2, 3, 5, 7}, {3, 2, 1, 3}, {1, 5, 4, 1}, {2, 2, 3, 70}, {1, 2, 9, 16}, {5, 1, 1, 65}, {2, 0, 3, 5}},
		plan:    flattens, planned: []string{"sm_90a", "sm_80"},
		on:      []pass{{engine: "cpu"}, {engine: "sm_80"}, {engine: "sm_90a"}, {engine: "gpu"}},
		compile: inTurn(false, "sm_90a", "sm_80"), variants: all,
	}, {
		name: "across_rows", rows: rowsOf(acrossRows, func(_, program string) string { return "@bench(N=4096) " + program }),
		sizes: [][]int64{{1}, {3}, {64}, {0}}, plan: storesVectors, planned: []string{"sm_90a", "sm_80"},
		on:      []pass{{engine: "cpu"}, {engine: "sm_80"}, {engine: "sm_90a"}, {engine: "gpu"}},
		compile: inTurn(false, "sm_90a", "sm_80"), variants: all,
	}}
}

// flattens reports whether each kernel of a plan has a variant whose vectors are of all rows together.
func flattens(p *ir.Plan) bool {
	return !slices.ContainsFunc(p.Kernels, func(k *ir.Kernel) bool {
		return !slices.ContainsFunc(k.Variants, func(v *ir.Variant) bool { return v.Strategy == ir.PointwiseFlattened })
	})
}

// storesVectors reports whether each kernel of a plan has a variant that takes several elements at a time.
func storesVectors(p *ir.Plan) bool {
	return !slices.ContainsFunc(p.Kernels, func(k *ir.Kernel) bool {
		return !slices.ContainsFunc(k.Variants, func(v *ir.Variant) bool { return v.Schedule.Vector > 1 })
	})
}
