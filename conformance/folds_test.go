package conformance

import (
	"slices"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/simtest"
)

// chains are programs whose blocks hand on what they have folded of columns that lie across
// memory: with threads for short and for long work, accesses of every width, words of one and of
// two halves, several results, and what follows from them. The sizes have one part and several,
// whole and in part, one link of the chains and several, a strip in part, and no columns.
var chains = []row{
	{name: "sum", src: `@bench(N=16384, M=4096) graph g(x: f32[N, M]) -> (y: f32[M]) { y = sum(x, axis=0) }`,
		sizes: [][]int64{{0, 7}, {1, 8}, {130, 300}, {300, 41}, {33795, 40}, {391, 8452}, {513, 16300}, {260, 17001}}},
	{name: "sum of bf16 with what follows", src: `@bench(N=16384, M=4096) graph g(x: bf16[N, M], w: f32[M]) -> (y: bf16[M]) {
		y = bf16(tanh(sum(f32(x), axis=0) / 8) + w) }`, sizes: [][]int64{{0, 8}, {1, 1}, {600, 304}, {2100, 41}, {1025, 8456}}},
	{name: "several folds", src: `@bench(N=16384, M=4096) graph g(x: f32[N, M], k: f32[M]) -> (s: f32[M], p: f32[M], least: f32[M]) {
		s = sum(x * x, axis=0) + k
		p = max(x, axis=0)
		least = min(where(x > 0, x, 9), axis=0) }`, sizes: [][]int64{{0, 3}, {1, 9}, {130, 33}, {1030, 513}, {300, 8500}}},
	{name: "bytes and truths", src: `@bench(N=65536, M=8192) graph g(x: i8[N, M]) -> (y: i64[M], some: bool[M], n: i32[M]) {
		y = sum(i64(x), axis=0)
		some = any(x > 1, axis=0)
		n = max(i32(x), axis=0) }`, sizes: [][]int64{{0, 3}, {1, 1}, {300, 700}, {515, 17000}}},
	{name: "in f64", src: `@bench(N=16384, M=4096) graph g(x: f64[N, M]) -> (y: f64[M]) { y = sum(x, axis=0) }`,
		sizes: [][]int64{{0, 2}, {3, 1}, {515, 1000}, {260, 8450}}},
	{name: "columns of two tensors, around rows of two axes", src: `@bench(A=128, B=4096, C=32) graph g(x: f32[B, A, C], w: f32[B, A, C]) -> (y: f32[A, C]) {
		y = sum(x * w, axis=0) }`, sizes: [][]int64{{3, 5, 9}, {1, 1, 1}, {300, 30, 20}, {140, 130, 64}}},
	{name: "conditions that the first columns meet, up to any part", src: `@bench(N=16384, M=4096, K=8192) graph g(x: f32[N, M], s: f32[K]) -> (y: f32[M], z: f32[M]) {
		y[j] = sum[k: N] x[k, j] * (s[k] else 7)
		z[j] = max[k: N where k + 3 < K] x[k, j] }`, sizes: [][]int64{{0, 7, 3}, {300, 9, 5}, {300, 9, 64}, {390, 9, 131}, {515, 33, 300}, {515, 8, 515}, {515, 3, 1}}},
}

// shared are programs that fold columns which lie across memory, each shared by many
// threads of a block. The sizes leave rests of strips, of vectors and of the
// columns of a thread, fewer columns than threads, and none.
var shared = []row{
	{name: "sum", src: `@bench(N=16384, M=16384) graph g(x: f32[N, M]) -> (y: f32[M]) { y = sum(x, axis=0) }`,
		sizes: [][]int64{{0, 7}, {1, 8}, {130, 300}, {2100, 41}, {4096, 256}, {1025, 2047}}},
	{name: "sum of bf16 with what follows", src: `@bench(N=16384, M=32768) graph g(x: bf16[N, M], w: f32[M]) -> (y: bf16[M]) {
		y = bf16(tanh(sum(f32(x), axis=0) / 8) + w) }`, sizes: [][]int64{{0, 8}, {1, 1}, {130, 304}, {2100, 41}, {4096, 264}}},
	{name: "several folds", src: `@bench(N=16384, M=16384) graph g(x: f32[N, M]) -> (s: f32[M], p: f32[M], at: i64[M]) {
		s = sum(x * x, axis=0)
		p = max(x, axis=0)
		at = argmax(x, axis=0) }`, sizes: [][]int64{{1, 9}, {7, 33}, {1030, 513}, {2048, 512}}},
	{name: "bytes and truths", src: `@bench(N=65536, M=32768) graph g(x: i8[N, M]) -> (y: i64[M], some: bool[M]) {
		y = sum(i64(x), axis=0)
		some = any(x > 1, axis=0) }`, sizes: [][]int64{{0, 3}, {1, 1}, {300, 700}, {1024, 2000}}},
	{name: "in f64", src: `@bench(N=16384, M=8192) graph g(x: f64[N, M]) -> (y: f64[M]) { y = sum(x, axis=0) }`,
		sizes: [][]int64{{0, 2}, {3, 1}, {515, 1000}, {2048, 1024}}},
	{name: "two axes around a third", src: `@bench(A=1024, B=512, C=4096) graph g(x: f32[A, C, B], w: f32[A]) -> (y: f32[B, C]) {
		y[b, c] = sum[a: A] x[a, c, b] * w[a] }`, sizes: [][]int64{{0, 3, 5}, {1, 1, 1}, {3, 65, 24}, {32, 100, 37}}},
}

