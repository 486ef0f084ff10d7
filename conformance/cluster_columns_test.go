package conformance

import (
	"slices"

	"github.com/fusec/fusec/ir"
)

// clusterColumns are reductions whose columns the blocks of a cluster share where memory runs along few rows, and rows are many
// at the usual sizes: products of one row by matrices, sums, extremes, places and moments over the first axis.
var clusterColumns = []row{
	{name: "gated", src: `@bench(K=1024, N=65536) graph g(x: bf16[1, K], a: bf16[K, N], b: bf16[K, N]) -> (y: bf16[1, N]) { y = silu(x @ a) * (x @ b) }`},
	{name: "sums of several types", src: `@bench(K=1024, N=65536) graph g(x: f32[K, N], z: f16[K, N]) -> (s: f32[N], m: f16[N], d: f64[N]) {
		s = sum(x * x, axis=0)
		m = max(z, axis=0)
		d = sum(f64(x), axis=0) }`},
	{name: "places", src: `@bench(K=1024, N=65536) graph g(x: f32[K, N], z: i64[K, N]) -> (p: i64[N], q: i64[N]) {
		p = argmax(x, axis=0)
		q = argmin(z, axis=0) }`},
	{name: "largest, then sums", src: `@bench(K=1024, N=65536) graph g(x: f32[K, N]) -> (y: f32[N]) { y = logsumexp(x, axis=0) }`},
	{name: "softmax along columns", src: `@bench(K=1024, N=65536) graph g(x: bf16[K, N]) -> (y: bf16[K, N]) { y = softmax(x, axis=0) }`},
	{name: "conditions", src: `@bench(K=1024, N=65536) graph g(x: bf16[K, N], n: i32[N]) -> (y: f32[N]) { y[j] = sum[k: K where k < n[j]] f32(x[k, j]) }`},
}

func clusterFamily() family {
	return family{name: "columns of clusters", rows: clusterColumns, variants: all, planned: []string{"sm_90a"},
		sizes: [][]int64{{1, 1}, {2047, 8}, {2049, 130}, {4096, 64}, {0, 3}, {4099, 33}},
		plan: func(p *ir.Plan) bool {
			return slices.ContainsFunc(p.Kernels, func(k *ir.Kernel) bool {
				return slices.ContainsFunc(k.Variants, func(v *ir.Variant) bool { return v.Strategy == ir.ColumnGroup && v.Schedule.Cluster > 1 })
			})
		},
		on:      []pass{{engine: "cpu"}, {engine: "gpu"}, {engine: "sm_90a"}},
		compile: onAll(true, "sm_90a")}
}
