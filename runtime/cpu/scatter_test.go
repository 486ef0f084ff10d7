package cpu_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fusec/fusec/fuse"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp"
	"github.com/fusec/fusec/parser"
	"github.com/fusec/fusec/runtime/cpu"
)

// scatters are programs whose folds take the columns that go to their row: with lanes
// that share the keys, few of them or none.
var scatters = []struct{ name, src string }{
	{"rows", `graph g(z: bool[V], at: i32[K], x: f32[K, D]) -> (y: f32[V, D]) { y[v: V, d: D] = sum[k: K where at[k] == v] x[k, d] }`},
	{"half", `graph g(y0: f16[V, D], at: i64[K], x: f16[K, D]) -> (y: f16[V, D]) { y = index_add(y0, at, x) }`},
	{"double", `graph g(y0: f64[V, D], at: u8[K], x: f64[K, D]) -> (y: f64[V, D]) { y = index_add(y0, at, x) }`},
	{"integers", `graph g(y0: i32[V, D], at: i64[K], x: i32[K, D]) -> (y: i32[V, D]) { y[v: V, d: D] = i32(sum[k: K where at[k] == v] x[k, d]) }`},
	{"segments", `graph g(y0: f32[V], at: i32[K], x: f32[K]) -> (y: f32[V]) { y = scatter_add(y0, at, x) }`},
	{"batched", `graph g(y0: f32[D, V], at: i32[D, K], x: f32[D, K]) -> (y: f32[D, V]) { y = scatter_add(y0, at, x) }`},
	{"batched rows", `graph g(z: bool[V], at: i32[3, K], x: f32[3, K, D]) -> (y: f32[3, V, D]) {
		y[b: 3, v: V, d: D] = sum[k: K where at[b, k] == v] x[b, k, d] }`},
	{"where", `graph g(z: bool[V], at: i32[K], x: f32[K]) -> (y: f32[V]) { y[v: V] = sum[k: K] where(at[k] == v, x[k], 0) }`},
	{"histogram", `graph g(z: bool[V], at: i32[K]) -> (y: i64[V]) { y = bincount(at, dim(z, 0)) }`},
	{"mean", `graph g(z: bool[V], at: i32[K], x: f32[K, D]) -> (y: f32[V, D]) {
		s[v: V, d: D] = sum[k: K where at[k] == v] x[k, d]
		n[v: V] = sum[k: K where at[k] == v] f32(1)
		y = s / max(n, 1)[:, none] }`},
	{"largest", `graph g(z: bool[V], at: i32[K], m: bool[K], x: f32[K, D]) -> (y: f32[V, D]) {
		y[v: V, d: D] = max[k: K where (at[k] == v) & m[k]] x[k, d] }`},
	{"first", `graph g(z: bool[V], at: i32[K], x: f32[K, D]) -> (y: i64[V, D]) {
		y[v: V, d: D] = argmax[k: K where at[k] == v] x[k, d] }`},
	{"first of scalars", `graph g(z: bool[V], at: i32[K], x: i16[K]) -> (y: i64[V]) { y[v: V] = argmin[k: K where at[k] == v] x[k] }`},
	{"two columns", `graph g(z: bool[V], at: i32[3, K], x: f32[3, K, D]) -> (y: f32[V, D]) {
		y[v: V, d: D] = sum[j: 3, k: K where at[j, k] == v] x[j, k, d] }`},
	{"of the place", `graph g(w: f32[V, K], at: i32[K], x: f32[K]) -> (y: f32[V]) {
		y[v: V] = sum[k: K where at[k] == v] x[k] * w[v, k] }`},
	{"then computed", `graph g(b: f32[V], at: i32[K], x: f32[K]) -> (y: f32[V], z: f32[V]) {
		s[v: V] = sum[k: K where at[k] == v] x[k]
		y = s * 2 + b
		z = exp(-s * s) }`},
}

