package conformance

// scatterReads are programs in which what is read or counted at several indices goes to one tensor: the gradients of a table
// that is read at two places or twice at one, keys of two axes, and results in other shapes.
var scatterReads = []row{
	{name: "two places", graph: "two_grad", src: `
        graph two(u: i64[300], i: i32[300], table: f32[64, 8]) -> (l: f32[]) { l = sum(table[u] * table[i]) }
        graph two_grad = grad(two, wrt=[table])`},
	{name: "one place", graph: "one_grad", src: `
        graph one(u: i64[1100, 3], table: f32[64, 32]) -> (l: f32[]) {
            e = table[u]
            l = sum(sum(e, axis=1) ** 2 - sum(e ** 2, axis=1))
        }
        graph one_grad = grad(one, wrt=[table])`},
	{name: "pairs", src: `graph g(a: i64[700], b: i32[700], x: f32[700, 4]) -> (y: f32[64, 32, 4], n: i64[64, 32]) {
            y[i: 64, j: 32, d: 4] = sum[k: 700 where a[k] == i && b[k] == j] x[k, d]
            n[i: 64, j: 32] = sum[k: 700 where b[k] == j && a[k] == i] i64(1)
        }`},
	{name: "pairs beyond 32 bits", src: `graph g(a: i64[700], b: i64[700], x: f32[700, 4]) -> (y: f32[64, 32, 4]) {
            y[i: 64, j: 32, d: 4] = sum[k: 700 where a[k] + 4294967296 * i64(k % 2) == i && b[k] - 4294967296 * i64(k % 3) == j] x[k, d]
        }`},
	{name: "turned", src: `graph g(at: i64[700], x: f32[700, 8]) -> (y: f32[8, 10, 8], t: f32[10, 8, 8]) {
            s = reshape(index_add(full(1.0, 80, 8, dtype=f32), at, x), 10, 8, 8)
            y = transpose(s, 0, 1) * 2
            t = s + 1
        }`},
	{name: "two passes", src: `graph g(at: i64[700], x: f32[700, 8]) -> (y: f32[80, 8]) {
            m[v: 80, d: 8] = max[k: 700 where at[k] == v] x[k, d]
            y[v: 80, d: 8] = sum[k: 700 where at[k] == v] abs(x[k, d] - m[v, d])
        }`},
}

func scatterReadsFamily() family {
	return family{name: "reads of one tensor", rows: scatterReads, fill: Integers(-2, 70), exact: identical, repeat: true,
		on: append(races(nil), pass{engine: "cpu"}, pass{engine: "gpu"})}
}
