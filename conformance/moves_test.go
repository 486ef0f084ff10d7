package conformance

import (
	"strconv"

	"github.com/fusec/fusec/runtime/simtest"
)

// flatKernels are pointwise kernels whose last vector may be a part of one, of elements of
// several sizes, and gathers of such elements at places that may be outside.
var flatKernels = []row{
	{name: "1", src: "graph g(x: bf16[N], y: bf16[N]) -> (z: bf16[N]) {\n    z = x * y + x\n}", sizes: [][]int64{{1}, {7}, {8}, {9}, {1023}, {1025}}},
	{name: "2", src: "graph g(x: f16[N, M], y: f32[N, M]) -> (z: f16[N, M], w: f32[N, M]) {\n    w = gelu_tanh(f32(x) + y)\n    z = f16(w) * x\n}", sizes: [][]int64{{3, 5}, {16, 8}, {31, 33}}},
	{name: "3", src: "graph g(x: i8[N], y: bool[N]) -> (z: i8[N]) {\n    z = where(y, x, i8(3))\n}", sizes: [][]int64{{15}, {16}, {4097}}},
	{name: "4", src: "graph g(x: bf16[N, M], b: bf16[M]) -> (z: bf16[N, M]) {\n    z = x + b\n}", sizes: [][]int64{{5, 24}, {5, 23}}},
	{name: "5", src: "graph g(at: i64[N], table: bf16[V, D], w: bf16[D]) -> (y: bf16[N, D]) {\n    y = embedding(at, table) * w\n}", sizes: [][]int64{{24, 70, 9}, {16, 1, 5}, {23, 70, 9}}},
	{name: "6", src: "graph g(at: i32[N], table: i8[V, D]) -> (y: i8[N, D]) {\n    y[i, j] = table[i64(at[i]) * 2 - 1, j] else 5\n}", sizes: [][]int64{{32, 70, 9}, {17, 33, 4}}},
}

// turnedReads are kernels that read tensors across the range in which they write: elements of
// one size, of several, two tensors, ranges that are left over, and a batch.
var turnedReads = []string{
	"graph g(x: f32[N, M]) -> (y: f32[M, N]) {\n    y = transpose(x, 0, 1)\n}",
	"graph g(x: bf16[N, M]) -> (y: bf16[M, N]) {\n    y = transpose(x, 0, 1)\n}",
	"graph g(x: i8[N, M]) -> (y: i8[M, N]) {\n    y = transpose(x, 0, 1)\n}",
	"graph g(x: f64[N, M]) -> (y: f64[M, N]) {\n    y = transpose(x, 0, 1)\n}",
	"graph g(x: bf16[N, M], z: f32[N, M], w: f16[M, N]) -> (y: f32[M, N]) {\n" +
		"    y = f32(transpose(x, 0, 1)) * transpose(z, 0, 1) + f32(w)\n}",
	"graph g(x: f32[3, N, M]) -> (y: f32[3, M, N]) {\n    y = transpose(x, 1, 2) + 1\n}",
}

// columnScans are scans along an axis that memory does not run along: both ways, of elements of
// several sizes, of products of two tensors, of sums of scans.
var columnScans = []string{
	"graph g(x: f32[N, M]) -> (y: f32[N, M]) {\n    y = cumsum(x, axis=0)\n}",
	"graph g(x: bf16[N, M]) -> (y: bf16[N, M]) {\n    y = cumsum(x, axis=0, reverse=true, exclusive=true)\n}",
	"graph g(x: i8[N, M]) -> (y: i64[N, M]) {\n    y = cumsum(i64(x), axis=0)\n}",
	"graph g(x: f64[2, N, M]) -> (y: f64[2, N, M]) {\n    y = cummax(x, axis=1)\n}",
	"graph g(x: bf16[N, M], z: f32[N, M], w: f32[M]) -> (y: f32[N, M], t: f32[N, M]) {\n" +
		"    t = cumsum(f32(x) * z + w, axis=0)\n    y = cumsum(t * 0.01, axis=0) - z\n}",
}

// moveFamilies are what is done to single elements: pointwise kernels, turned tensors, and scans along
// an axis that memory does not run along.
func moveFamilies() []family {
	inOrder := []pass{{engine: "sm_90a"}, {engine: "sm_80"}}
	turned := []pass{{engine: "sm_90a", sim: simtest.Config{Order: simtest.Order{Races: true}}}}
	return []family{
		{name: "pointwise", rows: flatKernels, on: inOrder},
		// whole tiles, whole vectors and what is left of both
		{name: "turned reads", rows: numbered(turnedReads), on: turned, variants: all, sizes: [][]int64{{64, 128}, {72, 136}, {70, 131}, {129, 17}, {24, 66}}},
		// fewer columns than a stage, than all stages, and more; rows of whole vectors, and what is left
		{name: "column scans", rows: numbered(columnScans), on: races(nil), sizes: [][]int64{{1, 8}, {7, 64}, {130, 72}, {300, 260}, {33, 31}}},
		// whole vectors and parts of them
		{name: "nothing read", rows: numbered(nothingRead), on: []pass{{engine: "cpu"}, {engine: "sm_90a"}, {engine: "sm_80"}}, sizes: [][]int64{{7, 64}, {33, 131}}},
	}
}

// nothingRead are kernels of each kind that read nothing of memory, or not what they fold, scan or order:
// what is brought for later columns and rows is then nothing at all.
var nothingRead = []string{
	"graph g(x: f32[N, M]) -> (y: f32[N, M]) { y = cumsum(f32(iota(N) % 7)[:, none] + f32(iota(M) % 3), axis=0) }",
	"graph g(x: f32[N, M]) -> (y: f32[N, M]) { y = cumsum(f32(iota(N) % 7)[:, none] - f32(iota(M) % 3), axis=0, reverse=true) + x }",
	"graph g(x: f32[N, M]) -> (y: f32[N, M]) { y = cummax(f32(iota(N) % 7)[:, none] * f32(iota(M) % 5), axis=1) }",
	"graph g(x: f32[N, M]) -> (y: f32[M], z: f32[N]) { t = f32(iota(N) % 7)[:, none] * f32(iota(M) % 5); y = sum(t, axis=0); z = max(t, axis=1) }",
	"graph g(x: f32[N, M]) -> (y: f32[N, M]) { y = softmax(f32(iota(N) % 7)[:, none] * f32(iota(M) % 5)) }",
	"graph g(x: f32[N, M]) -> (y: i64[N, M]) { y = argsort((iota(N)[:, none] + iota(M)) % 5, axis=1) }",
	"graph g(x: f32[N, M]) -> (y: f32[N, M], z: f32[N, M]) { y[i: N, j: M] = f32(i * 3 - j); z = y * 2 + x }",
	"graph g(x: f32[N, M]) -> (y: i64[5]) { y[i: 5] = sum[k: N where k % 5 == i] k }",
}

// numbered are rows without names.
func numbered(programs []string) (out []row) {
	for i, src := range programs {
		out = append(out, row{name: strconv.Itoa(i + 1), src: src})
	}
	return out
}