// Scatters at odd sizes, of no rows, columns and lanes, with keys beyond the rows on
// either side, and values that are no numbers: the engine gives what the interpreter
// does, to the last bit where sums are exact.
func TestScatters(t *testing.T) {
	sizes := []map[string]int64{{"V": 0, "K": 7, "D": 3}, {"V": 5, "K": 0, "D": 33}, {"V": 7, "K": 3, "D": 1}, {"V": 1, "K": 17000, "D": 1},
		{"V": 131, "K": 1031, "D": 3}, {"V": 257, "K": 251, "D": 37}, {"V": 9, "K": 131, "D": 1025}, {"V": 5, "K": 11, "D": 0}}
	most := 4 // goroutines
	if testing.Short() {
		sizes, most = []map[string]int64{{"V": 131, "K": 131, "D": 3}, {"V": 37, "K": 451, "D": 35}}, 2
	}
	for _, c := range scatters {
		for _, size := range sizes {
			t.Run(fmt.Sprint(c.name, size), func(t *testing.T) {
				g := parseGraph(t, c.src)
				in := scatterInputs(g, size, func(i int) float64 { return float64(i*i%257-128) / 8 })
				for i, v := range g.Inputs {
					if x := in[i]; v.Name == "x" && v.Type.IsFloat() && len(x.F) > 9 {
						x.F[3], x.F[len(x.F)/2], x.F[len(x.F)-2] = math.NaN(), math.Inf(1), math.Inf(-1)
					}
				}
				want, err := interp.Run(g, in, interp.Options{})
				require.NoError(t, err)
				plan, symbols := planForCPU(t, g), bind(t, g, in)
				for threads := range most {
					for i, have := range execute(t, plan, symbols, in, threads+1) {
						assert.Equal(t, want[i].I, have.I)
						for at, w := range want[i].F {
							if h := have.F[at]; w != h && (w == w || h == h) && !closeTo(c.name, w, h) {
								require.Failf(t, "differs", "%d goroutines, element %d: want %v, have %v", threads+1, at, w, h)
							}
						}
					}
				}
			})
		}
	}
}

// Every column is taken once, however many there are: the numbers of keys and the sums of what goes to each are exact.
func TestScattersOfManyColumns(t *testing.T) {
	const places = 3
	for _, columns := range []int64{1<<16 - 1, 1 << 16, 1<<16 + 1, 3<<16 + 5} {
		g := parseGraph(t, `graph g(z: bool[V], at: i32[K], x: i32[K]) -> (n: i64[V], y: i32[V]) {
			n = bincount(at, dim(z, 0))
			y[v: V] = i32(sum[k: K where at[k] == v] x[k]) }`)
		in := scatterInputs(g, map[string]int64{"V": places, "K": columns}, func(i int) float64 { return float64(i % 1009) })
		number, sum := make([]int64, places), make([]int64, places)
		for k, at := range in[1].I {
			if 0 <= at && at < places {
				number[at]++
				sum[at] += in[2].I[k]
			}
		}
		have := execute(t, planForCPU(t, g), bind(t, g, in), in, 2)
		assert.Equal(t, number, have[0].I, "%d columns", columns)
		assert.Equal(t, sum, have[1].I, "%d columns", columns)
	}
}

// closeTo allows what is computed of a sum a rounding or two.
func closeTo(name string, want, have float64) bool {
	rounded := name == "mean" || name == "then computed" || name == "of the place"
	return rounded && math.Abs(want-have) <= 4*ir.F32.Info().Epsilon*max(1, math.Abs(want))
}

// Terms are added in the order of the columns: in strict numerics every sum is that of the
// interpreter, which rounds each.
func TestScattersAddInOrder(t *testing.T) {
	for _, c := range scatters[:8] { // a mean rounds its quotient in another type
		t.Run(c.name, func(t *testing.T) {
			g := parseGraph(t, "@strict "+c.src)
			for _, size := range []map[string]int64{{"V": 67, "K": 253, "D": 3}, {"V": 67, "K": 253, "D": 35}} {
				in := scatterInputs(g, size, func(i int) float64 { return math.Sin(float64(i)) * math.Exp(math.Cos(float64(7*i))*9) })
				want, err := interp.Run(g, in, interp.Options{Mode: interp.Strict})
				require.NoError(t, err)
				have := execute(t, planForCPU(t, g), bind(t, g, in), in, 3)
				assert.Equal(t, want[0].Bytes(), have[0].Bytes())
			}
		})
	}
}

