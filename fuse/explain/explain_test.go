package explain_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/fuse"
	"github.com/fusec/fusec/fuse/explain"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/parser"
)

func Explain(t *testing.T, src string, opts explain.Options) explain.Explanation {
	t.Helper()
	g, plan := planOf(t, src, opts.Device)
	return explain.Explain(g, plan, opts)
}

func planOf(t *testing.T, src string, d ir.Device) (*ir.Graph, *ir.Plan) {
	t.Helper()
	file, err := parser.Parse("p.fuse", []byte(src), parser.Options{})
	require.NoError(t, err)
	plan, err := fuse.Plan(file.Graphs[0], fuse.Options{Device: d})
	require.NoError(t, err)
	return file.Graphs[0], plan
}

// inFull says to draw as much as the environment variable asks for.
func inFull() bool { return os.Getenv("FUSEC_TEST_FULL") != "" }

const SoftmaxSource = `@bench(M=512)
graph softmax(x: bf16[N, M]) -> (y: bf16[N, M]) {
    m = max(x, axis=-1, keep=true)
    e = exp(x - m)
    y = e / sum(e, axis=-1, keep=true)
}
`

func TestExplainSizes(t *testing.T) {
	x := Explain(t, SoftmaxSource, explain.Options{Sizes: map[string]int64{"N": 64}})
	assert.Equal(t, map[string]int64{"N": 64, "M": 512}, x.Sizes, "a default fills in what is not given")
	require.Len(t, x.Kernels, 1)
	k := x.Kernels[0]
	assert.Equal(t, "softmax_y", k.Name)
	assert.Equal(t, []explain.RangeNote{{Name: "i", Extent: "N"}}, k.Rows)
	require.Len(t, k.Reads, 1)
	assert.Equal(t, int64(64*512*2), *k.Reads[0].Bytes, "x is counted once, however often it is read")
	assert.Equal(t, int64(64*512*2), *k.Written.Bytes)
	assert.Positive(t, *k.Seconds)
	require.NotNil(t, k.Class)
	assert.Equal(t, "row", k.Mapping)
	assert.Greater(t, len(k.Classes), 1)
}

// TestExplainStates: what is updated in place, and why the rest is not.
func TestExplainStates(t *testing.T) {
	x := Explain(t, "graph g(state a: f32[N], state b: f32[N]) -> () {\n    a = a + 1\n    b = flip(b, axis=0)\n}\n", explain.Options{})
	require.Len(t, x.States, 2)
	assert.Equal(t, explain.StateNote{Name: "a", InPlace: true}, x.States[0])
	assert.Equal(t, "b", x.States[1].Name)
	assert.Contains(t, x.States[1].Why, "reads other elements of b")
}

func TestExplainUnfused(t *testing.T) {
	x := Explain(t, SoftmaxSource, explain.Options{Sizes: map[string]int64{"N": 64}})
	// max, subtraction, exponential, sum, quotient.
	assert.Equal(t, 5, x.Unfused.Kernels)
	const matrix, row = 64 * 512 * 2, 64 * 2
	assert.Equal(t, int64(5*matrix+2*row), *x.Unfused.Read.Bytes)
	assert.Equal(t, int64(3*matrix+2*row), *x.Unfused.Written.Bytes)
	assert.Greater(t, *x.Unfused.Seconds, *x.Fused.Seconds)
}

func TestExplainLibraryCallIsOneOperation(t *testing.T) {
	src := "graph f(x: f32[N], b: f32[N]) -> (y: f32[N]) {\n    y = silu(x) * b\n}\n"
	x := Explain(t, src, explain.Options{})
	assert.Equal(t, 2, x.Unfused.Kernels, "silu and the product")
	assert.Nil(t, x.Unfused.Seconds, "N has no size")
	assert.Nil(t, x.Kernels[0].Read.Bytes)
	assert.Equal(t, "N * 8", x.Kernels[0].Read.Size)
	for _, op := range x.Kernels[0].Operations {
		assert.Equal(t, 2, op.Span.Start.Line)
	}
}

