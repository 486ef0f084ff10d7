package conformance

// boundedRows are reductions whose predicate bounds their ranges by sizes, from below, from above, and from both sides, beside
// other conditions, at sizes at which the bounds are inside the ranges, at their ends, and beyond them.
var boundedRows = []row{
	{name: "sums of few columns", src: `graph g(x: f32[N, M]) -> (y: f32[N]) { y[i: N] = sum[k: M where k <= 2] x[i, k] }`},
	{name: "pairs of few rows", src: `graph g(x: f32[N, M]) -> (y: f32[]) { y = (sum[k: N, p: N where k < 3] x[p, 0] * (x[k, p] else 0.5)) }`},
	{name: "from a number on", src: `graph g(x: f16[N, M]) -> (y: f32[N]) { y[i: N] = sum[k: M where k >= 40 && k <= N && k < 900] f32(x[i, k]) }`},
	{name: "from a size on", src: `graph g(x: i32[N, M]) -> (y: i32[N], z: i32[M]) {
		y[i: N] = max[k: M where k > N - 3 && k < M - 1] x[i, k]
		z[j: M] = min[i: N where i >= M / 2 && (i % 2 == 0 || j > 3)] x[i, j] }`},
	{name: "the last two", src: `graph g(x: f64[N, M]) -> (y: f64[N]) { y[i: N] = prod[k: M where k >= M - 2] x[i, k] }`},
	{name: "a band beside a bound", src: `graph g(x: i16[N, M]) -> (y: i16[N]) { y[i: N] = max[k: M where k >= i && k < i + 3 && k < 20] x[i, k] }`},
	{name: "between sizes", src: `graph g(x: f32[N, M]) -> (y: f32[N]) { y[i: N] = sum[k: max(M - max(N - 2, 0), 0)] x[i, k] }`},
	{name: "places", src: `graph g(x: bf16[N, M]) -> (y: i64[N]) { y[i: N] = argmax[k: M where k >= 2 && k < 33] x[i, k] }`},
	{name: "products of a part", src: `graph g(x: bf16[N, K], w: bf16[K, M]) -> (y: f32[N, M]) {
		y[i: N, j: M] = sum[k: K where k >= 32 && k < M] f32(x[i, k]) * w[k, j] }`,
		sizes: [][]int64{{64, 96, 72}, {33, 40, 31}, {5, 200, 130}}},
}

func boundedFamilies() []family {
	sizes := [][]int64{{1, 1}, {5, 3}, {37, 1000}, {64, 64}, {300, 50}, {3, 0}, {0, 4}}
	return []family{{name: "bounded ranges", rows: boundedRows, sizes: sizes, on: append(races(nil), pass{engine: "cpu"}, pass{engine: "gpu"}),
		compile: inTurn(true, "sm_90a", "sm_80")}}
}
