package conformance

import (
	"math"
	"slices"
	"strings"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/tensor"
)

// places are programs that find where the best of something stands: along memory and across it,
// of every type, over several ranges in both orders, of some elements only, and beside what goes
// through a row backwards.
var places = []row{
	{name: "rows", src: `graph g(x: f32[N, M]) -> (y: i64[N], z: i64[N], best: f32[N]) {
		y = argmax(x, axis=1)
		z = argmin(x, axis=1)
		best = max(x, axis=1) }`},
	{name: "halves", src: `graph g(x: bf16[N, M], w: f16[N, M]) -> (y: i64[N], z: i64[N]) {
		y = argmax(x, axis=1)
		z = argmin(f32(w) * 2, axis=1) }`},
	{name: "doubles", src: `graph g(x: f64[N, M]) -> (y: i64[N]) { y = argmin(x, axis=1) }`},
	{name: "words", src: `graph g(x: i32[N, M], w: i64[N, M]) -> (y: i64[N], z: i64[N], l: i64[N]) {
		y = argmax(x, axis=1)
		z = argmin(x, axis=1)
		l = argmin(w, axis=1) }`},
	{name: "bytes", src: `graph g(x: i8[N, M], w: u8[N, M], b: bool[N, M]) -> (y: i64[N], z: i64[N], t: i64[N]) {
		y = argmin(x, axis=1)
		z = argmax(w, axis=1)
		t = argmax(b, axis=1) }`},
	{name: "across", src: `graph g(x: f32[N, M]) -> (y: i64[M], z: i64[M]) {
		y = argmax(x, axis=0)
		z = argmin(x, axis=0) }`},
	{name: "some", src: `graph g(x: f32[N, M], on: bool[M]) -> (y: i64[N]) { y[n: N] = argmax[m: M where on[m]] x[n, m] }`},
	{name: "backwards", src: `graph g(x: f32[N, M]) -> (y: i64[N], c: f32[N, M]) {
		y = argmax(x, axis=1)
		c = cummax(x, axis=1, reverse=true) }`},
}

// placesInTwo are places over several ranges, in both orders.
var placesInTwo = []row{
	{name: "two ranges", src: `graph g(x: f32[K, N, M]) -> (y: i64[K], z: i64[K]) {
		y[k: K] = argmax[n: N, m: M] x[k, n, m]
		z[k: K] = argmax[m: M, n: N] x[k, n, m] }`},
}

// placesInChunks are places of long rows, each of which is cut into chunks that many blocks have.
var placesInChunks = []row{
	{name: "whole tensor", src: `@bench(N=4096, M=4096) graph g(x: f32[N, M], w: bf16[N, M]) -> (y: i64[], z: i64[], best: f32[]) {
		y = argmax(x)
		z = argmin(w)
		best = max(x) }`},
	{name: "few rows", src: `@bench(N=4, M=1000000) graph g(x: f32[N, M], w: i32[N, M]) -> (y: i64[N], z: i32[N]) {
		y = argmin(x, axis=1)
		z = i32(argmax(w, axis=1)) + 1 }`},
	{name: "few columns", src: `@bench(N=1000000, M=4) graph g(x: f32[N, M], w: i8[N, M]) -> (y: i64[M], z: i64[M]) {
		y = argmax(x, axis=0)
		z = argmin(w, axis=0) }`},
	{name: "of what is computed", src: `@bench(N=4, M=1000000) graph g(x: f32[N, M], w: f32[M]) -> (y: i64[N]) { y = argmax(x * w + 1, axis=1) }`},
	{name: "turned", src: `@bench(N=1000, M=5000) graph g(x: f32[N, M]) -> (y: i64[]) { y[] = argmax[m: M, n: N] x[n, m] }`},
}

// edges are rows in which it matters what beats what: by the row, equal elements, zeros of both
// signs, infinities alone and with others, NaN, and few different ones; numbers that are none of
// these elsewhere.
func edges(v *ir.Value, _ int, shape []int) (*tensor.Tensor, error) {
	last := max(1, shape[len(shape)-1])
	if !v.Type.IsFloat() {
		x, err := tensor.RandomInts(v.Type, 7, 0, 2, shape...)
		if err != nil {
			return nil, err
		}
		words, _ := tensor.View[int32](x)
		for i := range words {
			if i/last%2 == 0 && i%3 > 0 {
				words[i] = math.MinInt32
			}
		}
		longs, _ := tensor.View[int64](x)
		for i := range longs {
			if i/last%2 == 0 && i%3 > 0 {
				longs[i] = math.MaxInt64
			}
		}
		return x, nil
	}
	nan, inf, zero := math.NaN(), math.Inf(1), math.Copysign(0, -1)
	kinds := [][]float64{nil, {-inf}, {inf, -inf}, {zero, 0}, {1, nan, inf}, {-inf, -inf, -inf, -2, -inf, -inf, -inf}, {3}, {nan}, {-1, zero, -2, 0, -3}}
	wide, err := tensor.Random(ir.F64, 7, shape...)
	if err != nil {
		return nil, err
	}
	data, _ := tensor.View[float64](wide)
	for i := range data {
		if kind := kinds[i/last%len(kinds)]; kind != nil {
			data[i] = kind[i%len(kind)]
		}
	}
	return wide.Convert(v.Type)
}

// placeFamilies are the programs that find where the best stands, in rows of many lengths.
func placeFamilies() []family {
	of := func(name string, rows []row, n int64) family {
		lengths := func(all ...int64) (out [][]int64) {
			for _, m := range all {
				out = append(out, []int64{3, n, m})
			}
			return out
		}
		return family{name: name, rows: rows, symbols: []string{"K", "N", "M"}, fill: edges, exact: identical,
			on: append(races(lengths(1, 8, 33, 300, 1100, 2048, 4100)),
				pass{engine: "cpu", sizes: lengths(1, 33, 3000)},
				pass{engine: "gpu", sizes: lengths(1, 3, 8, 33, 250, 1000, 1024, 2048, 3000, 4096, 8192, 20001)})}
	}
	inChunks := of("places in chunks", placesInChunks, 11)
	inChunks.plan = func(p *ir.Plan) bool {
		return slices.ContainsFunc(p.Kernels, func(k *ir.Kernel) bool { return strings.HasSuffix(k.Name, "_best") })
	}
	inChunks.on = append(races([][]int64{{1, 3, 8192}, {1, 5, 3001}, {1, 9000, 3}, {1, 0, 5}, {1, 5, 0}, {1, 1, 1}}),
		pass{engine: "cpu", sizes: [][]int64{{1, 3, 20001}, {1, 20001, 3}, {1, 7, 9}, {1, 5, 0}}},
		pass{engine: "gpu", sizes: [][]int64{{1, 3, 20001}, {1, 20001, 3}, {1, 7, 9}, {1, 4, 1000000}, {1, 300001, 7}, {1, 2048, 4099}}})
	return []family{of("places", places, 11), of("places in two ranges", placesInTwo, 5), inChunks}
}