// A gather reads no more than it asks for, and no more than there is.
func TestExplainGather(t *testing.T) {
	src := "graph f(t: f32[V, 8], i: i64[N]) -> (y: f32[N, 8]) {\n    y = t[i] + 1\n}\n"
	few := Explain(t, src, explain.Options{Sizes: map[string]int64{"V": 1000, "N": 10}})
	assert.Equal(t, int64(10*8*4+10*8), *few.Kernels[0].Read.Bytes)
	many := Explain(t, src, explain.Options{Sizes: map[string]int64{"V": 10, "N": 1000}})
	assert.Equal(t, int64(10*8*4+1000*8), *many.Kernels[0].Read.Bytes)
}

// Without sizes no class can be named, not even the one that takes everything.
func TestExplainUnknownClass(t *testing.T) {
	x := Explain(t, SoftmaxSource, explain.Options{})
	assert.Nil(t, x.Kernels[0].Class)
	assert.Empty(t, x.Kernels[0].Classes[len(x.Kernels[0].Classes)-1].When)
}

func TestExplainRefusalInLibrary(t *testing.T) {
	src := "graph f(x: f32[N, M], y: f32[M, K]) -> (z: f32[N, K]) {\n    z = softmax(x) @ y\n}\n"
	x := Explain(t, src, explain.Options{})
	require.NotEmpty(t, x.Refused)
	for _, r := range x.Refused {
		assert.Equal(t, 2, r.Span.Start.Line, "%+v", r)
	}
}

func TestExplainRefusal(t *testing.T) {
	src := `graph f(x: f32[N, M]) -> (total: f32[]) {
    rows = max(x, axis=1)
    total = sum(rows)
}
`
	x := Explain(t, src, explain.Options{})
	assert.Len(t, x.Kernels, 2)
	require.Len(t, x.Refused, 1)
	r := x.Refused[0]
	assert.Equal(t, "different-ranges", r.Reason)
	assert.Equal(t, "rows", r.Producer)
	assert.Equal(t, 3, r.Span.Start.Line)
	assert.NotEmpty(t, r.Saved.Size)
}

// A product of f32 has kernels that prepare its operands for large sizes. At small sizes these do not
// run, so explain does not mention them. At large sizes their refusals are marked as caused by the
// compiler.
func TestExplainRefusalsOfKernelsThatRun(t *testing.T) {
	src := "graph f(x: f32[N, M], w: f32[M, K]) -> (y: f32[N, K]) {\n    y = softmax(x @ w)\n}\n"
	at := func(n int64) explain.Explanation {
		return Explain(t, src, explain.Options{Sizes: map[string]int64{"N": n, "M": n, "K": n}})
	}
	few, many := at(300), at(4096)
	require.Less(t, len(few.Kernels), len(many.Kernels))
	require.NotEmpty(t, few.Refused)
	for _, r := range few.Refused {
		assert.False(t, r.Inserted, "%+v", r)
	}
	inserted := 0
	for _, r := range many.Refused {
		if r.Inserted {
			inserted++
		}
	}
	assert.NotZero(t, inserted)
	assert.NotEqual(t, len(many.Refused), inserted, "the product and the softmax are the program's")
}

func TestExplainJSON(t *testing.T) {
	text, err := json.Marshal(Explain(t, SoftmaxSource, explain.Options{}))
	require.NoError(t, err)
	var back struct {
		Kernels []struct {
			Name, Template string
			Operations     []struct{ Name, Span string }
			Reads, Writes  []struct{ Name, Size string }
		}
		Refused []struct{ Reason, Span string }
	}
	require.NoError(t, json.Unmarshal(text, &back))
	require.Len(t, back.Kernels, 1)
	k := back.Kernels[0]
	assert.Equal(t, "loop", k.Template)
	assert.Equal(t, "p.fuse:3:9", k.Operations[0].Span)
	assert.Equal(t, "max", k.Operations[0].Name)
	assert.Equal(t, "x", k.Reads[0].Name)
	assert.Equal(t, "y", k.Writes[0].Name)
	assert.NotNil(t, back.Refused, "an empty list, not null")
}

