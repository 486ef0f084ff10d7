package conformance

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/simtest"
	"github.com/fusec/fusec/runtime/tensor"
)

// histogramGraph folds columns into rows few of which share a key.
const histogramGraph = `@bench(K=1048576, V=1024, D=3) graph g(at: i32[K], m: bool[K], x: f32[K], h: bf16[K, D], y0: f32[V]) ->
        (n: i64[V], added: f32[V], least: f32[V], last: i64[V], half: bf16[V, D]) {
    n = bincount(at, V)
    added = index_add(y0, at, x)
    least[v: V] = min[k: K where (at[k] == v) & m[k]] x[k]
    last[v: V] = argmax[k: K where at[k] == v] x[k]
    s[v: V, d: D] = sum[k: K where at[k] == v] f32(h[k, d]) * (y0[v] + 1)
    c[v: V] = sum[k: K where at[k] == v] f32(1)
    half = bf16(s / max(c, 1)[:, none])
}`

// TestHistogramsOnGPU compares with plain loops, in numbers whose sums are exact: one
// chunk and many, one tile of rows and many, tiles of more rows where there are most.
func TestHistogramsOnGPU(t *testing.T) {
	mustEnd(t)
	_, f := loaded(t, openGPU(t, runtime.Options{}), histogramGraph)
	for _, s := range [][3]int{{50257, 1 << 20, 1}, {20000, 70001, 5}, {270001, 9000, 1}, {1000, 5000, 31}, {200, 1023, 2}, {127, 4097, 1}} {
		for name, key := range scatterKeys {
			t.Run(fmt.Sprint(s, name), func(t *testing.T) { compareHistogram(t, f, s[0], s[1], s[2], key) })
		}
	}
}

// TestHistograms does so for few columns on simulated devices, which look for races.
func TestHistograms(t *testing.T) {
	t.Parallel()
	for i, order := range []simtest.Order{{Backwards: true, Races: true}, {Early: true}} {
		dev := openSimulated(t, simtest.Config{Arch: []string{"sm_90a", "sm_80"}[i], Order: order})
		_, f := loaded(t, dev, histogramGraph)
		s := [][3]int{{3000, 1500, 1}, {3000, 701, 2}}[i]
		for _, name := range []string{"any", "few", "one"} {
			t.Run(fmt.Sprint(dev.Arch(), s, name), func(t *testing.T) { compareHistogram(t, f, s[0], s[1], s[2], scatterKeys[name]) })
		}
	}
}

func compareHistogram(t *testing.T, f *runtime.Function, rows, columns, lanes int, key func(k, rows int) int) {
	t.Helper()
	at, m, x := make([]int32, columns), make([]bool, columns), make([]float32, columns)
	wide, y0 := make([]float32, columns*lanes), make([]float32, rows)
	for k := range at {
		at[k], m[k], x[k] = int32(key(k, rows)), k%3 != 0, float32(k*37%41-20)
		for d := range lanes {
			wide[k*lanes+d] = float32((k+d*5)%9 - 4)
		}
	}
	for i := range y0 {
		y0[i] = float32(i % 9)
	}
	h, err := tensor.FromFloats(ir.BF16, wide, columns, lanes)
	require.NoError(t, err)
	got, err := f.Call(context.Background(), runtime.Args{"at": slice(t, at, columns), "m": slice(t, m, columns),
		"x": slice(t, x, columns), "h": h, "y0": slice(t, y0, rows)})
	require.NoError(t, err)

	want := histogramLoops(at, m, x, y0)
	sum := make([]float64, rows*lanes)
	for k, to := range at {
		if to >= 0 && int(to) < rows {
			for d := range lanes {
				sum[int(to)*lanes+d] += float64(wide[k*lanes+d] * (y0[to] + 1))
			}
		}
	}
	for name, want := range want {
		for i, v := range numbers(got[name]) {
			if v != want[i] {
				t.Fatalf("%s[%d] of %d rows is %v, not %v", name, i, rows, v, want[i])
			}
		}
	}
	for i, v := range got["half"].Floats() {
		mean := sum[i] / max(want["n"][i/lanes], 1)
		if math.Abs(v-mean) > math.Abs(mean)/256 {
			t.Fatalf("half[%d] is %v, not %v", i, v, mean)
		}
	}
}

// histogramLoops is the results of histogramGraph of one value a row.
func histogramLoops(at []int32, m []bool, x, y0 []float32) map[string][]float64 {
	rows := len(y0)
	n, least, last := make([]float64, rows), make([]float64, rows), make([]float64, rows)
	added, found := floats64(y0), make([]bool, rows)
	for i := range least {
		least[i] = math.Inf(1)
	}
	for k, to := range at {
		if to < 0 || int(to) >= rows {
			continue
		}
		v := float64(x[k])
		n[to]++
		added[to] += v
		if m[k] {
			least[to] = min(least[to], v)
		}
		if !found[to] || v > float64(x[int(last[to])]) {
			found[to], last[to] = true, float64(k)
		}
	}
	return map[string][]float64{"n": n, "added": added, "least": least, "last": last}
}
