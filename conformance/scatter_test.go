package conformance

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/simtest"
	"github.com/fusec/fusec/runtime/tensor"
)

// scatterGraph folds the same columns into rows in several ways.
const scatterGraph = `graph g(at: i32[K], m: bool[K], x: f32[K, D], h: bf16[K, D], y0: f32[V, D]) ->
        (added: f32[V, D], most: f32[V, D], last: i64[V, D], n: i64[V], odd: f32[V], half: bf16[V, D]) {
    added = index_add(y0, at, x)
    most[v: V, d: D] = max[k: K where (at[k] == v) & m[k]] x[k, d]
    last[v: V, d: D] = argmax[k: K where at[k] == v] x[k, d]
    n = bincount(at, V)
    odd[v: V] = sum[k: K where at[k] == v] f32(k % 2)
    s[v: V, d: D] = sum[k: K where at[k] == v] f32(h[k, d])
    c[v: V] = sum[k: K where at[k] == v] f32(1)
    half = bf16(s / max(c, 1)[:, none])
}`

// scatterChunks is the same for so many columns a place that they are cut into chunks.
const scatterChunks = `@bench(K=1048576, V=256, D=64) ` + scatterGraph

// scatterFamilies are folds into rows that the columns name. What they give is compared with plain loops.
func scatterFamilies() []family {
	scatter := onAll(testing.Short(), "sm_90a", "sm_80")
	histogram := onAll(true, "sm_90a", "sm_80") // the others are as those above
	for i := range scatter {
		scatter[i].short, histogram[i].short = true, true
	}
	return []family{
		{name: "scatter", rows: []row{{name: "scatter", src: scatterGraph}, {name: "chunks", src: `@bench(K=1048576, V=256, D=64)
            graph g(at: i32[K], m: bool[K], x: f32[K, D], h: bf16[K, D], y0: f32[V, D]) -> (added: f32[V, D], most: bf16[D, V]) {
            added = index_add(y0, at, x)
            most[d: D, v: V] = max[k: K where (at[k] == v) & m[k]] h[k, d] }`}}, variants: all, compile: scatter},
		{name: "histogram", rows: []row{{name: "histogram", src: histogramGraph}}, variants: all, compile: histogram},
		{name: "scans", rows: []row{{name: "scans", src: longScans}}, variants: all},
		scatterReadsFamily(),
		scatterLanesFamily(),
	}
}

// scatterKeys are where columns go: beyond the rows on either side, all to one row, most
// to few, more than a block lists at a time, in order.
var scatterKeys = map[string]func(k, rows int) int{
	"any":     func(k, rows int) int { return (k*7919+k/3)%(rows+6) - 3 },
	"one":     func(_, rows int) int { return rows / 2 },
	"few":     func(k, rows int) int { return (k % 5) * (k % 2) * (rows / 5) },
	"a third": func(k, rows int) int { return (k % 3 / 2) * (k * 31 % rows) },
	"sorted":  func(k, rows int) int { return k / 4 % rows },
	"none":    func(k, _ int) int { return -1 - k },
}

// TestScattersOnGPU compares with plain loops, in numbers whose sums are exact: tiles of
// every number of places, and at last too little for any.
func TestScattersOnGPU(t *testing.T) {
	mustEnd(t)
	dev := openGPU(t, runtime.Options{})
	_, f := loaded(t, dev, scatterGraph)
	for _, s := range [][3]int{{5000, 3000, 33}, {9000, 9001, 64}, {70000, 4001, 4}, {70001, 30000, 1}, {1025, 5000, 1300}, {300, 20000, 5}, {200, 20000, 40}, {20000, 131072, 127}} {
		for name, key := range scatterKeys {
			t.Run(fmt.Sprint(s, name), func(t *testing.T) { compareScatter(t, f, s[0], s[1], s[2], key) })
		}
	}
	_, f = loaded(t, dev, scatterChunks)
	for _, s := range [][3]int{{256, 262144, 64}, {9, 100003, 33}, {1000, 300000, 40}, {300, 2047, 129}} {
		for name, key := range scatterKeys {
			t.Run(fmt.Sprint("chunks", s, name), func(t *testing.T) { compareScatter(t, f, s[0], s[1], s[2], key) })
		}
	}
}

