package conformance

import (
	"slices"

	"github.com/fusec/fusec/ir"
)

// longRows reduce over symbols to few results. At sizes that the program does not name, or above those that it names, blocks
// share what one block adds up at others.
var longRows = []row{
	{name: "sum of squares", src: `graph g(x: f32[N], t: f32[N]) -> (y: f32[]) { y = mean((x - t) ** 2) }`},
	{name: "moments", src: `graph g(x: bf16[N]) -> (y: f32[], z: f32[]) { y = var(f32(x))
		z = mean(f32(x)) }`},
	{name: "softmax", src: `graph g(x: f32[N]) -> (y: f32[N], l: f32[]) { y = softmax(x)
		l = logsumexp(x) }`},
	{name: "bools", src: `graph g(x: i32[N]) -> (y: bool[], z: i64[], w: i32[]) { y = any(x > 90)
		z = sum(x)
		w = min(-x) }`},
	{name: "few rows", src: `@bench(N=64) graph g(x: f16[3, N]) -> (y: f16[3], z: i64[3]) { y = amax(x, axis=1)
		z = argmax(x, axis=1) }`},
	{name: "few columns", src: `graph g(x: f32[N, 5]) -> (y: f32[5], z: f32[N, 5]) { y = sum(x, axis=0)
		z = x - y / 7 }`},
	{name: "places", src: `@bench(N=1000) graph g(x: f32[N]) -> (y: i64[], z: f32[]) { y = argmin(x)
		z = x[y] * 2 }`},
	{name: "scan", src: `graph g(x: f32[N]) -> (y: f32[N]) { y = cumsum(x) }`},
	{name: "scans both ways", src: `@bench(N=64) graph g(x: bf16[2, N], w: i32[N, 3]) -> (y: bf16[2, N], z: i32[N, 3], l: f32[2]) {
		y = cumsum(x * 0.01, axis=1, exclusive=true)
		z = cummax(w, axis=0, reverse=true)
		l = sum(f32(y), axis=1) }`},
	{name: "scan of some", src: `graph g(x: f64[N], m: bool[N]) -> (y: f64[N], z: bool[N]) {
		y[i: N] = prod[k: N where k >= i && m[k]] (1 + x[k] * 0.0001)
		z[i: N] = all[k: N where k < i] m[k] }`},
	{name: "scan of bools", src: `graph g(m: bool[N]) -> (z: bool[N]) {
		z[i: N] = any[k: N where k > i] m[k] }`},
	{name: "scan of a scan", src: `graph g(x: f32[N]) -> (y: f32[N], s: f32[]) {
		y = cumsum(cumsum(x * 0.001) / 100)
		s = y[N / 2] }`},
}

// longRowFamilies are compared on both sides of the size at which blocks begin to share a row.
func longRowFamilies() []family {
	sizes := [][]int64{{0}, {1}, {1000}, {32767}, {32768}, {40001}}
	return []family{{name: "long rows", rows: longRows, symbols: []string{"N"}, sizes: sizes,
		plan: func(p *ir.Plan) bool {
			return slices.ContainsFunc(p.Kernels, func(k *ir.Kernel) bool { return k.When != nil })
		},
		on:      append(races([][]int64{{0}, {9}, {32768}, {33001}}), pass{engine: "cpu"}, pass{engine: "gpu", sizes: append(sizes, []int64{1 << 20}, []int64{3000001})}),
		compile: inTurn(true, "sm_90a", "sm_80")}}
}
