package fusec

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/simtest"
	"github.com/fusec/fusec/runtime/tensor"
)

// places are programs that find where the best of something stands: along memory and across it,
// of every type, over several ranges in both orders, of some elements only, and beside what goes
// through a row backwards.
var places = []struct{ name, src string }{
	{"rows", `graph g(x: f32[N, M]) -> (y: i64[N], z: i64[N], best: f32[N]) {
		y = argmax(x, axis=1)
		z = argmin(x, axis=1)
		best = max(x, axis=1) }`},
	{"halves", `graph g(x: bf16[N, M], w: f16[N, M]) -> (y: i64[N], z: i64[N]) {
		y = argmax(x, axis=1)
		z = argmin(f32(w) * 2, axis=1) }`},
	{"doubles", `graph g(x: f64[N, M]) -> (y: i64[N]) { y = argmin(x, axis=1) }`},
	{"words", `graph g(x: i32[N, M], w: i64[N, M]) -> (y: i64[N], z: i64[N], l: i64[N]) {
		y = argmax(x, axis=1)
		z = argmin(x, axis=1)
		l = argmin(w, axis=1) }`},
	{"bytes", `graph g(x: i8[N, M], w: u8[N, M], b: bool[N, M]) -> (y: i64[N], z: i64[N], t: i64[N]) {
		y = argmin(x, axis=1)
		z = argmax(w, axis=1)
		t = argmax(b, axis=1) }`},
	{"across", `graph g(x: f32[N, M]) -> (y: i64[M], z: i64[M]) {
		y = argmax(x, axis=0)
		z = argmin(x, axis=0) }`},
	{"two ranges", `graph g(x: f32[K, N, M]) -> (y: i64[K], z: i64[K]) {
		y[k: K] = argmax[n: N, m: M] x[k, n, m]
		z[k: K] = argmax[m: M, n: N] x[k, n, m] }`},
	{"some", `graph g(x: f32[N, M], on: bool[M]) -> (y: i64[N]) { y[n: N] = argmax[m: M where on[m]] x[n, m] }`},
	{"backwards", `graph g(x: f32[N, M]) -> (y: i64[N], c: f32[N, M]) {
		y = argmax(x, axis=1)
		c = cummax(x, axis=1, reverse=true) }`},
}

// edges are rows in which it matters what beats what: by the row, equal elements, zeros of both
// signs, infinities alone and with others, NaN, and few different ones; numbers that are none of
// these elsewhere.
func edges(t *testing.T, dtype ir.DType, shape []int) *tensor.Tensor {
	t.Helper()
	last := max(1, shape[len(shape)-1])
	if !dtype.IsFloat() {
		x, err := tensor.RandomInts(dtype, 7, 0, 2, shape...)
		require.NoError(t, err)
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
		return x
	}
	nan, inf, zero := math.NaN(), math.Inf(1), math.Copysign(0, -1)
	kinds := [][]float64{nil, {-inf}, {inf, -inf}, {zero, 0}, {1, nan, inf}, {-inf, -inf, -inf, -2, -inf, -inf, -inf}, {3}, {nan}, {-1, zero, -2, 0, -3}}
	wide, err := tensor.Random(ir.F64, 7, shape...)
	require.NoError(t, err)
	data, ok := tensor.View[float64](wide)
	require.True(t, ok)
	for i := range data {
		if kind := kinds[i/last%len(kinds)]; kind != nil {
			data[i] = kind[i%len(kind)]
		}
	}
	x, err := wide.Convert(dtype)
	require.NoError(t, err)
	return x
}

// forPlaces compares each of the programs with the interpreter.
func forPlaces(t *testing.T, dev *runtime.Device, lengths []int64) {
	for _, c := range places {
		t.Run(c.name, func(t *testing.T) {
			p, f := loaded(t, dev, c.src)
			for _, m := range lengths {
				sizes := map[string]int64{"N": 11, "M": m}
				if c.name == "two ranges" {
					sizes = map[string]int64{"K": 3, "N": 5, "M": m}
				}
				t.Run(fmt.Sprint(m), func(t *testing.T) {
					shapes, err := f.Shapes(sizes)
					require.NoError(t, err)
					args := runtime.Args{}
					for _, v := range p.Graph().Inputs {
						args[v.Name] = edges(t, v.Type, shapes[v.Name])
					}
					r := interpreted(t, p.Graph(), args)
					got, err := f.Call(t.Context(), args)
					require.NoError(t, err)
					for i, o := range p.Graph().Outputs {
						diff, err := tensor.Compare(got[o.Name], r.want[i], tensor.Tolerance{})
						require.NoError(t, err)
						assert.True(t, diff.OK(), "%s: %v", o.Name, diff)
					}
				})
			}
		})
	}
}

func TestPlacesOnGPU(t *testing.T) {
	forPlaces(t, openGPU(t, runtime.Options{}), []int64{1, 3, 8, 33, 250, 1000, 1024, 2048, 3000, 4096, 8192, 20001})
}

func TestPlacesOnCPU(t *testing.T) { forPlaces(t, openCPU(t), []int64{1, 33, 3000}) }

func TestPlaces(t *testing.T) {
	for _, arch := range []string{"sm_90a", "sm_80"} {
		_, dev := openSimulated(t, simtest.Config{Arch: arch, Order: simtest.Order{Races: true}})
		t.Run(arch, func(t *testing.T) { forPlaces(t, dev, []int64{1, 8, 33, 300, 1100, 2048, 4100}) })
	}
}