// lastBlockRows are programs with folds that last blocks run. The sizes
// leave rests of chunks, of vectors and of blocks, single parts, and none.
var lastBlockRows = []row{
	{name: "all", src: `@bench(N=512, M=512) graph g(x: f32[N, M]) -> (y: f32[]) { y = sum(x * x) }`,
		sizes: [][]int64{{0, 5}, {5, 0}, {1, 1}, {7, 33}, {1000, 1000}, {1030, 2048}}},
	{name: "all in bf16", src: `@bench(N=1024, M=1024) graph g(x: bf16[N, M]) -> (y: bf16[], z: f32[]) {
		y = mean(x)
		z = var(f32(x)) }`, sizes: [][]int64{{0, 8}, {1, 8}, {9, 40}, {1000, 1001}, {1000, 1024}}},
	{name: "largest and where", src: `@bench(N=128, M=2048) graph g(x: f32[N, M]) -> (y: f32[], at: i64[]) {
		s = max(x, axis=1)
		y = min(s)
		at = argmax(s) }`, sizes: [][]int64{{1, 1}, {3, 2000}, {257, 40}, {1000, 2048}}},
	{name: "of integers", src: `@bench(N=1024, M=1024) graph g(x: i32[N, M]) -> (y: i64[], some: bool[]) {
		y = sum(x)
		some = any(x > 1) }`, sizes: [][]int64{{0, 3}, {1, 1}, {300, 700}, {1024, 2000}}},
	{name: "a middle axis", src: `@bench(B=2, N=4096, M=512) graph g(x: bf16[B, N, M]) -> (y: bf16[B, M]) { y = sum(x, axis=1) }`,
		sizes: [][]int64{{2, 0, 8}, {1, 1, 1}, {3, 65, 24}, {2, 100, 37}, {16, 512, 256}}},
	{name: "results in another order", src: `@bench(B=2, N=4096, M=256) graph g(x: f32[B, N, M]) -> (y: f32[M, B]) {
		y[m, b] = sum[n: N] x[b, n, m] }`, sizes: [][]int64{{3, 65, 24}, {2, 100, 37}, {16, 512, 256}}},
	{name: "the outer axis", src: `@bench(N=4096, M=512) graph g(x: f32[N, M], w: f32[M]) -> (y: f32[M]) { y = tanh(sum(x, axis=0) / 8) + w }`,
		sizes: [][]int64{{0, 7}, {1, 8}, {130, 300}, {1000, 41}, {4096, 512}}},
	{name: "moments of channels", src: `@bench(N=32, C=24, L=1024) graph g(x: bf16[N, C, L]) -> (y: bf16[N, C, L], m: f32[C]) {
		y, m, v = batch_norm_train(x) }`, sizes: [][]int64{{1, 1, 8}, {5, 3, 1000}, {33, 2, 1001}, {32, 24, 1024}}},
	{name: "loss of rows", src: `@bench(N=128, V=8192) graph g(x: f32[N, V], t: i64[N]) -> (y: f32[]) { y = cross_entropy(x, t) }`,
		sizes: [][]int64{{1, 2}, {5, 40}, {300, 1023}, {512, 8192}}},
	{name: "softmax of row sums", src: `@bench(N=128, M=4096) graph g(x: f32[N, M]) -> (y: f32[N]) { y = softmax(sum(x, axis=1) / 64) }`,
		sizes: [][]int64{{1, 1}, {130, 100}, {512, 4096}}},
	{name: "log of a sum of exponentials", src: `@bench(N=128, M=2048) graph g(x: f32[N, M]) -> (y: f32[]) { y = logsumexp(logsumexp(x, axis=1), axis=0) }`,
		sizes: [][]int64{{1, 1}, {70, 100}, {1000, 2048}}},
	{name: "long rows", src: `@bench(N=2, M=65536) graph g(x: f64[N, M]) -> (y: f64[N], p: f64[N]) {
		y = sum(x, axis=1)
		p = max(x, axis=1) }`, sizes: [][]int64{{0, 9}, {3, 0}, {1, 33}, {5, 70000}, {4, 262144}}},
}

