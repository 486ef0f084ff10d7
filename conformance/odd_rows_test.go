package conformance

// oddRows are products of 16-bit operands whose rows are known not to be a whole number of
// accesses, or are none at the default sizes, so that copies of them are aligned: of one side or of both, along the sum and across it,
// with what may stand around them.
var oddRows = map[string]string{
	"both along the sum": `@bench(M=2048, N=2048)
		graph g(a: bf16[M, 261], b: bf16[N, 261]) -> (y: bf16[M, N]) { y = a @ transpose(b) }`,
	"one along the sum": `@bench(M=2048, N=2048)
		graph g(a: f16[M, 260], b: f16[260, N], c: f16[N]) -> (y: f16[M, N]) { y = relu(a @ b + c) }`,
	"across": `@bench(M=2048, N=2048)
		graph g(a: bf16[M, 264], b: bf16[264, 1021], v: f32[N]) -> (y: f32[M, 1021]) { y = f32(a @ b) * v[0] }`,
	"batched": `@bench(M=1024, N=1024)
		graph g(a: bf16[3, M, 259], b: bf16[3, N, 259]) -> (y: bf16[3, M, N], s: f32[3, M]) {
		y = a @ transpose(b)
		s = sum(f32(a), axis=2) }`,
	"computed": `@bench(M=2048, N=2048)
		graph g(a: f32[M, 258], b: bf16[258, N]) -> (y: bf16[M, N]) { y = gelu(bf16(silu(a)) @ b) }`,
	"symbols": `@bench(M=2049, N=2051)
		graph g(a: bf16[M, N], b: bf16[N, M], c: bf16[M]) -> (y: bf16[M, M]) { y = relu(a @ b + c) }`,
	"symbols, batched": `@bench(M=1025, N=1027)
		graph g(a: f16[3, M, N], b: f16[3, M, N]) -> (y: f16[3, M, M]) { y = a @ transpose(b) }`,
	"twice": `@bench(M=2048, N=2048)
		graph g(a: bf16[M, 257], b: bf16[N, 257], c: bf16[N, 257]) -> (y: bf16[M, N]) { y = silu(a @ transpose(b)) * (a @ transpose(c)) }`,
}

func oddRowFamilies() []family {
	return []family{{
		name: "odd_rows", rows: rowsOf(oddRows, func(_, program string) string { return program }),
		symbols: []string{"M", "N"}, sizes: [][]int64{{1, 1}, {3, 40}, {130, 17}},
		on: []pass{{engine: "cpu", most: 1e7}, {engine: "sm_80", most: 1e6}, {engine: "sm_90a", most: 1e6}, {engine: "gpu"}},
	}}
}