// Scatters of any sizes and keys are the interpreter's.
func TestScattersRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom(scatters).Draw(t, "program")
		file, err := parser.Parse("g.fuse", []byte(c.src), parser.Options{})
		require.NoError(t, err)
		size := map[string]int64{"V": rapid.Int64Range(0, 300).Draw(t, "V"), "K": rapid.Int64Range(0, 300).Draw(t, "K"),
			"D": rapid.Int64Range(0, 70).Draw(t, "D")}
		seed := rapid.IntRange(1, 1000).Draw(t, "seed")
		g := file.Graphs[0]
		checkBoth(t, g, scatterInputs(g, size, func(i int) float64 { return float64((i*seed+seed)%331 - 100) }))
	})
}

func parseGraph(t tester, src string) *ir.Graph {
	t.Helper()
	file, err := parser.Parse("g.fuse", []byte(src), parser.Options{})
	require.NoError(t, err, src)
	return file.Graphs[0]
}

// scatterInputs makes inputs of the given sizes; keys go from -3 to V + 3.
func scatterInputs(g *ir.Graph, sizes map[string]int64, value func(i int) float64) []*interp.Tensor {
	var out []*interp.Tensor
	for _, v := range g.Inputs {
		shape := []int{}
		for _, e := range v.Shape() {
			n, _ := ir.EvalSize(e, sizes)
			shape = append(shape, int(n))
		}
		x := interp.New(v.Type, shape...)
		for i := range x.F {
			x.F[i] = value(i)
		}
		for i := range x.I {
			x.I[i] = int64(value(i))
			if v.Name == "at" {
				x.I[i] = (int64(i)*2654435761>>7)%(sizes["V"]+7) - 3
			}
		}
		out = append(out, interp.FromBytes(v.Type, shape, x.Bytes()))
	}
	return out
}

// The work of a scatter does not grow with the product of rows and columns.
func BenchmarkScatter(b *testing.B) {
	for _, c := range []struct {
		name, src string
		sizes     map[string]int64
	}{
		{"embedding-gradient", scatters[0].src, map[string]int64{"V": 10_000, "K": 2048, "D": 256}},
		{"segment-sum", scatters[4].src, map[string]int64{"V": 1000, "K": 1 << 20}},
		{"histogram", scatters[7].src, map[string]int64{"V": 256, "K": 1 << 20}},
		{"scatter-add", scatters[5].src, map[string]int64{"V": 1000, "K": 10_000, "D": 64}},
	} {
		b.Run(c.name, func(b *testing.B) {
			file, err := parser.Parse("g.fuse", []byte(c.src), parser.Options{})
			require.NoError(b, err)
			g := file.Graphs[0]
			in := scatterInputs(g, c.sizes, func(i int) float64 { return float64(i % 17) })
			benchmarkPlan(b, g, in)
		})
	}
}

// benchmarkPlan times runs of a graph's plan on all cores.
func benchmarkPlan(b *testing.B, g *ir.Graph, in []*interp.Tensor) {
	device := ir.Devices()[0]
	device.Name, device.Arch = "CPU", ""
	plan, err := fuse.Plan(g, fuse.Options{Device: device})
	require.NoError(b, err)
	shapes := make([][]int, len(in))
	inputs := map[string][]byte{}
	for i, x := range in {
		shapes[i], inputs[g.Inputs[i].Name] = x.Shape, x.Bytes()
	}
	symbols, err := ir.BindGraph(g, shapes)
	require.NoError(b, err)
	var buffers [][]byte
	for _, buf := range plan.Buffers {
		size := buf.Type.Size()
		for _, e := range buf.Shape {
			n, _ := ir.EvalSize(e, symbols)
			size *= int(n)
		}
		switch buf.Kind {
		case ir.InputBuffer:
			buffers = append(buffers, inputs[buf.Value.Name])
		case ir.OutputBuffer:
			buffers = append(buffers, make([]byte, size))
		}
	}
	program := cpu.New(plan, cpu.Options{})
	for b.Loop() {
		require.NoError(b, program.Run(context.Background(), symbols, buffers))
	}
}
