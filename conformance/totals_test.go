package conformance

// totals are reductions of all of a tensor beside reductions of its rows or columns.
var totals = []row{
	{name: "a sum of rows and a total", src: `@bench(N=6000, M=6000) graph g(p: f32[N, M], y: f32[M]) -> (g: f32[N], t: f32[]) {
		g = sum(p * y, axis=1)
		t = sum(p * exp(p / 8)) }`},
	{name: "several of each", src: `@bench(N=64000, M=2048) graph g(p: f32[N, 3, M]) -> (g: f32[N, 3], t: f32[], s: f32[N], l: f32[]) {
		g = max(p, axis=-1)
		t = mean(abs(p))
		s = min(p, axis=(1, 2))
		l = max(p) }`},
	{name: "about the mean of a row", src: `@bench(N=8192, M=4096) graph g(p: bf16[N, M]) -> (t: f32[]) {
		x = f32(p)
		t = sum((x - mean(x, axis=-1, keep=true)) ** 2) }`},
	{name: "columns and a total", src: `@bench(N=8192, M=4096) graph g(p: f32[N, M]) -> (g: f32[M], t: f32[]) {
		g = sum(p, axis=0)
		t = sum(p * p) }`},
	{name: "many short rows", src: `@bench(N=1000000, M=64) graph g(p: f32[N, M]) -> (g: f32[N], t: f32[]) {
		g = sum(p, axis=-1)
		t = max(p) }`},
}

// totalFamilies are programs that read a tensor once for its rows and its total.
func totalFamilies() []family {
	return []family{{name: "rows and totals", rows: totals, sizes: [][]int64{{1, 1}, {7, 33}, {130, 257}, {0, 5}, {5, 0}, {300, 64}}, repeat: true,
		on:      []pass{{engine: "cpu"}, {engine: "sm_80", sizes: [][]int64{{7, 33}, {40, 257}}}, {engine: "sm_90a", sizes: [][]int64{{33, 40}, {40, 257}}}, {engine: "gpu"}},
		compile: inTurn(true, "sm_90a", "sm_80")}}
}
