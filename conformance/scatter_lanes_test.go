package conformance

// scatterLanes are scatters by one key that differ in their lanes, whose estimates say that one kernel for them is faster: sums
// beside counts, the weights of edges beside what these bring, several reductions at once, keys that depend on the row of a batch,
// lanes before the places, conditions, and results that what follows reads.
var scatterLanes = rowsOf(map[string]string{
	"mean": `@bench(K=262144, V=16384, D=64) graph g(z: bool[V], at: i64[K], x: f32[K, D]) -> (y: f32[V, D], n: f32[V]) {
		s[v: V, d: D] = sum[k: K where at[k] == v] x[k, d]
		n[v: V] = sum[k: K where at[k] == v] 1.0
		y = s / max(n, 1.0)[:, none] }`,
	"counts": `@bench(K=262144, V=16384, D=64) graph g(z: bool[V], at: i32[K], x: bf16[K, D]) -> (y: bf16[V, D], n: i64[V]) {
		y[v: V, d: D] = max[k: K where at[k] == v] x[k, d]
		n = bincount(at, V) }`,
	"weights": `@bench(K=262144, V=16384, D=64) graph g(to: i64[K], of: i64[K], w: f32[K], x: f32[V, D]) -> (y: f32[V, D], t: f32[V]) {
		y = index_add(full(0.0, V, D, dtype=f32), to, x[of] * w[:, none])
		t = index_add(full(1.0, V, dtype=f32), to, w) }`,
	"chunks": `@bench(K=262144, V=128, D=64) graph g(z: bool[V], at: i64[K], x: f32[K, D]) -> (y: f32[V, D], n: f32[V]) {
		y[v: V, d: D] = sum[k: K where at[k] == v] x[k, d]
		n[v: V] = sum[k: K where at[k] == v] 1.0 }`,
	"heads": `@bench(K=262144, V=16384, H=4, D=32) graph g(z: bool[V], at: i32[K], m: bool[K], x: f16[K, H, D], w: f32[K, H]) -> (y: f16[V, H, D], t: f32[V, H]) {
		y[v: V, h: H, d: D] = sum[k: K where (at[k] == v) && m[k]] x[k, h, d]
		t[v: V, h: H] = max[k: K where (at[k] == v) && m[k]] w[k, h] }`,
	"turned": `@bench(K=262144, V=16384, D=64) graph g(z: bool[V], at: i64[K], x: f32[D, K]) -> (y: f32[D, V], n: i64[V]) {
		y[d: D, v: V] = min[k: K where at[k] == v] x[d, k]
		n[v: V] = sum[k: K where at[k] == v] i64(1) }`,
	"batch": `@bench(B=8, K=32768, V=2048, D=64) graph g(z: bool[V], at: i32[B, K], x: f32[B, K, D]) -> (y: f32[B, V, D], n: i64[B, V]) {
		y[b: B, v: V, d: D] = sum[k: K where at[b, k] == v] x[b, k, d]
		n[b: B, v: V] = sum[k: K where at[b, k] == v] 1 }`,
	"literal": `graph g(at: i64[9001], x: f32[9001, 33], w: f32[9001]) -> (y: f32[801, 33], t: f32[801], n: i64[801]) {
		y[v: 801, d: 33] = sum[k: 9001 where at[k] == v] x[k, d]
		t[v: 801] = max[k: 9001 where at[k] == v] w[k]
		n = bincount(at, 801) }`,
	"three": `@bench(K=262144, V=16384, H=4, D=32) graph g(z: bool[V], at: i64[K], x: f32[K, H, D], w: f32[K, H]) -> (y: f32[V, H, D], t: f32[V, H], n: i64[V]) {
		y[v: V, h: H, d: D] = sum[k: K where at[k] == v] x[k, h, d]
		t[v: V, h: H] = sum[k: K where at[k] == v] w[k, h]
		n = bincount(at, V) }`,
	"joined": `@bench(K=262144, V=16384, D=64) graph g(z: f32[V, D], at: i64[K], x: f32[K, D], w: f32[K]) -> (y: f32[V, 2 * D + 1]) {
		s[v: V, d: D] = sum[k: K where at[k] == v] x[k, d]
		t[v: V] = sum[k: K where at[k] == v] w[k]
		y = concat(s, z, t[:, none], axis=1) }`,
	"read later": `@bench(K=262144, V=16384, D=64) graph g(z: bool[V], at: i64[K], x: f32[K, D], w: f32[K]) -> (y: f32[V, D], u: f32[K]) {
		t = index_add(full(0.0, V, dtype=f32), at, w)
		s = index_add(full(0.0, V, D, dtype=f32), at, x)
		y = s * 2
		u = t[at] + w }`,
	"f64": `@bench(K=262144, V=16384, D=64) graph g(z: bool[V], at: i64[K], x: f64[K, D], w: f64[K]) -> (y: f64[V, D], t: f64[V]) {
		y[v: V, d: D] = sum[k: K where at[k] == v] x[k, d]
		t[v: V] = sum[k: K where at[k] == v] w[k] }`,
}, func(_, program string) string { return program })

// scatterLanesFamily compares them at odd sizes, of one, and of no lane, no column and no place, in whole numbers whose sums are exact.
func scatterLanesFamily() family {
	simulated := [][]int64{{300, 70, 33, 2, 2}, {1900, 700, 4, 1, 3}, {9, 5, 0, 2, 2}, {9, 5, 2, 0, 2}}
	return family{name: "lanes of one key", rows: scatterLanes, symbols: []string{"K", "V", "D", "H", "B"},
		sizes: [][]int64{{1, 1, 1, 1, 1}, {0, 5, 3, 2, 2}, {9, 5, 0, 2, 2}, {7, 0, 3, 2, 1}, {300, 70, 33, 3, 2}, {1900, 9, 64, 2, 1}, {5003, 3001, 5, 1, 2}, {9, 5, 2, 0, 2}},
		fill:  Integers(-2, 70), exact: identical, repeat: true, variants: all,
		on: append(races(simulated), pass{engine: "cpu"}, pass{engine: "gpu"}), compile: onAll(true, "sm_90a", "sm_80")}
}
