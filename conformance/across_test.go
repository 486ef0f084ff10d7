package conformance

import (
	"slices"

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

func acrossFamilies() []family {
	return []family{{
		name: "across_rows", rows: rowsOf(acrossRows, func(_, program string) string { return "@bench(N=4096) " + program }),
		sizes: [][]int64{{1}, {3}, {64}, {0}}, plan: storesVectors, planned: []string{"sm_90a", "sm_80"},
		on:      []pass{{engine: "cpu"}, {engine: "sm_80"}, {engine: "sm_90a"}, {engine: "gpu"}},
		compile: inTurn(false, "sm_90a", "sm_80"), variants: all,
	}}
}

// storesVectors reports whether each kernel of a plan has a variant that takes several elements at a time.
func storesVectors(p *ir.Plan) bool {
	return !slices.ContainsFunc(p.Kernels, func(k *ir.Kernel) bool {
		return !slices.ContainsFunc(k.Variants, func(v *ir.Variant) bool { return v.Schedule.Vector > 1 })
	})
}