// TestScatterChunks does so on simulated devices: one chunk, and several, the last with fewer columns.
func TestScatterChunks(t *testing.T) {
	t.Parallel()
	for i, order := range []simtest.Order{{Backwards: true, Races: true}, {Early: true}} {
		dev := openSimulated(t, simtest.Config{Arch: []string{"sm_90a", "sm_80"}[i], Order: order})
		_, f := loaded(t, dev, scatterChunks)
		for _, c := range [][]struct {
			size [3]int
			key  string
		}{
			{{[3]int{9, 4100, 33}, "any"}, {[3]int{300, 3001, 32}, "few"}},
			{{[3]int{70, 4097, 36}, "one"}, {[3]int{17, 1000, 64}, "a third"}},
		}[i] {
			t.Run(fmt.Sprint(dev.Arch(), c.size, c.key), func(t *testing.T) {
				compareScatter(t, f, c.size[0], c.size[1], c.size[2], scatterKeys[c.key])
			})
		}
	}
}

// TestScatters does so for few columns on simulated devices, which look for races: columns
// that blocks read at once, that they put in bins, and that they read as often as need be.
func TestScatters(t *testing.T) {
	t.Parallel()
	for i, order := range []simtest.Order{{Backwards: true, Races: true}, {Early: true}} {
		dev := openSimulated(t, simtest.Config{Arch: []string{"sm_90a", "sm_80"}[i], Order: order})
		_, f := loaded(t, dev, scatterGraph)
		for _, c := range [][]struct {
			size [3]int
			keys []string
		}{
			{{[3]int{70, 1900, 33}, []string{"any", "one"}}, {[3]int{140, 4200, 33}, []string{"few"}}, {[3]int{17000, 4200, 2}, []string{"any", "few"}}},
			{{[3]int{140, 900, 36}, []string{"any"}}, {[3]int{135, 4195, 36}, []string{"one", "any"}}, {[3]int{30, 4200, 64}, []string{"any", "one"}}},
		}[i] {
			if i == 1 && !inFull() {
				c.keys = c.keys[:1]
			}
			for _, name := range c.keys {
				t.Run(fmt.Sprint(dev.Arch(), c.size, name), func(t *testing.T) {
					compareScatter(t, f, c.size[0], c.size[1], c.size[2], scatterKeys[name])
				})
			}
		}
	}
}

func compareScatter(t *testing.T, f *runtime.Function, rows, columns, lanes int, key func(k, rows int) int) {
	t.Helper()
	at, m := make([]int32, columns), make([]bool, columns)
	x, y0 := make([]float32, columns*lanes), make([]float32, rows*lanes)
	for k := range at {
		at[k], m[k] = int32(key(k, rows)), k%3 != 0
	}
	for i := range x {
		x[i] = float32((i*37+i/lanes*11)%41 - 20)
	}
	for i := range y0 {
		y0[i] = float32(i % 9)
	}
	h, err := tensor.FromFloats(ir.BF16, x, columns, lanes)
	require.NoError(t, err)
	args := runtime.Args{"at": slice(t, at, columns), "m": slice(t, m, columns), "x": slice(t, x, columns, lanes), "h": h,
		"y0": slice(t, y0, rows, lanes)}
	got, err := f.Call(context.Background(), args)
	require.NoError(t, err)

	added, most, last := floats64(y0), make([]float64, rows*lanes), make([]float64, rows*lanes)
	sum, n, odd := make([]float64, rows*lanes), make([]float64, rows), make([]float64, rows)
	found := make([]bool, rows*lanes)
	for i := range most {
		most[i] = math.Inf(-1)
	}
	for k, to := range at {
		if to < 0 || int(to) >= rows {
			continue
		}
		n[to]++
		odd[to] += float64(k % 2)
		for d := range lanes {
			i, v := int(to)*lanes+d, float64(x[k*lanes+d])
			added[i], sum[i] = added[i]+v, sum[i]+v
			if m[k] {
				most[i] = max(most[i], v)
			}
			if !found[i] || v > float64(x[int(last[i])*lanes+d]) {
				found[i], last[i] = true, float64(k)
			}
		}
	}
	for i := range sum {
		sum[i] /= max(n[i/lanes], 1)
	}
	for name, want := range map[string][]float64{"added": added, "most": most, "last": last, "n": n, "odd": odd} {
		for i, v := range numbers(got[name]) {
			if v != want[i] {
				t.Fatalf("%s[%d] of %d rows is %v, not %v", name, i, rows, v, want[i])
			}
		}
	}
	for i, v := range got["half"].Floats() {
		if math.Abs(v-sum[i]) > math.Abs(sum[i])/256 {
			t.Fatalf("half[%d] is %v, not %v", i, v, sum[i])
		}
	}
}

func slice[T tensor.Element](t *testing.T, values []T, shape ...int) *tensor.Tensor {
	t.Helper()
	x, err := tensor.FromSlice(values, shape...)
	require.NoError(t, err)
	return x
}