// severalAxes are folds over rows that are several axes of what they read, some beside what is made of each row. Sizes
// make either axis short, or empty.
var severalAxes = []row{
	{name: "bias of heads", src: `@bench(B=64, N=1024) graph g(x: bf16[3, B, 2, N, 16]) -> (y: f32[96]) {
		y[j: 96] = sum[b: B, n: N] f32(x[j / 32, b, j % 32 / 16, n, j % 16]) }`},
	{name: "squares", src: `graph g(x: bf16[B, N, 72]) -> (y: bf16[72]) { y = sum(x * x, axis=(0, 1)) }`},
	{name: "gradients of a norm", src: `graph g(dy: bf16[B, N, 264], x: bf16[B, N, 264], w: bf16[264]) -> (dx: bf16[B, N, 264], dw: f32[264], db: bf16[264]) {
		h = wide(x) * rsqrt(mean(wide(x) * x, axis=-1, keep=true) + 1e-6)
		g = wide(dy) * w
		dx = bf16(g - h * mean(g * h, axis=-1, keep=true))
		dw = sum(wide(dy) * h, axis=(0, 1))
		db = sum(dy, axis=(0, 1)) }`},
	{name: "a bias of rows that were joined", src: `@bench(B=64, N=1024) graph g(x: f32[B * N, 136], z: f32[B, N, 136]) -> (y: f32[B, N, 136], s: f32[136]) {
		y = reshape(x, B, N, 136) * softmax(z)
		s = sum(y, axis=(0, 1)) }`},
}

// foldFamilies are folds that many blocks share: down columns that lie across memory, and over
// everything.
func foldFamilies() []family {
	turns := inTurn(false, "sm_90a", "sm_90a", "sm_80")
	links := [][]int64{{33795, 3}, {33795, 40}, {260, 8452}, {260, 17001}}
	return []family{
		{name: "chains", rows: chains, plan: chained, compile: turns, on: []pass{
			{engine: "gpu", most: 1 << 23}, {engine: "cpu", most: 1 << 22},
			{engine: "sm_90a", most: 1 << 15, sim: simtest.Config{Order: simtest.Order{Races: true}}},
			{engine: "sm_80", most: 1 << 15, sim: simtest.Config{Order: simtest.Order{Backwards: true}}},
			// of one strip of rows, and of as many as have one chain each
			{engine: "sm_90a", most: 1 << 23, sizes: links, rows: []string{"sum"}},
		}},
		{name: "shared columns", rows: shared, plan: sharesColumns, variants: all, compile: turns,
			on: []pass{{engine: "gpu", most: 1 << 22}, {engine: "cpu", most: 1 << 22}}},
		{name: "slabs", rows: slabs, compile: turns},
		{name: "several axes", rows: severalAxes, symbols: []string{"B", "N"}, compile: turns,
			sizes: [][]int64{{0, 5}, {5, 0}, {1, 1}, {3, 67}, {70, 33}, {2, 700}}, on: []pass{
				{engine: "gpu"}, {engine: "cpu", most: 1 << 21},
				{engine: "sm_90a", most: 1 << 19, sim: simtest.Config{Order: simtest.Order{Races: true}}}, {engine: "sm_80", most: 1 << 19}}},
		{name: "last blocks", rows: lastBlockRows, plan: lastBlocks, planned: []string{"", "sm_90a", "sm_80"}, variants: all,
			on: []pass{{engine: "gpu", most: 1 << 21}, {engine: "cpu", most: 1 << 21}}},
	}
}

func chained(p *ir.Plan) bool {
	return slices.ContainsFunc(p.Kernels, func(k *ir.Kernel) bool { return k.Variants[0].Schedule.Chain > 0 })
}

func sharesColumns(p *ir.Plan) bool {
	return slices.ContainsFunc(p.Kernels, func(k *ir.Kernel) bool {
		s := k.Variants[0].Schedule
		return s.Mapping == ir.FlatMapping && s.ColThreads >= 32
	})
}

func lastBlocks(p *ir.Plan) bool {
	return slices.ContainsFunc(p.Kernels, func(k *ir.Kernel) bool { return k.LastBlock != nil })
}