// TestExplainProducts: products take the time of what multiplies them: f32 takes longer
// than tf32, and that twice as long as 16 bits; on an H200, 66.9 TFLOP/s of f32 by threads.
func TestExplainProducts(t *testing.T) {
	const n = 8448 // 33 tiles of 128 x 128 for each multiprocessor
	seconds := func(src string) float64 {
		return *Explain(t, src, explain.Options{Sizes: map[string]int64{"N": n}}).Fused.Seconds
	}
	const src = "graph g(a: T[N, N], b: T[N, N]) -> (y: T[N, N]) { y = a @ transpose(b) }"
	half, single := seconds(strings.ReplaceAll(src, "T[", "bf16[")), seconds("@onekernel "+strings.ReplaceAll(src, "T[", "f32["))
	tf32 := seconds("@tf32 " + strings.ReplaceAll(src, "T[", "f32["))
	assert.InEpsilon(t, 2*half, tf32, 0.01)
	assert.InEpsilon(t, 2*float64(n)*n*n/66.9e12, single, 0.01)
}

// TestExplainTiles: products by multiply-adds take the time of whole tiles, of the multiprocessor that has most of them; of a
// symmetric product these are little more than half.
func TestExplainTiles(t *testing.T) {
	for _, c := range []struct {
		src     string
		m, n, k float64 // of the tiles of one multiprocessor in the place of all
	}{
		{"graph g(a: f32[60000, 784], b: f32[60000, 784]) -> (y: f32[784, 784]) { y = transpose(a) @ b }", 64, 3 * 128, 20000},
		{"graph g(a: f32[60000, 784]) -> (y: f32[784, 784]) { y = transpose(a) @ a }", 128, 2 * 128, 60000.0 / 9},
		{"graph g(a: f32[500000, 123], b: f32[500000, 123]) -> (y: f32[123, 123]) { y = transpose(a) @ b }", 128, 2 * 128, 500000.0 / 264},
	} {
		x := Explain(t, c.src, explain.Options{})
		assert.InEpsilon(t, 2*c.m*c.n*c.k*132/66.9e12, *x.Fused.Seconds, 0.03, c.src)
	}
}

// A product is one operation of multiply-adds, on tensor cores where the type allows it.
func TestExplainProductWork(t *testing.T) {
	src := "@onekernel @bench(M=4096, N=4096, K=4096) graph f(a: T[M, K], b: T[K, N]) -> (y: T[M, N]) { y = a @ b }"
	for dtype, rate := range map[string]float64{"bf16": 7.8e14, "f32": 66.9e12} {
		x := Explain(t, strings.ReplaceAll(src, "T[", dtype+"["), explain.Options{})
		seconds := 2 * 4096 * 4096 * 4096 / rate
		assert.InEpsilon(t, seconds, *x.Fused.Seconds, 0.1, dtype)
		assert.InEpsilon(t, seconds, *x.Unfused.Seconds, 0.1, dtype)
		assert.Equal(t, 1, x.Unfused.Kernels, "no product of elements goes through memory")
	}
}

// An exponential of scores is computed once for each score, not for each column of values.
func TestExplainAttentionWork(t *testing.T) {
	src := "@bench(S=4096) graph f(q: bf16[64, S, 128], k: bf16[64, S, 128], v: bf16[64, S, 128]) -> (y: bf16[64, S, 128]) { y = attention(q, k, v) }"
	x := Explain(t, src, explain.Options{})
	require.Len(t, x.Kernels, 1)
	assert.InDelta(t, 0.85e-3, *x.Fused.Seconds, 0.3e-3, "measured: 0.85 ms")
	assert.Empty(t, x.Kernels[0].Slower)
}