// numbers is the elements of a tensor of any type.
func numbers(x *tensor.Tensor) []float64 {
	if x.DType.IsFloat() {
		return x.Floats()
	}
	ints := x.Ints()
	out := make([]float64, len(ints))
	for i, v := range ints {
		out[i] = float64(v)
	}
	return out
}

func floats64(x []float32) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}

func TestIndicesBeyondWordsOnGPU(t *testing.T) { takeIndices(t, openGPU(t, runtime.Options{})) }

// TestIndicesBeyondWords: an index that offsets of 32 bits do not hold is outside,
// and not what its lower bits say.
func TestIndicesBeyondWords(t *testing.T) {
	takeIndices(t, openCPU(t))
}

func takeIndices(t *testing.T, dev *Engine) {
	t.Helper()
	_, f := loaded(t, dev, `graph g(at: i64[K], u: u32[K], table: f32[V]) -> (
		y: f32[K], z: f32[K], s: f32[V], here: i32[K, V], below: i32[K, V]) {
		here = i32(at[:, none] == iota(V))
		below = i32(iota(V) < at[:, none])
		y = embedding(at, table[:, none])[:, 0]
		z[k: K] = table[u[k]]
		s[v: V] = sum[k: K where at[k] == v] table[u[k]] }`)
	at := []int64{1, 1 << 32, 1<<32 + 1, -1 << 32, 1<<31 + 2, 1 << 62, -1 << 63, 3}
	u := []uint32{0, 1 << 31, 1<<31 + 1, 1<<32 - 1, 1<<32 - 3, 2, 3, 1}
	got, err := f.Call(context.Background(), runtime.Args{"at": slice(t, at, len(at)), "u": slice(t, u, len(u)),
		"table": slice(t, []float32{10, 11, 12, 13}, 4)})
	require.NoError(t, err)
	require.Equal(t, []float32{11, 0, 0, 0, 0, 0, 0, 13}, got["y"].Float32s())
	require.Equal(t, []float32{10, 0, 0, 0, 0, 12, 13, 11}, got["z"].Float32s())
	require.Equal(t, []float32{0, 10, 0, 11}, got["s"].Float32s())
	for k, at := range at {
		for v := range 4 {
			require.Equal(t, at == int64(v), got["here"].Ints()[4*k+v] == 1, "%d == %d", at, v)
			require.Equal(t, int64(v) < at, got["below"].Ints()[4*k+v] == 1, "%d < %d", v, at)
		}
	}
}

// TestScattersBySize: few columns are read at once, many by way of bins whose memory grows
// with columns and places alone, and what bins have no room for as often as need be.
func TestScattersBySize(t *testing.T) {
	p, err := fusec.CompileSource(fusec.Source{Name: "scatter.fuse", Text: []byte(`graph g(at: i64[N], x: bf16[N, D], z: bool[V]) -> (y: bf16[V, D]) {
		y[v: V, d: D] = sum[n: N where at[n] == v] x[n, d] }`)}, fusec.Options{Arch: "sm_90a"})
	require.NoError(t, err)
	program, err := p.CUDA()
	require.NoError(t, err)
	for _, c := range []struct {
		n, v, d int64
		want    ir.Mapping
	}{
		{1024, 1024, 256, ir.ScatterOnceMapping}, {4096, 100000, 1000, ir.ScatterOnceMapping},
		{4097, 1024, 256, ir.ScatterBinsMapping}, {131072, 131072, 1024, ir.ScatterBinsMapping},
		{5000, 1 << 24, 64, ir.ScatterBinsMapping}, {1 << 24, 1 << 20, 64, ir.ScatterBinsMapping},
		{131072, 1000, 1024, ir.ScatterMapping}, {1 << 20, 50257, 1, ir.ScatterBinsMapping},
		{1 << 20, 1024, 1, ir.HistogramMapping}, {100, 100, 8, ir.FlatMapping},
	} {
		sizes := map[string]int64{"N": c.n, "V": c.v, "D": c.d}
		assert.Equal(t, c.want, scheduleAt(t, p, sizes).Mapping, "%v", sizes)
		var symbols []int64
		for _, s := range program.Symbols {
			symbols = append(symbols, sizes[s])
		}
		for _, a := range program.Launches[0].Choose(symbols).Args {
			if a.Kind != ir.ArgTemp {
				continue
			}
			assert.Equal(t, ir.ScatterBinsMapping, c.want, "only bins need memory")
			bytes, ok := program.Temps[a.Index].Bytes.Eval(symbols)
			require.True(t, ok)
			assert.Positive(t, bytes)
			assert.LessOrEqual(t, bytes, 48*c.n+96*c.v+c.n*c.d/4, "%v", sizes) // an eighth of the columns beside their keys
		}
	}
}
