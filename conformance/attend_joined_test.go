package conformance

import (
	"slices"

	"github.com/fusec/fusec/ir"
)

// joinedKeys are attention of few queries whose keys and values lie in several tensors: a cache and the keys of new
// tokens. The kernel reads these where they lie.
var joinedKeys = []row{
	{name: "heads that share keys", src: `@bench(T=4096, G=8) graph g(q: bf16[4 * G, 1, 128], keys: bf16[G, T, 128], values: bf16[G, T, 128], k: bf16[G, 1, 128], v: bf16[G, 1, 128]) -> (y: bf16[G, 4, 1, 128]) {
		y = attention(reshape(q, G, 4, 1, 128), concat(keys, k, axis=1)[:, none], concat(values, v, axis=1)[:, none]) }`,
		sizes: [][]int64{{0, 1}, {255, 2}, {256, 1}, {700, 1}}},
	{name: "several tokens, turned", src: `@bench(T=4096, G=8) graph g(q: f16[G, 3, 64], keys: f16[G, T, 64], values: f16[G, T, 64], k: f16[G, 3, 64], v: f16[G, 3, 64]) -> (y: f16[G, 3, 64]) {
		y = attention(rope(q), concat(keys, rope(k), axis=1), concat(values, v * 2.0, axis=1), mask=iota(T + 3) <= T + iota(3)[:, none]) }`,
		sizes: [][]int64{{0, 1}, {253, 2}, {254, 1}, {600, 2}}},
	{name: "three parts", src: `@bench(T=4096, G=8) graph g(q: bf16[G, 1, 80], first: bf16[G, 4, 80], keys: bf16[G, T, 80], values: bf16[G, T, 80], k: bf16[G, 1, 80], v: bf16[G, 1, 80], a: bf16[G, 4, 80]) -> (y: bf16[G, 1, 80]) {
		y = attention(q, concat(first, keys, k, axis=1), concat(a, values, v, axis=1)) }`,
		sizes: [][]int64{{0, 1}, {251, 2}, {252, 1}, {600, 2}}},
	{name: "f32", src: `@bench(T=4096, G=8) graph g(q: f32[G, 2, 64], keys: f32[G, T, 64], values: f32[G, T, 64], k: f32[G, 1, 64], v: f32[G, 1, 64]) -> (y: f32[G, 2, 64]) {
		y = attention(q, concat(keys, k, axis=1), concat(values, v, axis=1)) }`,
		sizes: [][]int64{{0, 1}, {255, 2}, {300, 1}}},
	{name: "rows that are not aligned", src: `@bench(T=4096, G=8) graph g(q: bf16[G, 1, 33], keys: bf16[G, T, 33], values: bf16[G, T, 33], k: bf16[G, 1, 33], v: bf16[G, 1, 33]) -> (y: bf16[G, 1, 33]) {
		y = attention(q, concat(keys, k, axis=1), concat(values, v, axis=1)) }`,
		sizes: [][]int64{{0, 1}, {255, 2}, {300, 1}}},
}

func joinedFamily() family {
	return family{name: "attend to joined keys", rows: joinedKeys, variants: all, planned: []string{"sm_90a", "sm_80"}, symbols: []string{"T", "G"},
		plan: func(p *ir.Plan) bool {
			return slices.ContainsFunc(p.Kernels, func(k *ir.Kernel) bool { return isAttend(k) && reads(k, "keys") && reads(k, "values") })
		},
		on:      []pass{{engine: "cpu"}, {engine: "gpu"}, {engine: "sm_90a"}, {engine: "sm_80"}},
		compile: onAll(true, "sm_90a", "sm_80")}
}

// reads reports whether a kernel reads the tensor of a name.
func reads(k *ir.Kernel, name string) bool {
	return slices.ContainsFunc(k.Args, func(a *ir.Arg) bool { return !a.Write && a.Buffer.Value.Name == name })
}