// If a product is not multiplied by warpgroups, explain gives the reason.
func TestExplainSlowerProduct(t *testing.T) {
	half := "graph f(a: bf16[M, K], b: bf16[K, N]) -> (y: bf16[M, N]) { y = a @ b }"
	sizes := func(m, n, k int64) map[string]int64 { return map[string]int64{"M": m, "N": n, "K": k} }
	for _, c := range []struct {
		src    string
		sizes  map[string]int64
		device string
		want   string
	}{
		{half, sizes(512, 512, 512), "H200", ""},
		{half, sizes(128, 128, 509), "H200", "K = 509 is not a multiple of 8"},
		{half, sizes(512, 512, 509), "H200", ""}, // worth copies of its operands
		{half, sizes(512, 512, 512), "A100", "A100 has no wgmma"},
		{half, sizes(16, 512, 512), "H200", "M = 16 is less than 17"},
		{"graph f(a: f32[M, K], b: f32[K, N]) -> (y: f32[M, N]) { y = a @ b }", sizes(512, 512, 512), "H200", "1638400 results on, and here are 262144"},
		{"@tf32 graph f(a: f32[M, 64, N], b: f32[K, 64]) -> (y: f32[M, K, N, N]) { y[m, k, p: N, q: N] = sum[c] (a[m, c, p + q] else 0) * b[k, c] }", sizes(64, 512, 512), "H200",
			"a does not lie along the sum"},
		{"@strict " + half, sizes(512, 512, 512), "H200", "@strict"},
		{"graph f(a: bf16[M, 61], b: bf16[61, K]) -> (y: bf16[M, K]) { y = a @ b }", sizes(512, 512, 512), "H200",
			"rows of a are 122 bytes apart"},
	} {
		device, err := ir.DeviceNamed(c.device)
		require.NoError(t, err)
		x := Explain(t, c.src, explain.Options{Device: device, Sizes: c.sizes})
		if c.want == "" {
			assert.Empty(t, x.Kernels[0].Slower, c.src)
		} else {
			assert.Contains(t, x.Kernels[len(x.Kernels)-1].Slower, c.want, c.src)
		}
	}
}

func TestExplainScheduleJSON(t *testing.T) {
	text, err := json.Marshal(Explain(t, SoftmaxSource, explain.Options{}).Kernels[0].Classes[0])
	require.NoError(t, err)
	var back struct {
		Terms    []string
		Schedule map[string]any
	}
	require.NoError(t, json.Unmarshal(text, &back))
	assert.Equal(t, "row", back.Schedule["mapping"])
	assert.Contains(t, back.Schedule, "row_threads")
	assert.NotContains(t, back.Schedule, "tile_m", "what is not set is left out")
	for _, term := range back.Terms {
		assert.NotContains(t, term, "2147483648")
	}
}

// A kernel whose results have no elements at the sizes is not launched: it counts for nothing.
func TestExplainKernelsWithNothingToDo(t *testing.T) {
	const src = "graph g(x: f32[N]) -> (y: f32[N], z: f32[N - 4]) { require(N >= 4, \"four at least\")\n y = sort(x)\n z = exp(x[4:]) }"
	some := Explain(t, src, explain.Options{Sizes: map[string]int64{"N": 5}})
	none := Explain(t, src, explain.Options{Sizes: map[string]int64{"N": 4}})
	require.Len(t, none.Kernels, len(some.Kernels))
	idle := slices.IndexFunc(none.Kernels, func(k explain.KernelNote) bool { return k.Idle })
	require.GreaterOrEqual(t, idle, 0)
	assert.Zero(t, *none.Kernels[idle].Seconds)
	assert.Equal(t, some.Fused.Kernels-1, none.Fused.Kernels)
	assert.False(t, some.Kernels[idle].Idle)
}

// The estimate of a sort is longer than that of a copy of as many bytes, most of all where few blocks
// do all of the work.
func TestExplainOrders(t *testing.T) {
	seconds := func(src string, rows, cols int64) float64 {
		x := Explain(t, src, explain.Options{Sizes: map[string]int64{"N": rows, "M": cols}})
		return *x.Fused.Seconds
	}
	const copied = "graph g(x: f32[N, M]) -> (y: f32[N, M]) { y = x * 2 }"
	const sorted, places = "graph g(x: f32[N, M]) -> (y: f32[N, M]) { y = sort(x) }", "graph g(x: f32[N, M]) -> (y: i64[N, M]) { y = argsort(x) }"
	for _, shape := range [][2]int64{{1, 8192}, {1, 262144}, {32768, 4096}, {64, 131072}} {
		at := func(src string) float64 { return seconds(src, shape[0], shape[1]) }
		assert.Greater(t, at(sorted), 1.5*at(copied), shape)
		assert.Greater(t, at(places), at(sorted), shape)
	}
	assert.Less(t, seconds(sorted, 132, 8192), 2*seconds(sorted, 1, 8192), "a block sorts a row, whatever others do")
	const first = "graph g(x: f32[N, M]) -> (y: f32[N, 9]) { y, at = topk(x, 9) }"
	assert.Greater(t, seconds(first, 1, 1<<20), 7.5e-6, "two stages")
}
